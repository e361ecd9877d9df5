/* What the programs oom_*.c are made of: scenes, each of which uses a part of the ABI from its first handle to its last, and a stage that
 * plays a scene over and over while the n-th allocation fails. For one program each, which includes it once; what a scene holds is in
 * `h`. Scenes run on one thread; the library's own threads meet the allocator that fails, too.
 *
 * Every ordinal that is taken fails in two ways: once, and lasting. A call that answers with an error is made again: where memory failed
 * once, at once; where it lasts, while it fails and then with memory back. Then it must succeed, on the same handles, and the scene goes
 * on to its end. Half of those that last end with the failure instead, and everything is released without memory. Whatever happens: the
 * error is RESOURCE_EXHAUSTED with a text (or one of the few that the scene names), no play takes longer than a minute, every handle is
 * gone afterwards, and the scene without failures, which is played now and then, has no errors.
 *
 * Where a scene has more allocations than there is time for, one of each stretch is taken, another one in each run: what is printed as
 * the seed repeats it. DTG_OOM_SEED sets it, DTG_OOM_SECONDS how long the program takes, and with DTG_OOM=all every ordinal is taken,
 * however long that takes. Arguments SCENE ORDINAL WAY (0 once, 1 lasting, 2 lasting to the end) play one of them. */
#pragma once

#include <dtg/dtg.h>
#include <dtg/sugar.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "failing_allocator.h"

#if OWN_ALLOCATOR
#define COUNT(array) (sizeof(array) / sizeof *(array))

/* What a scene may hold; all of it is released when the scene is over, wherever it has stopped. */
struct hands {
  dtg_trainer *trainer;
  dtg_remote_value *remote;
  dtg_closure *closure, *other_closure;
  dtg_coordinator *coordinator;
  dtg_mesh *mesh;
  dtg_strategy *strategy;
  dtg_collective *collective;
  dtg_checkpoint *checkpoint;
  dtg_dataset *data[4];
  dtg_weights *weights[2];
  dtg_event_writer *writer;
  dtg_run *run;
  dtg_cq *cq;
  dtg_callable *callable;
  dtg_cancellation *cancellation;
  dtg_session *session[3];
  dtg_function *function[4];
  dtg_graph *body;
  dtg_model *inside, *model[3];
  dtg_graph *graph[3];
  dtg_group *group[2];
  dtg_server *server[3];
  dtg_cluster *cluster;
  dtg_runtime *own;
  dtg_tensor *tensor[8];
  dtg_string *string[3];
  dtg_error *error;
};

static struct hands h;
static dtg_runtime *runtime; /* of all plays of the program; 2 threads */
static char folder[64];      /* of the program's files */

