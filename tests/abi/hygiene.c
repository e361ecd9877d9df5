/* What the library does to its process: no thread before the first run, no signal handler, no changed mask; after a
 * fork the child is told so, may release and may exit. */
#define _GNU_SOURCE
#include <dirent.h>
#include <dtg/dtg.h>
#include <dtg/sugar.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static int failures = 0;

static void check(int good, const char *what) {
  if (good) return;
  fprintf(stderr, "FAILED: %s\n", what);
  failures++;
}

static void ok(dtg_error *error, const char *what) {
  if (error) fprintf(stderr, "%s: %s\n", what, dtg_error_message(error, NULL));
  check(error == NULL, what);
  dtg_error_release(error);
}

static int threads(void) {
  int count = 0;
  DIR *tasks = opendir("/proc/self/task");
  if (!tasks) return -1;
  for (struct dirent *entry; (entry = readdir(tasks)) != NULL;) count += entry->d_name[0] != '.';
  closedir(tasks);
  return count;
}

struct signals {
  struct sigaction actions[65];
  sigset_t mask;
};

static void read_signals(struct signals *all) {
  memset(all, 0, sizeof *all);
  for (int i = 1; i <= 64; ++i) (void)sigaction(i, NULL, &all->actions[i]);
  sigprocmask(SIG_SETMASK, NULL, &all->mask);
}

static int same_signals(const struct signals *a, const struct signals *b) {
  for (int i = 1; i <= 64; ++i) {
    if (a->actions[i].sa_handler != b->actions[i].sa_handler || a->actions[i].sa_flags != b->actions[i].sa_flags) return 0;
    if (sigismember(&a->mask, i) != sigismember(&b->mask, i)) return 0;
  }
  return 1;
}

static dtg_graph *graph;
static dtg_session *session;
static dtg_cq *cq;
static dtg_value sum;

/* Asked by the leak sanitizer at exit, when there is one: memory that only the stacks of the parent's other threads point
 * at looks lost in a forked child, which has none of them. */
static int in_child = 0;
int __lsan_is_turned_off(void);
int __lsan_is_turned_off(void) { return in_child; }

static void child(void) {
  in_child = 1;
  dtg_graph *other = NULL;
  dtg_tensor *fetched = NULL;
  dtg_run_args args = DTG_RUN_ARGS_INIT;
  dtg_error *error = dtg_graph_create(NULL, &other);
  check(dtg_error_code(error) == DTG_FAILED_PRECONDITION, "a call in the child is refused");
  check(strstr(dtg_error_message(error, NULL), "fork") != NULL, "and the message says why");
  dtg_error_release(error);
  args.fetches = &sum;
  args.fetched = &fetched;
  args.num_fetches = 1;
  error = dtg_session_run(session, &args);
  check(dtg_error_code(error) == DTG_FAILED_PRECONDITION && fetched == NULL, "a run in the child is refused");
  dtg_error_release(error);
  dtg_session_release(session);
  dtg_graph_release(graph);
  dtg_cq_release(cq);
  exit(failures != 0);
}

int main(void) {
  static struct signals before, after;
  const size_t handles = dtg_live_handles();
  const int at_first = threads();
  dtg_run_args args = DTG_RUN_ARGS_INIT;
  dtg_value one;
  dtg_op *op = NULL;
  dtg_completion done;
  size_t count = 0;
  float value = 0;
  int status = -1;
  pid_t pid;
  read_signals(&before);
  ok(dtg_graph_create(NULL, &graph), "make a graph");
  ok(dtg_const_f32(graph, 1, &one), "a constant");
  ok(dtg_add2(graph, "AddV2", one, one, &sum), "a sum");
  ok(dtg_session_connect(NULL, NULL, 0, graph, NULL, &session), "connect");
  ok(dtg_cq_create(&cq), "make a queue");
  check(threads() == at_first, "no thread before the first run");
  ok(dtg_run_f32(session, sum, (dtg_value){0}, &value), "run");
  check(value == 2, "1 + 1");
  args.fetches = &sum;
  args.num_fetches = 1;
  ok(dtg_session_run_async(session, &args, cq, 1, &op), "run without a thread");
  ok(dtg_cq_next(cq, &done, 0, 1, DTG_INFINITE, &count), "wait");
  ok(done.error, "the run");
  dtg_op_release(op);
  check(threads() > at_first, "an asynchronous run has threads");
  read_signals(&after);
  check(same_signals(&before, &after), "signal handlers and the mask are as before");
  fflush(NULL);
  pid = fork();
  if (pid == 0) child();
  check(pid > 0 && waitpid(pid, &status, 0) == pid && WIFEXITED(status) && WEXITSTATUS(status) == 0, "the child exits plainly");
  ok(dtg_run_f32(session, sum, (dtg_value){0}, &value), "run after a fork");
  dtg_session_release(session);
  dtg_graph_release(graph);
  dtg_cq_release(cq);
  check(dtg_live_handles() == handles, "no handle is left");
  return failures != 0;
}
