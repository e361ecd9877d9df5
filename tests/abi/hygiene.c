/* What the library does to its process: no thread before the first run, no signal handler, no changed mask, and no signal of the
 * host ever lands on one of its threads; after a fork the child is told so, may release and may exit. */
#define _GNU_SOURCE
#include <sys/wait.h>

#include "guest.h"

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

/* Whether every thread but the one that asks blocks what is sent to the process: all but the signals of a thread's own faults. */
static int others_block_signals(void) {
  static const int own[] = {SIGKILL, SIGSTOP, SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGABRT, SIGSYS};
  unsigned long long needed = 0x7fffffffULL;
  int good = 1;
  for (size_t i = 0; i < sizeof own / sizeof *own; i++) needed &= ~(1ULL << (own[i] - 1));
  DIR *tasks = opendir("/proc/self/task");
  for (struct dirent *entry; tasks && (entry = readdir(tasks)) != NULL;) {
    char path[300], line[256];
    unsigned long long blocked = 0;
    if (entry->d_name[0] == '.' || atoi(entry->d_name) == getpid()) continue;
    snprintf(path, sizeof path, "/proc/self/task/%s/status", entry->d_name);
    FILE *status = fopen(path, "r");
    if (!status) continue; /* it has just ended */
    while (fgets(line, sizeof line, status)) sscanf(line, "SigBlk: %llx", &blocked);
    fclose(status);
    if ((blocked & needed) != needed) good = 0;
  }
  if (tasks) closedir(tasks);
  return good && tasks != NULL;
}

static dtg_graph *graph;
static dtg_session *session;
static dtg_cq *cq;
static dtg_value sum;

static void child(void) {
  ends_in_the_middle = 1;
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
  dtg_run *run = NULL;
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
  ok(dtg_session_run_async(session, &args, cq, 1, &run), "run without a thread");
  ok(dtg_cq_next(cq, &done, 0, 1, DTG_INFINITE, &count), "wait");
  ok(done.error, "the run");
  dtg_run_release(run);
  check(threads() > at_first, "an asynchronous run has threads");
  for (int tcp = 0; tcp < 2; tcp++) {
    struct guest g = {0};
    open_guest(&g, tcp);
    ok(double_ones(&g, 100000), "run on servers");
    check(others_block_signals(), "the library's threads block the host's signals");
    close_guest(&g);
  }
  check(others_block_signals(), "the library's threads block the host's signals, servers or not");
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
