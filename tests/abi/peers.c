/* Peers that vanish while the library writes to them: a ps and a client that are killed in the middle of a message, and strangers
 * that hang up at once. The host has SIGPIPE as it found it, so a write without care would end this program. */
#define _GNU_SOURCE
#include <poll.h>
#include <spawn.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>

#include "guest.h"

extern char **environ;
static const int64_t many = 1 << 23; /* 32 MB: no socket holds that */

static double now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

/* Starts this program in another role and waits until it says that it is at work. */
static pid_t start(const char *role, const char *spec) {
  char *const arguments[] = {"peers", (char *)role, (char *)spec, NULL};
  posix_spawn_file_actions_t actions;
  pid_t pid = -1;
  int ends[2];
  char byte = 0;
  check(pipe(ends) == 0, "a pipe");
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, ends[1], 1);
  posix_spawn_file_actions_addclose(&actions, ends[0]);
  check(posix_spawn(&pid, "/proc/self/exe", &actions, NULL, arguments, environ) == 0, "start a process");
  posix_spawn_file_actions_destroy(&actions);
  close(ends[1]);
  check(read(ends[0], &byte, 1) == 1, "the other process is at work");
  close(ends[0]);
  return pid;
}

static void at_work(void) { check(write(1, "r", 1) == 1, "say so"); }

static int ps_role(const char *spec) {
  struct guest g = {0};
  snprintf(g.spec, sizeof g.spec, "%s", spec);
  serve(&g, "ps", &g.ps);
  at_work();
  ok(dtg_server_join(g.ps, DTG_INFINITE), "join");
  return failures != 0;
}

static int client_role(const char *target) {
  struct guest g = {0};
  connect_session(&g, target);
  ok(double_ones(&g, many), "a run of the client");
  at_work();
  while (failures == 0) ok(double_ones(&g, many), "a run of the client");
  return 1;
}

/* Whether bytes lie on their way between tasks: written by us and not read by the other side. */
static int in_flight(const struct guest *g) {
  char line[512];
  unsigned from, to, port, peer, sent, unread;
  int worker = -1, ps = -1, found = 0;
  for (int fd = 3; fd < 1024 && !found; fd++) {
    int queued = 0;
    /* Straight to the kernel: the descriptors are the library's, and a thread sanitizer would see two users of one. */
    if (syscall(SYS_ioctl, fd, TIOCOUTQ, &queued) == 0) found = queued > 0;
  }
  if (found || sscanf(g->spec, "ps=127.0.0.1:%d;worker=127.0.0.1:%d", &ps, &worker) != 2) return found;
  FILE *table = fopen("/proc/net/tcp", "r");
  while (table && fgets(line, sizeof line, table)) {
    if (sscanf(line, " %*d: %x:%x %x:%x 01 %x:%x", &from, &port, &to, &peer, &sent, &unread) != 6) continue;
    if (((int)port == ps || (int)peer == ps || (int)port == worker || (int)peer == worker) && sent + unread > 0) found = 1;
  }
  if (table) fclose(table);
  return found;
}

static void stop_process(pid_t pid) {
  int status = 0;
  check(kill(pid, SIGSTOP) == 0 && waitpid(pid, &status, WUNTRACED) == pid && WIFSTOPPED(status), "the other process stands still");
}

static void kill_process(pid_t pid) {
  int status = 0;
  check(kill(pid, SIGKILL) == 0 && waitpid(pid, &status, 0) == pid && WIFSIGNALED(status), "the other process is gone");
}

