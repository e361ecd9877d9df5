/* turns.c: clients in processes of their own, which take steps when told how many. See turns.h. */
#define _POSIX_C_SOURCE 200809L
#include "turns.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { BATCHES = 5, MOST_CLIENTS = 64, MOST_WORKLOADS = 16 };
static const double SLICE = 0.15; /* seconds that one answer takes */

struct client {
  int orders, reports; /* a count of steps goes down, the processor's seconds come up */
};

struct group {
  struct turns_workload workload;
  struct client clients[MOST_CLIENTS];
  long repeats; /* steps of a batch, found by trying */
};

static double clock_seconds(clockid_t which) {
  struct timespec t;
  clock_gettime(which, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

double turns_now(void) { return clock_seconds(CLOCK_MONOTONIC); }

static int read_all(int fd, void *at, size_t bytes) { return read(fd, at, bytes) == (ssize_t)bytes; }

static int write_all(int fd, const void *at, size_t bytes) { return write(fd, at, bytes) == (ssize_t)bytes; }

/* ---- in the client's process ---- */

static void live(const struct turns *turns, const struct turns_workload *workload, int orders, int reports) {
  void *made = turns->make(workload);
  long steps = 3;
  double processor = 0;
  do {
    const double start = clock_seconds(CLOCK_PROCESS_CPUTIME_ID);
    for (long i = 0; i < steps; i++) turns->step(made);
    processor = clock_seconds(CLOCK_PROCESS_CPUTIME_ID) - start;
  } while (write_all(reports, &processor, sizeof processor) && read_all(orders, &steps, sizeof steps));
  _exit(0);
}

static int fork_client(const struct turns *turns, struct group *group, struct client *client) {
  int down[2], up[2];
  if (pipe(down) != 0 || pipe(up) != 0) return 0;
  fflush(stdout);
  const pid_t child = fork();
  if (child == 0) {
    /* Else a client would hold the others' pipes open and no end of input would reach them. */
    for (int i = 3; i < 1024; i++) {
      if (i != down[0] && i != up[1]) close(i);
    }
    live(turns, &group->workload, down[0], up[1]);
  }
  close(down[0]);
  close(up[1]);
  client->orders = down[1];
  client->reports = up[0];
  return child > 0;
}

/* ---- in the parent ---- */

/* All clients take `steps` steps at the same time; 0 when one has died. */
static int take_turns(struct group *group, long steps, double *seconds, double *processor) {
  const double start = turns_now();
  double each = 0;
  *processor = 0;
  for (int i = 0; i < group->workload.clients; i++) {
    if (!write_all(group->clients[i].orders, &steps, sizeof steps)) return 0;
  }
  for (int i = 0; i < group->workload.clients; i++) {
    if (!read_all(group->clients[i].reports, &each, sizeof each)) return 0;
    *processor += each;
  }
  *seconds = turns_now() - start;
  return 1;
}

static int is_same(const struct turns_workload *a, const struct turns_workload *b) {
  return !strcmp(a->name, b->name) && a->bytes == b->bytes && a->clients == b->clients;
}

static struct group *find(const struct turns *turns, const char *request) {
  static struct group all[MOST_WORKLOADS];
  struct turns_workload wanted = {"", 0, 1};
  int number = 0, i = 0;
  if (sscanf(request, "%31[^:]:%d", wanted.name, &number) < 1) return NULL;
  if (!strcmp(wanted.name, "null")) wanted.clients = number;
  else wanted.bytes = (size_t)number << 20;
  while (i < MOST_WORKLOADS && all[i].workload.name[0] && !is_same(&all[i].workload, &wanted)) i++;
  if (i == MOST_WORKLOADS || wanted.clients < 1 || wanted.clients > MOST_CLIENTS) return NULL;
  struct group *group = &all[i];
  if (group->workload.name[0]) return group;
  group->workload = wanted;
  double seconds = 0, warm = 0;
  for (int c = 0; c < wanted.clients; c++) {
    if (!fork_client(turns, group, &group->clients[c])) return NULL;
  }
  for (int c = 0; c < wanted.clients; c++) {
    if (!read_all(group->clients[c].reports, &warm, sizeof warm)) return NULL;
  }
  for (group->repeats = 1; seconds < SLICE / BATCHES / 2; group->repeats *= 2) {
    if (!take_turns(group, group->repeats, &seconds, &warm)) return NULL;
  }
  return group;
}

static int by_size(const void *a, const void *b) {
  const double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

static void answer(const struct turns *turns, const char *request) {
  double part[BATCHES], processor = 0, each = 0;
  struct group *group = find(turns, request);
  int well = group != NULL && group->repeats > 0;
  for (int i = 0; well && i < BATCHES; i++) {
    well = take_turns(group, group->repeats, &part[i], &each);
    part[i] /= (double)group->repeats;
    processor += each;
  }
  if (!well) {
    printf("failed\n");
    return;
  }
  qsort(part, BATCHES, sizeof *part, by_size);
  const long steps = group->repeats * BATCHES;
  printf("%.4e %.4e %ld\n", part[BATCHES / 2], processor / (double)steps, steps);
}

int turns_serve(const struct turns *turns) {
  char line[256], command[32], name[64];
  while (fgets(line, sizeof line, stdin)) {
    if (sscanf(line, "%31s %63s", command, name) < 2 || strcmp(command, "measure") != 0) break;
    answer(turns, name);
    fflush(stdout);
  }
  return 0;
}