#define LET_GO(type, handles)                                                                                                             \
  do {                                                                                                                                    \
    for (size_t i_ = 0; i_ < sizeof(handles) / sizeof(dtg_##type *); i_++) dtg_##type##_release(((dtg_##type **)(void *)&(handles))[i_]); \
  } while (0)

static inline void let_go(void) {
  LET_GO(trainer, h.trainer);
  LET_GO(remote_value, h.remote);
  LET_GO(closure, h.closure);
  LET_GO(closure, h.other_closure);
  LET_GO(coordinator, h.coordinator);
  LET_GO(mesh, h.mesh);
  LET_GO(strategy, h.strategy);
  LET_GO(collective, h.collective);
  LET_GO(checkpoint, h.checkpoint);
  LET_GO(dataset, h.data);
  LET_GO(weights, h.weights);
  LET_GO(event_writer, h.writer);
  LET_GO(run, h.run);
  LET_GO(cq, h.cq);
  LET_GO(callable, h.callable);
  LET_GO(cancellation, h.cancellation);
  LET_GO(session, h.session);
  LET_GO(function, h.function);
  LET_GO(graph, h.body);
  LET_GO(model, h.inside);
  LET_GO(model, h.model);
  LET_GO(graph, h.graph);
  LET_GO(group, h.group);
  LET_GO(server, h.server);
  LET_GO(cluster, h.cluster);
  LET_GO(runtime, h.own);
  LET_GO(tensor, h.tensor);
  LET_GO(string, h.string);
  LET_GO(error, h.error);
  memset(&h, 0, sizeof h);
}

/* One scene. `play` answers 1 where it has come to its end. */
struct scene {
  const char *name;
  int (*play)(void);
  unsigned also;     /* codes beside RESOURCE_EXHAUSTED that a failure may have here: AS(code) | ... */
  int is_ours_alone; /* 1: memory fails once only, for the thread of the scene and not for the library's; 2: not at all */
};
#define AS(code) (1u << (code))

enum { WHOLE = -1, PASSING = 0, LASTING = 1, TO_THE_END = 2 };
static const struct scene *scene;
static int way = WHOLE;   /* how memory fails in this play */
static int is_back;       /* it lasted, and has ended */
static int told;          /* calls that failed in this play */
static long at;           /* the ordinal */
static long refused;      /* errors that were told */
static long strange;      /* what should not have been */
static char watched[128]; /* what a play that does not end was */

static inline void complain(const char *what, const char *call, int line, dtg_error *error) {
  strange++;
  fprintf(stderr, "%s, allocation %ld, way %d: %s: line %d: %.160s: %s: %s\n", scene->name, at, way, what, line, call,
          dtg_code_name(dtg_error_code(error)), dtg_error_message(error, NULL));
}

/* Looks at everything that an error tells. 1: it may be one of lacking memory. */
static inline int may_be(dtg_error *error) {
  const dtg_code code = dtg_error_code(error);
  const int known = code == DTG_RESOURCE_EXHAUSTED || (scene->also & AS(code)) != 0;
  const size_t words =
      strlen(dtg_error_node(error)) + strlen(dtg_error_task(error)) + strlen(dtg_error_peer(error)) + strlen(dtg_error_phase(error));
  return known && dtg_error_message(error, NULL)[0] != 0 && words < 100000;
}

/* What comes of a call: 1: go on; 0: make it again; -1: the scene ends here. `again`: it may be made again. */
static inline int judge(dtg_error *error, int again, int *tries, const char *call, int line) {
  if (!error) return 1;
  int next = -1;
  refused++;
  told += *tries == 0;
  if (way == WHOLE) complain("failed, with all the memory there is", call, line, error);
  else if (!may_be(error)) complain("another error", call, line, error);
  else if (*tries == (way == PASSING ? 1 : 2) && !scene->also) complain("failed again, with memory back", call, line, error);
  else if (again && way == PASSING && *tries < 1) next = 0;
  else if (again && way == LASTING && *tries < 2) next = 0;
  dtg_error_release(error);
  if (next == 0 && ++*tries == 2) {
    fail_no_more();
    is_back = 1;
  }
  return next;
}

/* What is over can be no reason any more. */
static inline int tries_before(void) { return is_back ? 2 : way == PASSING && told > 0 && !scene->also; }

/* A call that may be made again when it has failed, and must succeed then. */
#define TRY(call)                                                          \
  do {                                                                     \
    int tries_ = tries_before();                                           \
    int next_ = 0;                                                         \
    while (next_ == 0) next_ = judge((call), 1, &tries_, #call, __LINE__); \
    if (next_ < 0) return 0;                                               \
  } while (0)

/* One that its header says to be over after an error, or that has left something by then: the scene ends there. */
#define ONCE(call)                                                 \
  do {                                                             \
    int tries_ = tries_before();                                   \
    if (judge((call), 0, &tries_, #call, __LINE__) != 1) return 0; \
  } while (0)

/* A part of a scene that is a function of its own. */
#define PART(call)         \
  do {                     \
    if (!(call)) return 0; \
  } while (0)

/* What has no error to tell, and must be so nevertheless. */
#define HOLDS(condition)                                                                                                \
  do {                                                                                                                  \
    if (!(condition)) {                                                                                                 \
      strange++;                                                                                                        \
      fprintf(stderr, "%s, allocation %ld, way %d: line %d: not so: %s\n", scene->name, at, way, __LINE__, #condition); \
    }                                                                                                                   \
  } while (0)

/* ---- what many scenes begin with ---- */

static inline int new_graph(int k) {
  TRY(dtg_graph_create(runtime, &h.graph[k]));
  TRY(dtg_model_create(h.graph[k], 7, &h.model[k]));
  return 1;
}

/* Tensor k of `h`, with numbers that count from 0. */
static inline int new_tensor(int k, dtg_dtype type, const int64_t *dims, size_t rank) {
  TRY(dtg_tensor_allocate(type, dims, rank, &h.tensor[k]));
  const int64_t count = dtg_tensor_count(h.tensor[k]);
  void *const data = dtg_tensor_mutable_data(h.tensor[k]);
  for (int64_t i = 0; i < count; i++) {
    if (type == DTG_F32) ((float *)data)[i] = (float)(i % 5) * 0.25f;
    if (type == DTG_I32) ((int32_t *)data)[i] = (int32_t)(i % 3);
    if (type == DTG_I64) ((int64_t *)data)[i] = i % 3;
    if (type == DTG_U8) ((uint8_t *)data)[i] = (uint8_t)(i % 3);
  }
  return 1;
}

/* First values of a model in a local session, or one of `target`. */
static inline int begin_session(int k, const char *target) {
  dtg_value init;
  dtg_session_options options = DTG_SESSION_OPTIONS_INIT;
  options.default_timeout_ns = INT64_C(20000000000);
  options.connect_timeout_ns = INT64_C(20000000000);
  options.emu_devices = target ? 0 : 2;
  options.cpu_devices = target ? 0 : 2;
  TRY(dtg_model_init(h.model[k], &init));
  TRY(dtg_session_connect(runtime, target, target ? DTG_STRLEN : 0, h.graph[k], &options, &h.session[k]));
  TRY(dtg_run_target(h.session[k], init));
  return 1;
}

/* ---- the stage ---- */

static inline double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static inline void too_long(int signal_number) {
  (void)signal_number;
  const ssize_t written = write(2, watched, strlen(watched));
  (void)written;
  abort();
}

/* Plays the scene with the allocation `n` failing that way. 0: something was not as it should be. */
static inline int play(long n, int how, size_t handles) {
  const long before = strange;
  at = n;
  way = how;
  is_back = told = 0;
  snprintf(watched, sizeof watched, "%s, allocation %ld, way %d: has not ended in a minute\n", scene->name, n, how);
  alarm(60);
  only = pthread_self();
  __atomic_store_n(&has_only, scene->is_ours_alone, __ATOMIC_RELAXED);
  fail_from(how == WHOLE ? -1 : n, how != PASSING);
  const int ended = scene->play();
  if (how == WHOLE && !ended) strange++;
  if (how != TO_THE_END || scene->is_ours_alone) fail_no_more();
  let_go();
  fail_no_more();
  /* What the library's own threads still hold goes soon. */
  for (int i = 0; i < 2000 && dtg_live_handles() != handles; i++) usleep(i < 100 ? 100 : 5000);
  alarm(0);
  if (dtg_live_handles() != handles) {
    strange++;
    fprintf(stderr, "%s, allocation %ld, way %d: %zu handles stay\n", scene->name, n, how, dtg_live_handles() - handles);
  }
  return strange == before;
}

static unsigned long drawn;
static inline long draw(long below) {
  drawn = drawn * 6364136223846793005ul + 1442695040888963407ul;
  return (long)((drawn >> 33) % (unsigned long)below);
}

/* Both ways of one ordinal, and the whole scene after it now and then. */
static inline int take(long n, long count, int all, size_t handles) {
  const int how = draw(2) ? LASTING : TO_THE_END;
  if (scene->is_ours_alone) return play(n, PASSING, handles) && (count % 8 != 7 || play(n, WHOLE, handles));
  if (!play(n, PASSING, handles) || !play(n, how, handles)) return 0;
  if (all && !play(n, how == LASTING ? TO_THE_END : LASTING, handles)) return 0;
  return all || count % 8 == 7 ? play(n, WHOLE, handles) : 1;
}

static inline long common_divisor(long a, long b) {
  while (b) {
    const long rest = a % b;
    a = b;
    b = rest;
  }
  return a;
}

/* As many ordinals of the scene as there is time for, spread over all of them. */
static inline int perform(const struct scene *which, double seconds, int all, long asked_for, int asked_way) {
  scene = which;
  at = 0;
  const double first = now();
  if (scene->play() == 0) strange++; /* what is made once per process is made */
  let_go();
  usleep(20000);
  const size_t handles = dtg_live_handles();
  const double begun = now();
  int good = play(0, WHOLE, handles);
  const double each = now() - begun;
  const long total = calls, before = refused;
  if (asked_for) return good && play(asked_for, asked_way, handles) && play(0, WHOLE, handles);
  const long most = all ? total : (long)(seconds / (each * 2.2 + 1e-6));
  const long stretch = most >= total ? 1 : total / (most < 1 ? 1 : most) + 1, stretches = (total + stretch - 1) / stretch;
  const long offset = draw(stretches);
  long taken = 0;
  /* Round and round by a share of all that meets each once, so that being out of time leaves no part of the scene out. */
  long jump = (long)((double)stretches * 0.618) | 1;
  while (common_divisor(jump, stretches) != 1) jump++;
  for (; good && taken < stretches && scene->is_ours_alone != 2; taken++) {
    if (!all && taken >= 4 && now() - first > seconds * 1.5) break;
    const long n = (offset + taken % stretches * jump) % stretches * stretch + draw(stretch) + 1;
    good = take(n > total ? total : n, taken, all, handles);
  }
  if (good) good = play(0, WHOLE, handles);
  printf("%s: %ld allocations, %ld taken, %ld errors, %.1f s\n", scene->name, total, taken, refused - before, now() - first);
  return good;
}

static inline long setting(const char *name, long without) {
  const char *const text = getenv(name);
  return text && *text ? atol(text) : without;
}

static inline int on_stage(const char *name, const struct scene *scenes, size_t count, int argc, char **argv) {
  const char *const asked = getenv("DTG_OOM");
  const int all = asked && strcmp(asked, "all") == 0;
  const double seconds = (double)setting("DTG_OOM_SECONDS", 8) / (double)count;
  const unsigned long seed = (unsigned long)setting("DTG_OOM_SEED", (long)(time(NULL) % 100000 * 100 + getpid() % 100));
  dtg_runtime_options options = DTG_RUNTIME_OPTIONS_INIT;
  int bad = 0;
  drawn = seed;
  printf("DTG_OOM_SEED=%lu\n", seed);
  signal(SIGALRM, too_long);
  snprintf(folder, sizeof folder, "/tmp/dtg-oom-%s-XXXXXX", name);
  if (!mkdtemp(folder)) return 1;
  options.compute_threads = 2;
  options.log_level = DTG_LOG_OFF;
  dtg_error *const failed = dtg_runtime_create(&options, &runtime);
  if (failed) return 1;
  for (size_t i = 0; i < count; i++) {
    if (argc > 1 && strcmp(argv[1], scenes[i].name) != 0) continue;
    bad += !perform(&scenes[i], seconds, all, argc > 2 ? atol(argv[2]) : 0, argc > 3 ? atoi(argv[3]) : 0);
  }
  dtg_runtime_release(runtime);
  char command[128];
  snprintf(command, sizeof command, "rm -rf %s", folder);
  return system(command) != 0 || bad != 0 || strange != 0;
}

#define STAGE(name, scenes) \
  int main(int argc, char **argv) { return on_stage(name, scenes, COUNT(scenes), argc, argv); }
#else
#define STAGE(name, scenes)                             \
  int main(void) {                                      \
    printf("the sanitizer brings its own allocator\n"); \
    return 0;                                           \
  }
#endif
