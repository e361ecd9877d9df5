/* spin.c: do both CPUs deliver? Two threads run dependent additions at the same time; prints the billions per second of the
 * slower one. On these machines the second CPU is sometimes a mere promise, and then no measure of two threads means anything. */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <time.h>

static double rate[2];

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void *add(void *where) {
  const uint64_t count = 400000000;
  uint64_t sum = 0;
  const double start = now();
  for (uint64_t i = 0; i < count; i++) {
    __asm__ volatile("" : "+r"(sum));
    sum += 1;
  }
  *(double *)where = (double)count / (now() - start) * 1e-9;
  return NULL;
}

int main(void) {
  pthread_t other;
  if (pthread_create(&other, NULL, add, &rate[1]) != 0) return 1;
  add(&rate[0]);
  pthread_join(other, NULL);
  printf("%.2f\n", rate[0] < rate[1] ? rate[0] : rate[1]);
  return 0;
}
