/* A process with servers, sessions and a run that waits forks: the child may exit, leave at once, start another program or release all
 * it inherited, however it likes; every call tells it that it was forked; and the parent does not notice. */
#define _GNU_SOURCE
#include <sys/wait.h>

#include "guest.h"

static struct guest g;
static dtg_run *waiting;

static void refused(dtg_error *error, const char *what) {
  check(dtg_error_code(error) == DTG_FAILED_PRECONDITION, what);
  dtg_error_release(error);
}

static void exits(void) { exit(failures != 0); }
static void leaves(void) { _exit(0); }
static void starts_another(void) {
  execl("/bin/true", "true", (char *)NULL);
  _exit(3);
}
static void releases(void) {
  const size_t handles = dtg_live_handles();
  dtg_run_release(waiting);
  release_guest(&g);
  check(dtg_live_handles() == handles, "releases in the child do nothing");
  exit(failures != 0);
}
static void calls(void) {
  dtg_server *server = NULL;
  dtg_completion done;
  size_t count = 0;
  refused(double_ones(&g, 10), "a run");
  refused(dtg_server_stop(g.worker, 0), "stop a server");
  refused(dtg_server_join(g.ps, 0), "join a server");
  refused(dtg_server_start(NULL, g.cluster, NULL, &server), "start a server");
  refused(dtg_session_close(g.session, 0), "close a session");
  refused(dtg_cq_next(g.cq, &done, 0, 1, DTG_INFINITE, &count), "wait for a run");
  dtg_run_cancel(waiting);
  releases();
}
static void forks_again(void) {
  int status = -1;
  const pid_t pid = fork();
  if (pid == 0) calls();
  check(waitpid(pid, &status, 0) == pid && WIFEXITED(status) && WEXITSTATUS(status) == 0, "a child of the child");
  exits();
}

static void child_of(const char *what, void (*does)(void)) {
  int status = -1;
  fflush(NULL);
  const pid_t pid = fork();
  if (pid == 0) {
    ends_in_the_middle = 1;
    alarm(20);
    does();
    _exit(9);
  }
  check(pid > 0 && waitpid(pid, &status, 0) == pid && WIFEXITED(status) && WEXITSTATUS(status) == 0, what);
  if (status != 0) fprintf(stderr, "%s: status %x\n", what, (unsigned)status);
  ok(double_ones(&g, 100000), "a run of the parent afterwards");
}

int main(void) {
  const size_t handles = dtg_live_handles();
  for (int tcp = 0; tcp < 2; tcp++) {
    dtg_completion done = {0, NULL};
    size_t count = 0;
    open_guest(&g, tcp);
    ok(double_ones(&g, 100000), "a run before");
    waiting = start_waiting(&g);
    child_of("exit", exits);
    child_of("_exit", leaves);
    child_of("exec", starts_another);
    child_of("release", releases);
    child_of("calls", calls);
    child_of("fork again", forks_again);
    dtg_run_cancel(waiting);
    ok(dtg_cq_next(g.cq, &done, 0, 1, INT64_C(20000000000), &count), "wait for the cancelled run");
    check(count == 1 && dtg_error_code(done.error) == DTG_CANCELLED, "the run that waited was the parent's all along");
    dtg_error_release(done.error);
    dtg_run_release(waiting);
    close_guest(&g);
  }
  check(dtg_live_handles() == handles, "no handle is left");
  return failures != 0;
}
