/* A part of a host that uses the library and can be loaded and unloaded: what it holds belongs to whoever loaded it. One thread. */
#define _GNU_SOURCE
#include "../guest.h"

/* Two servers, a session with work behind it, and a run that waits; NULL when something failed. */
struct guest *plugin_open(int tcp);
struct guest *plugin_open(int tcp) {
  struct guest *const g = calloc(1, sizeof *g);
  if (!g) return NULL;
  open_guest(g, tcp);
  ok(double_ones(g, 1000), "a run");
  dtg_run_release(start_waiting(g));
  return failures ? NULL : g;
}

int plugin_run(struct guest *g);
int plugin_run(struct guest *g) {
  ok(double_ones(g, 1000), "a run");
  return failures;
}

/* How many handles are open afterwards in this plugin's copy of the library. */
int plugin_close(struct guest *g);
int plugin_close(struct guest *g) {
  close_guest(g);
  free(g);
  return failures ? -1 : (int)dtg_live_handles();
}

/* Building a graph needs no thread. */
int plugin_threads_to_build(void);
int plugin_threads_to_build(void) {
  struct guest g = {0};
  build_graph(&g);
  dtg_graph_release(g.graph);
  return failures ? -1 : threads();
}

static int refused(dtg_error *error) {
  const int good = dtg_error_code(error) == DTG_INVALID_ARGUMENT && strstr(dtg_error_message(error, NULL), "is not an open") != NULL;
  if (!good) fprintf(stderr, "not refused as it should be: %s\n", dtg_error_message(error, NULL));
  dtg_error_release(error);
  return good;
}

/* Whether this copy of the library refuses the handles of another one, and leaves them as they are. */
int plugin_refuses(struct guest *foreign, struct guest *own);
int plugin_refuses(struct guest *foreign, struct guest *own) {
  struct guest mixed = *own;
  dtg_run_args args = DTG_RUN_ARGS_INIT;
  dtg_server *server = NULL;
  dtg_value found;
  int good = refused(dtg_graph_find(foreign->graph, "x", DTG_STRLEN, &found));
  good &= refused(dtg_session_connect(NULL, NULL, 0, foreign->graph, NULL, &mixed.session));
  good &= refused(dtg_server_start(NULL, foreign->cluster, NULL, &server));
  good &= refused(dtg_server_stop(foreign->ps, 0));
  good &= refused(dtg_session_close(foreign->session, 0));
  args.fetches = &foreign->sum;
  args.num_fetches = 1;
  good &= refused(dtg_session_run(foreign->session, &args));
  good &= dtg_server_target(foreign->worker) == NULL && dtg_session_retain(foreign->session) == NULL;
  release_guest(foreign);
  return good && failures == 0;
}
