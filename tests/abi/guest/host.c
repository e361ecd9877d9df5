/* A host that opens what it uses late: host WHAT PLUGIN [PLUGIN]. It is not linked with the library.
 *
 *   loop      loads and unloads the plugin many times while servers of the library run: nothing is lost and nothing grows
 *   copies    two plugins with a copy of the library each: both work, and neither takes the other's handles
 *   paths     the library itself from two paths, opened by hand
 *   functions malloc, operator new and their family are before and after the same functions, and the host's own where it has some
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SAY(...) (fprintf(stderr, __VA_ARGS__), fputc('\n', stderr), exit(1))

struct plugin {
  void *library;
  void *(*open)(int);
  int (*run)(void *);
  int (*close)(void *);
  int (*refuses)(void *, void *);
  int (*threads_to_build)(void);
};

static void *need(void *library, const char *name) {
  void *const found = dlsym(library, name);
  if (!found) SAY("%s: %s", name, dlerror());
  return found;
}

static struct plugin load(const char *path) {
  struct plugin p;
  p.library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (!p.library) SAY("%s", dlerror());
  *(void **)&p.open = need(p.library, "plugin_open");
  *(void **)&p.run = need(p.library, "plugin_run");
  *(void **)&p.close = need(p.library, "plugin_close");
  *(void **)&p.refuses = need(p.library, "plugin_refuses");
  *(void **)&p.threads_to_build = need(p.library, "plugin_threads_to_build");
  return p;
}

static int entries(const char *folder) {
  int count = 0;
  DIR *const all = opendir(folder);
  while (all && readdir(all)) count++;
  if (all) closedir(all);
  return count;
}

static long pages(void) {
  long size = 0, resident = 0;
  FILE *const file = fopen("/proc/self/statm", "r");
  if (!file || fscanf(file, "%ld %ld", &size, &resident) != 2) SAY("statm");
  fclose(file);
  return resident;
}

static void loop(const char *path) {
  struct plugin p = load(path);
  long resident = 0;
  int open_files = 0, threads = 0;
  if (p.threads_to_build() != 1) SAY("a thread before the first run");
  dlclose(p.library);
  for (int i = 0; i < 300; i++) {
    p = load(path);
    if (i % 10 == 0 && entries("/proc/self/task") > 64) SAY("threads pile up");
    /* One pair of servers lives through all of it, others come and go. */
    static void *lasting, *passing;
    if (i == 0) lasting = p.open(0);
    passing = i % 30 == 1 ? p.open(i & 1) : NULL;
    if (!lasting || p.run(lasting)) SAY("round %d: the servers from before do not work", i);
    if (passing && (p.run(passing) || p.close(passing) <= 0)) SAY("round %d: the new servers do not work", i);
    if (i == 100) resident = pages(), open_files = entries("/proc/self/fd"), threads = entries("/proc/self/task");
    if (i == 299 && p.close(lasting) != 0) SAY("handles are left");
    if (i == 298 && (pages() > resident + 512 || entries("/proc/self/fd") > open_files || entries("/proc/self/task") > threads)) {
      SAY("grown: %ld pages to %ld, %d descriptors to %d, %d threads to %d", resident, pages(), open_files, entries("/proc/self/fd"),
          threads, entries("/proc/self/task"));
    }
    if (dlclose(p.library) != 0) SAY("dlclose: %s", dlerror());
  }
}

static void copies(const char *one, const char *two) {
  const struct plugin a = load(one), b = load(two);
  void *const at_a = a.open(1), *const at_b = b.open(1);
  if (!at_a || !at_b) SAY("two copies do not work beside each other");
  if (dlsym(a.library, "dtg_abi_version") == dlsym(b.library, "dtg_abi_version")) SAY("it is one copy, not two");
  if (!a.refuses(at_b, at_a) || !b.refuses(at_a, at_b)) SAY("a copy took the other's handles");
  if (a.run(at_a) || b.run(at_b)) SAY("a handle was lost at the other copy");
  if (a.close(at_a) != 0 || b.run(at_b) || b.close(at_b) != 0) SAY("the end of one was felt by the other");
}

static void paths(const char *one, const char *two) {
  void *const libraries[] = {dlopen(one, RTLD_NOW | RTLD_LOCAL), dlopen(two, RTLD_NOW | RTLD_LOCAL)};
  void *graphs[2];
  for (int i = 0; i < 2; i++) {
    void *(*create)(void *, void **);
    if (!libraries[i]) SAY("%s", dlerror());
    *(void **)&create = need(libraries[i], "dtg_graph_create");
    if (create(NULL, &graphs[i])) SAY("no graph");
  }
  if (need(libraries[0], "dtg_graph_create") == need(libraries[1], "dtg_graph_create")) SAY("it is one copy, not two");
  for (int i = 0; i < 2; i++) {
    void *(*retain)(void *);
    void (*release)(void *);
    size_t (*live)(void);
    *(void **)&retain = need(libraries[i], "dtg_graph_retain");
    *(void **)&release = need(libraries[i], "dtg_graph_release");
    *(void **)&live = need(libraries[i], "dtg_live_handles");
    if (retain(graphs[1 - i]) != NULL) SAY("a copy took the other's handle");
    release(graphs[1 - i]);
    if (live() != 1) SAY("not one handle but %zu", live());
  }
}

/* Folders may be called as they like. */
static const char *base_of(const char *path) {
  const char *const slash = strrchr(path, '/');
  return slash ? slash + 1 : path;
}

static const char *const family[] = {
    "malloc", "calloc", "realloc", "free",   "memalign", "aligned_alloc", "posix_memalign", "malloc_usable_size",
    "_Znwm",  "_Znam",  "_ZdlPv",  "_ZdaPv", "_ZdlPvm",  "_ZdaPvm",       "sigaction",      "pthread_create"};
enum { members = sizeof family / sizeof *family };

static void functions(const char *path) {
  void *before[members];
  Dl_info where;
  long (*calls)(void), (*strange)(void);
  *(void **)&calls = dlsym(RTLD_DEFAULT, "allocator_calls");
  *(void **)&strange = dlsym(RTLD_DEFAULT, "allocator_strange");
  for (int i = 0; i < members; i++) before[i] = dlsym(RTLD_DEFAULT, family[i]);
  void *const kept = malloc(100);
  const struct plugin p = load(path);
  void *const all = p.open(1);
  if (!all || p.run(all)) SAY("it does not work");
  for (int i = 0; i < members; i++) {
    void *const now = dlsym(RTLD_DEFAULT, family[i]);
    if (before[i] && now != before[i]) SAY("%s is another function now", family[i]);
    if (now && dladdr(now, &where) && (strstr(base_of(where.dli_fname), "dtg") || !strcmp(where.dli_fname, path)))
      SAY("%s is the library's", family[i]);
  }
  free(kept);
  if (p.close(all) != 0) SAY("handles are left");
  if (strange && (strange() != 0 || calls() == 0)) SAY("%ld blocks came from elsewhere", strange());
}

int main(int argc, char **argv) {
  const char *const what = argc > 2 ? argv[1] : "";
  alarm(100);
  if (strcmp(what, "loop") == 0) loop(argv[2]);
  else if (strcmp(what, "copies") == 0 && argc > 3) copies(argv[2], argv[3]);
  else if (strcmp(what, "paths") == 0 && argc > 3) paths(argv[2], argv[3]);
  else if (strcmp(what, "functions") == 0) functions(argv[2]);
  else return 2;
  return 0;
}
