/* A program that ends while the library is at work: exit() and return from main, from this thread and from others, with runs that
 * compute and runs that wait, with servers and with peers in another process. It must end at once with the code it asked for. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <spawn.h>
#include <sys/wait.h>

#include "guest.h"

extern char **environ;
static struct guest g;

/* A run that waits for a queue, on a thread of its own; the other threads go on once it was started. */
static pthread_barrier_t started;
static void *waits_here(void *unused) {
  dtg_run_args args = DTG_RUN_ARGS_INIT;
  dtg_tensor *next = NULL;
  (void)unused;
  args.fetches = &g.wait;
  args.fetched = &next;
  args.num_fetches = 1;
  args.timeout_ns = INT64_C(600000000000);
  pthread_barrier_wait(&started);
  dtg_error_release(dtg_session_run(g.session, &args));
  return NULL;
}

static void *computes_here(void *unused) {
  (void)unused;
  ok(double_ones(&g, 1000000), "a run");
  pthread_barrier_wait(&started);
  for (;;) dtg_error_release(double_ones(&g, 1000000));
  return NULL;
}

static void *exits_here(void *unused) {
  (void)unused;
  pthread_barrier_wait(&started);
  exit(7);
}

static void on_thread(void *(*body)(void *)) {
  pthread_t thread;
  check(pthread_create(&thread, NULL, body, NULL) == 0, "a thread");
  pthread_detach(thread);
}

/* Registered before the library was used, so it runs after whatever the library might have registered. */
static void at_the_end(void) {
  dtg_error_release(double_ones(&g, 10));
  release_guest(&g);
}

static int role(const char *what) {
  ends_in_the_middle = 1;
  pthread_barrier_init(&started, NULL, 2);
  if (strcmp(what, "atexit") == 0) atexit(at_the_end);
  open_guest(&g, strcmp(what, "tcp") == 0);
  ok(double_ones(&g, 1000), "a run");
  (void)start_waiting(&g);
  if (failures) return 1;
  if (strcmp(what, "return") == 0) return 7;
  if (strcmp(what, "quick_exit") == 0) quick_exit(7);
  if (strcmp(what, "waiting") == 0) {
    on_thread(waits_here);
    pthread_barrier_wait(&started);
  } else if (strcmp(what, "computing") == 0) {
    on_thread(computes_here);
    pthread_barrier_wait(&started);
  } else if (strcmp(what, "thread") == 0) {
    on_thread(exits_here);
    waits_here(NULL);
  } else if (strcmp(what, "thread computing") == 0) {
    on_thread(exits_here);
    computes_here(NULL);
  } else if (strcmp(what, "served") == 0) {
    /* The test tells us when its session is at work here. */
    char byte;
    printf("%s\n", dtg_server_target(g.worker));
    fflush(stdout);
    (void)!read(0, &byte, 1);
  }
  exit(7);
}

static pid_t start(const char *what, int *in, int *out) {
  char *const arguments[] = {"exits", (char *)what, NULL};
  posix_spawn_file_actions_t actions;
  pid_t pid = -1;
  int to[2], from[2];
  check(pipe2(to, O_CLOEXEC) == 0 && pipe2(from, O_CLOEXEC) == 0, "pipes");
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, to[0], 0);
  posix_spawn_file_actions_adddup2(&actions, from[1], 1);
  check(posix_spawn(&pid, "/proc/self/exe", &actions, NULL, arguments, environ) == 0, "start a process");
  posix_spawn_file_actions_destroy(&actions);
  close(to[0]);
  close(from[1]);
  *in = to[1];
  *out = from[0];
  return pid;
}

static void ended_with_7(pid_t pid, const char *what) {
  int status = -1;
  if (waitpid(pid, &status, 0) == pid && WIFEXITED(status) && WEXITSTATUS(status) == 7) return;
  fprintf(stderr, "%s: status %x\n", what, (unsigned)status);
  check(0, "a program that exits ends with its code");
}

/* A session of this process at a server of one that exits: what waits here ends, and says why. */
static void a_served_process_exits(void) {
  dtg_completion done = {0, NULL};
  size_t count = 0, length = 0;
  char target[128] = "";
  int in, out;
  const pid_t pid = start("served", &in, &out);
  while (length < sizeof target - 1 && read(out, target + length, 1) == 1 && target[length] != '\n') length++;
  target[length] = 0;
  connect_session(&g, target);
  ok(double_ones(&g, 1000), "a run over there");
  dtg_run *const run = start_waiting(&g);
  ok(double_ones(&g, 1000), "a run beside it");
  close(in);
  ended_with_7(pid, "served");
  ok(dtg_cq_next(g.cq, &done, 0, 1, INT64_C(30000000000), &count), "wait for the run");
  check(count == 1 && dtg_error_code(done.error) == DTG_UNAVAILABLE, "the run says that the server is gone");
  dtg_error_release(done.error);
  dtg_run_release(run);
  release_guest(&g);
  close(out);
}

int main(int argc, char **argv) {
  static const char *const roles[] = {"return",  "exit",      "tcp",    "quick_exit",      "atexit",
                                      "waiting", "computing", "thread", "thread computing"};
  if (argc == 2) {
    alarm(30); /* one that hangs ends with a signal */
    return role(argv[1]);
  }
  const size_t handles = dtg_live_handles();
  for (int round = 0; round < 2; round++) {
    for (size_t i = 0; i < sizeof roles / sizeof *roles; i++) {
      int in, out;
      ended_with_7(start(roles[i], &in, &out), roles[i]);
      close(in);
      close(out);
    }
  }
  a_served_process_exits();
  check(dtg_live_handles() == handles, "no handle is left");
  return failures != 0;
}
