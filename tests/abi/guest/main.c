/* A host that is linked with the library from the start: the plugin's work, once per channel. */
struct guest;
struct guest *plugin_open(int tcp);
int plugin_run(struct guest *g);
int plugin_close(struct guest *g);

int main(void) {
  for (int tcp = 0; tcp < 2; tcp++) {
    struct guest *const g = plugin_open(tcp);
    if (!g || plugin_run(g) != 0 || plugin_close(g) != 0) return 1;
  }
  return 0;
}
