/* checkpoint.c: our side of the rows about checkpoints, and what they are held against. It answers requests on its standard input, one
 * line each, with seconds of one attempt, over eight variables of MIB mebibytes together.
 *
 *   save MIB DIR    two figures: how long a step is held up by a save that begins, and how long until the set is on the disk
 *   copy MIB        copying as much into fresh memory
 *   write MIB DIR   writing as much into a new file and syncing it
 */
#define _POSIX_C_SOURCE 200809L
#include <dtg/dtg.h>
#include <dtg/sugar.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define TRY(call)                      \
  do {                                 \
    dtg_error *error_ = (call);        \
    if (error_ != NULL) return error_; \
  } while (0)

enum { VARIABLES = 8, PIECE = 1 << 20 };

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* What stays between two requests of one size: a model whose variables have values. */
static struct {
  long mebibytes;
  dtg_graph *graph;
  dtg_model *model;
  dtg_session *session;
  dtg_checkpoint *sets;
} kept;

static dtg_error *keep(long mebibytes, const char *directory) {
  const int64_t count = (int64_t)mebibytes * (1 << 20) / (int64_t)sizeof(float) / VARIABLES;
  dtg_variable_spec spec = DTG_VARIABLE_SPEC_INIT;
  dtg_checkpoint_options options = DTG_CHECKPOINT_OPTIONS_INIT;
  dtg_value init;
  if (kept.mebibytes == mebibytes) return NULL;
  dtg_checkpoint_release(kept.sets);
  dtg_session_release(kept.session);
  dtg_model_release(kept.model);
  dtg_graph_release(kept.graph);
  kept.mebibytes = mebibytes;
  TRY(dtg_graph_create(NULL, &kept.graph));
  TRY(dtg_model_create(kept.graph, 1, &kept.model));
  spec.name = "w";
  spec.dims = &count;
  spec.rank = 1;
  spec.initializer.kind = DTG_INIT_UNIFORM;
  spec.initializer.b = 1;
  for (int i = 0; i < VARIABLES; i++) TRY(dtg_model_add_variable(kept.model, &spec, NULL));
  TRY(dtg_model_init(kept.model, &init));
  TRY(dtg_session_connect(NULL, "local", DTG_STRLEN, kept.graph, NULL, &kept.session));
  TRY(dtg_run_target(kept.session, init));
  options.directory = directory;
  options.keep = 1;
  return dtg_checkpoint_open(kept.model, kept.session, &options, &kept.sets);
}

static dtg_error *save(long mebibytes, const char *directory) {
  TRY(keep(mebibytes, directory));
  const double begun = now();
  TRY(dtg_checkpoint_begin_save(kept.sets, 1, 0));
  const double held = now() - begun;
  TRY(dtg_checkpoint_wait(kept.sets, 0));
  printf("%.9f %.9f\n", held, now() - begun);
  return NULL;
}

static char *filled(size_t bytes) {
  char *const memory = malloc(bytes);
  for (size_t i = 0; memory && i < bytes; i++) memory[i] = (char)(i * 31 >> 3);
  return memory;
}

static void copy(long mebibytes) {
  const size_t bytes = (size_t)mebibytes << 20;
  char *const from = filled(bytes);
  const double begun = now();
  char *const to = malloc(bytes);
  if (from && to) memcpy(to, from, bytes);
  const double taken = now() - begun;
  printf("%.9f\n", from && to && to[bytes / 2] == from[bytes / 2] ? taken : 0);
  free(from);
  free(to);
}

static void write_plain(long mebibytes, const char *directory) {
  char path[4200];
  char *const from = filled(PIECE);
  snprintf(path, sizeof path, "%s/plain", directory);
  const double begun = now();
  const int file = open(path, O_WRONLY | O_CREAT | O_EXCL, 0600);
  int fine = from && file >= 0;
  for (long i = 0; fine && i < mebibytes; i++) fine = write(file, from, PIECE) == PIECE;
  fine = fine && fsync(file) == 0;
  printf("%.9f\n", fine ? now() - begun : 0);
  if (file >= 0) close(file);
  unlink(path);
  free(from);
}

int main(void) {
  char line[4096], directory[4096];
  long mebibytes = 0;
  while (fgets(line, sizeof line, stdin)) {
    dtg_error *error = NULL;
    if (sscanf(line, "save %ld %4000s", &mebibytes, directory) == 2) error = save(mebibytes, directory);
    else if (sscanf(line, "copy %ld", &mebibytes) == 1) copy(mebibytes);
    else if (sscanf(line, "write %ld %4000s", &mebibytes, directory) == 2) write_plain(mebibytes, directory);
    else return 2;
    if (error) return fprintf(stderr, "%s\n", dtg_error_message(error, NULL)), 1;
    fflush(stdout);
  }
  return 0;
}
