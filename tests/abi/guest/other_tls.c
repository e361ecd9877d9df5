/* A host that exports another TLS library's functions under OpenSSL's names; here they die when they are called. TLS is refused, by
 * name of who is in the way and with what to do; what needs no TLS works. */
#include <dtg/dtg.h>
#include <stdio.h>
#include <string.h>

struct guest;
struct guest *plugin_open(int tcp);
int plugin_run(struct guest *g);
int plugin_close(struct guest *g);

static int refused(dtg_error *error, const char *what) {
  const char *const message = error ? dtg_error_message(error, NULL) : "nothing is wrong";
  const int good = error && dtg_error_code(error) == DTG_FAILED_PRECONDITION &&
                   strstr(message, "other_tls\" exports functions of another TLS library") && strstr(message, "-DDTG_OPENSSL_INSIDE=ON");
  if (!good) fprintf(stderr, "%s: %s\n", what, message);
  dtg_error_release(error);
  return good;
}

int main(void) {
  struct guest *const g = plugin_open(0);
  dtg_cluster *cluster = NULL;
  dtg_server *server = NULL;
  dtg_graph *graph = NULL;
  dtg_session *session = NULL;
  int bad = !g || plugin_run(g) != 0;
  if (dtg_cluster_parse("ps=127.0.0.1:0", DTG_STRLEN, &cluster) || dtg_graph_create(NULL, &graph)) return 2;
  bad |= !refused(dtg_server_start(NULL, cluster, NULL, &server), "start a server");
  bad |= !refused(dtg_session_connect(NULL, "127.0.0.1:9", DTG_STRLEN, graph, NULL, &session), "connect a session");
  bad |= plugin_run(g) != 0;
  dtg_graph_release(graph);
  dtg_cluster_release(cluster);
  return plugin_close(g) != 0 || bad;
}