static void a_ps_is_killed(int tcp) {
  struct guest g = {0};
  dtg_run_args args = DTG_RUN_ARGS_INIT;
  dtg_completion done = {0, NULL};
  dtg_tensor *ones = NULL;
  dtg_run *run = NULL;
  size_t count = 0;
  choose_addresses(&g, tcp);
  const pid_t ps = start("ps", g.spec);
  serve(&g, "worker", &g.worker);
  connect_session(&g, dtg_server_target(g.worker));
  ok(double_ones(&g, many), "a run with the ps");
  stop_process(ps);
  ok(dtg_tensor_allocate(DTG_F32, &many, 1, &ones), "a feed");
  const dtg_tensor *const feed = ones;
  args.feeds = &g.x;
  args.feed_tensors = &feed;
  args.num_feeds = 1;
  args.fetches = &g.sum;
  args.num_fetches = 1;
  ok(dtg_session_run_async(g.session, &args, g.cq, 1, &run), "a run against a ps that stands still");
  const double start_time = now();
  while (!in_flight(&g) && now() - start_time < 10) poll(NULL, 0, 1);
  check(in_flight(&g), "bytes are on their way");
  kill_process(ps);
  ok(dtg_cq_next(g.cq, &done, 0, 1, INT64_C(30000000000), &count), "wait for its end");
  check(count == 1 && dtg_error_code(done.error) == DTG_UNAVAILABLE, "the run says that the ps is gone");
  dtg_error_release(done.error);
  dtg_run_release(run);
  dtg_tensor_release(ones);
  close_guest(&g);
}

static void a_client_is_killed(int tcp) {
  struct guest g = {0};
  open_guest(&g, tcp);
  for (int round = 0; round < 3; round++) {
    const pid_t client = start("client", dtg_server_target(g.worker));
    const double start_time = now();
    do {
      stop_process(client);
      /* Stopped while it computes, it has nothing to read: on with it, to the next moment. */
      const double stopped = now();
      while (!in_flight(&g) && now() - stopped < 0.05) poll(NULL, 0, 1);
      if (in_flight(&g)) break;
      check(kill(client, SIGCONT) == 0, "go on");
    } while (now() - start_time < 10);
    kill_process(client);
    ok(double_ones(&g, 1000), "the servers serve others");
  }
  close_guest(&g);
}

static int call(const struct guest *g, int tcp) {
  struct sockaddr_un local = {0};
  struct sockaddr_in remote = {0};
  int port = 0;
  const int fd = socket(tcp ? AF_INET : AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (tcp) {
    check(sscanf(g->spec, "ps=127.0.0.1:%d", &port) == 1, "its port");
    remote.sin_family = AF_INET;
    remote.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    remote.sin_port = htons((uint16_t)port);
    check(connect(fd, (struct sockaddr *)&remote, sizeof remote) == 0, "call");
  } else {
    local.sun_family = AF_UNIX;
    snprintf(local.sun_path, sizeof local.sun_path, "%s/p", g->folder);
    check(connect(fd, (struct sockaddr *)&local, sizeof local) == 0, "call");
  }
  return fd;
}

static void strangers_hang_up(int tcp) {
  struct guest g = {0};
  const struct linger at_once = {1, 0};
  open_guest(&g, tcp);
  for (int i = 0; i < 200; i++) {
    const int fd = call(&g, tcp);
    /* Something to answer, and nobody who waits for the answer. */
    (void)!send(fd, "\x16\x03\x01\x02\x00\x01GET / HTTP/1.1\r\n\r\n", (size_t)(i % 24), MSG_NOSIGNAL);
    if (i % 2) setsockopt(fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
    close(fd);
    if (i % 50 == 0) ok(double_ones(&g, 1000), "a run among strangers");
  }
  ok(double_ones(&g, 1000), "a run after strangers");
  close_guest(&g);
}

int main(int argc, char **argv) {
  struct sigaction pipes;
  const size_t handles = dtg_live_handles();
  if (argc == 3) ends_in_the_middle = 1;
  if (argc == 3 && strcmp(argv[1], "ps") == 0) return ps_role(argv[2]);
  if (argc == 3) return client_role(argv[2]);
  alarm(250);
  for (int tcp = 0; tcp < 2; tcp++) {
    strangers_hang_up(tcp);
    a_ps_is_killed(tcp);
    a_client_is_killed(tcp);
  }
  check(sigaction(SIGPIPE, NULL, &pipes) == 0 && pipes.sa_handler == SIG_DFL, "SIGPIPE is as the host left it");
  check(dtg_live_handles() == handles, "no handle is left");
  return failures != 0;
}
