/* ranks.c: one rank's side of a race. See ranks.h. */
#define _POSIX_C_SOURCE 200809L
#include "ranks.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

enum { MOST_WORKLOADS = 32 };

static double clock_seconds(clockid_t which) {
  struct timespec t;
  clock_gettime(which, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void *find(const struct ranks *ranks, const char *name, size_t number) {
  static struct {
    char name[32];
    size_t number;
    void *made;
  } all[MOST_WORKLOADS];
  int i = 0;
  while (i < MOST_WORKLOADS && all[i].made && (strcmp(all[i].name, name) != 0 || all[i].number != number)) i++;
  if (i == MOST_WORKLOADS) return NULL;
  if (!all[i].made) {
    snprintf(all[i].name, sizeof all[i].name, "%s", name);
    all[i].number = number;
    all[i].made = ranks->make(name, number);
  }
  return all[i].made;
}

int ranks_serve(const struct ranks *ranks) {
  char line[128], name[32];
  size_t number = 0;
  long steps = 0;
  printf("ready\n");
  fflush(stdout);
  while (fgets(line, sizeof line, stdin)) {
    if (sscanf(line, "%31[^:]:%zu %ld", name, &number, &steps) != 3 || steps < 1) return 2;
    void *const made = find(ranks, name, number);
    if (!made) return 2;
    ranks->meet();
    const double start = clock_seconds(CLOCK_MONOTONIC), used = clock_seconds(CLOCK_PROCESS_CPUTIME_ID);
    for (long i = 0; i < steps; i++) ranks->step(made);
    printf("%.4e %.4e\n", (clock_seconds(CLOCK_MONOTONIC) - start) / (double)steps,
           (clock_seconds(CLOCK_PROCESS_CPUTIME_ID) - used) / (double)steps);
    fflush(stdout);
  }
  return 0;
}
