/* turns.h: what the clients of the cluster benchmarks share, ours and the peers' written in C or C++. A program says how a
 * workload is made and what one step of it is; turns_serve answers the driver's requests. "measure NAME:NUMBER" is answered
 * with the seconds of a step, the processor's seconds of a step in the clients, and the number of steps.
 *
 * Each workload lives in processes of its own, forked when it is first asked for, so that several clients of one server are
 * several processes. The parent has one thread and never calls the library that is measured. */
#ifndef DTG_BENCH_TURNS_H
#define DTG_BENCH_TURNS_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

struct turns_workload {
  char name[32];
  size_t bytes; /* "pull:64" and "push:64" move 64 MiB */
  int clients;  /* "null:8" is 8 clients; 1 otherwise */
};

/* Both are called in a client's process; who fails prints why and exits. */
struct turns {
  void *(*make)(const struct turns_workload *workload);
  void (*step)(void *made);
};

/* Answers requests until the end of the input; returns the exit code. */
int turns_serve(const struct turns *turns);

double turns_now(void);

#ifdef __cplusplus
}
#endif

#endif
