/* ranks.h: what the processes of the comparison of collectives share, ours and the peers' written in C: ranks that take the same steps
 * at the same time, when they are all told how many (collectives.py). A line "NAME:NUMBER STEPS" is answered with the seconds of a step,
 * from when all ranks have come to when this one is through, and the processor's seconds of a step in this process. */
#ifndef DTG_BENCH_RANKS_H
#define DTG_BENCH_RANKS_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Who fails prints why and exits. */
struct ranks {
  void *(*make)(const char *name, size_t number); /* once for each workload, on all ranks */
  void (*step)(void *made);
  void (*meet)(void); /* returns when all ranks have called it */
};

/* Says "ready" and answers until the end of the input; returns the exit code. */
int ranks_serve(const struct ranks *ranks);

#ifdef __cplusplus
}
#endif

#endif
