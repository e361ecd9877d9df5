/* The key of a session from the environment: a server in another process, over TLS, and sessions here that are told no key_file, the
 * right one, or another one. One thread. */
#define _GNU_SOURCE
#include <spawn.h>
#include <sys/wait.h>

#include "guest.h"

extern char **environ;

static char right[96], wrong[96];

/* The server. It tells where it listens, and ends with its input. */
static int serve_role(void) {
  dtg_server_options options = DTG_SERVER_OPTIONS_INIT;
  dtg_cluster *cluster = NULL;
  dtg_server *server = NULL;
  char byte;
  ok(dtg_cluster_parse("ps=127.0.0.1:0", DTG_STRLEN, &cluster), "read the cluster");
  ok(dtg_server_start(NULL, cluster, &options, &server), "start a server");
  if (server) printf("%s\n", dtg_server_target(server));
  fflush(stdout);
  while (read(0, &byte, 1) > 0) continue;
  dtg_server_release(server);
  dtg_cluster_release(cluster);
  return failures != 0;
}

static pid_t start_server(int *input, char *target, int size) {
  char *const arguments[] = {"key", "serve", NULL};
  posix_spawn_file_actions_t actions;
  pid_t pid = -1;
  int down[2], up[2];
  check(pipe(down) == 0 && pipe(up) == 0, "pipes");
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, down[0], 0);
  posix_spawn_file_actions_adddup2(&actions, up[1], 1);
  posix_spawn_file_actions_addclose(&actions, down[1]);
  posix_spawn_file_actions_addclose(&actions, up[0]);
  check(posix_spawn(&pid, "/proc/self/exe", &actions, NULL, arguments, environ) == 0, "start a process");
  posix_spawn_file_actions_destroy(&actions);
  close(down[0]);
  close(up[1]);
  FILE *const told = fdopen(up[0], "r");
  check(told && fgets(target, size, told) != NULL, "the server tells where it is");
  if (told) fclose(told);
  target[strcspn(target, "\n")] = '\0';
  *input = down[1];
  return pid;
}

/* A session that is told `key_file` (NULL: nothing), and what comes of it. */
static dtg_code connected(const char *target, const char *key_file) {
  dtg_session_options options = DTG_SESSION_OPTIONS_INIT;
  dtg_graph *graph = NULL;
  dtg_session *session = NULL;
  dtg_value two;
  float value = 0;
  options.key_file = key_file;
  options.connect_timeout_ns = INT64_C(10000000000);
  ok(dtg_graph_create(NULL, &graph), "make a graph");
  ok(dtg_const_f32(graph, 2, &two), "a constant");
  dtg_error *error = dtg_session_connect(NULL, target, DTG_STRLEN, graph, &options, &session);
  if (!error) error = dtg_run_f32(session, two, (dtg_value){0}, &value);
  const dtg_code code = dtg_error_code(error);
  if (code == DTG_OK) check(value == 2, "it computes");
  dtg_error_release(error);
  dtg_session_release(session);
  dtg_graph_release(graph);
  return code;
}

static void sessions(const char *target) {
  setenv("DTG_KEY_FILE", right, 1);
  check(connected(target, NULL) == DTG_OK, "the key of the environment");
  setenv("DTG_KEY_FILE", wrong, 1);
  check(connected(target, NULL) == DTG_UNAUTHENTICATED, "another key of the environment");
  check(connected(target, right) == DTG_OK, "what the program says goes before");
  setenv("DTG_KEY_FILE", "/nowhere/key", 1);
  check(connected(target, NULL) == DTG_NOT_FOUND, "a key that is not there");
  unsetenv("DTG_KEY_FILE");
  check(connected(target, NULL) == DTG_UNAUTHENTICATED, "the user's own key");
}

int main(int argc, char **argv) {
  char folder[] = "/tmp/dtg-key-XXXXXX", target[128] = "";
  int input = -1, status = -1;
  if (argc == 2 && strcmp(argv[1], "serve") == 0) return serve_role();
  alarm(120);
  const size_t handles = dtg_live_handles();
  check(mkdtemp(folder) != NULL, "make a folder");
  snprintf(right, sizeof right, "%s/right", folder);
  snprintf(wrong, sizeof wrong, "%s/wrong", folder);
  ok(dtg_keygen(right, DTG_STRLEN), "a key");
  ok(dtg_keygen(wrong, DTG_STRLEN), "another key");
  setenv("DTG_KEY_FILE", right, 1); /* the server's, too */
  const pid_t server = start_server(&input, target, sizeof target);
  sessions(target);
  close(input);
  check(waitpid(server, &status, 0) == server && status == 0, "the server ends well");
  unlink(right);
  unlink(wrong);
  rmdir(folder);
  check(dtg_live_handles() == handles, "no handle is left");
  return failures != 0;
}
