/* files.c: the run directory: what a training run should leave behind. RUN/ has run.json (how it was started), summary.json
 * (how it ended) and model.safetensors (weights); RUN/worker-0 and so on the curves of each task, for TensorBoard. */
#define _POSIX_C_SOURCE 200809L
#include "fashion_mnist.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static FILE *open_in(const char *directory, const char *name, const char *mode) {
  char path[4096];
  snprintf(path, sizeof path, "%s/%s", directory, name);
  FILE *file = fopen(path, mode);
  if (!file) fprintf(stderr, "cannot write %s: %s\n", path, strerror(errno));
  return file;
}

static void write_string(FILE *file, const char *text) {
  fputc('"', file);
  for (const unsigned char *c = (const unsigned char *)text; *c; c++) {
    if (*c < 32 || *c == '"' || *c == '\\') fprintf(file, "\\u%04x", *c);
    else fputc(*c, file);
  }
  fputc('"', file);
}

dtg_error *open_events(const struct options *options, const struct place *place, int64_t begun_at, dtg_event_writer **out) {
  char path[4096];
  dtg_event_writer_options events = DTG_EVENT_WRITER_OPTIONS_INIT;
  events.resumed_at_step = begun_at + 1; /* takes the place of what an earlier run, or life, left there about later steps */
  snprintf(path, sizeof path, "%s/%s", options->run, place->name);
  return dtg_event_writer_open(path, DTG_STRLEN, &events, out);
}

/* What a parameter server has to tell: its variables and who used them. */
dtg_error *write_server_status(const struct options *options, const struct place *place) {
  dtg_event_writer *events = NULL;
  dtg_string *status = NULL;
  size_t length = 0;
  TRY(dtg_server_status(place->server, &status));
  dtg_error *error = open_events(options, place, 0, &events);
  const char *text = dtg_string_data(status, &length);
  if (!error) error = dtg_event_writer_text(events, "status", DTG_STRLEN, 0, text, length);
  if (!error) error = dtg_event_writer_close(events);
  dtg_event_writer_release(events);
  dtg_string_release(status);
  return error;
}

int write_run(const struct options *options, int argc, char **argv) {
  FILE *file = open_in(options->run, "run.json", "w");
  if (!file) return 0;
  fprintf(file, "{\"arguments\": [");
  for (int i = 0; i < argc; i++) {
    if (i) fputs(", ", file);
    write_string(file, argv[i]);
  }
  fprintf(file, "], \"seed\": %llu, \"epochs\": %d, \"batch\": %d, \"rate\": %g, \"dtg_version\": \"%s\", \"abi_version\": \"%u.%u\"}\n",
          (unsigned long long)options->seed, options->epochs, options->batch, options->rate, dtg_version(), dtg_abi_version() >> 16,
          dtg_abi_version() & 0xffff);
  return fclose(file) == 0;
}

static double speed_of(const struct report *r) { return r->seconds > 0 ? r->images / r->seconds : 0; }

/* What became of the updates, where they are counted, and how often a worker was started again and went on. What the
 * library repeats by itself when a parameter server comes back is not among that: nobody here sees it. */
static void write_ledger(FILE *file, const struct training_run *run) {
  const struct tally *t = &run->tally;
  double recoveries = 0;
  for (int i = 0; i < MAX_WORKERS; i++) recoveries += run->reports[i].recoveries;
  fprintf(file, "\"recoveries\": %.0f, ", recoveries);
  if (t->expected == 0) return;
  fprintf(file, "\"ledger\": {\"expected\": %lld, \"counted\": %lld, \"lost\": %lld, \"doubled\": %lld}, ", (long long)t->expected,
          (long long)t->counted, (long long)t->lost, (long long)t->doubled);
}

static void write_tasks(FILE *file, const struct place *place, const struct training_run *run) {
  const int workers = count_workers(place);
  fputs("\"tasks\": {", file);
  for (int i = 0; i < workers && i < MAX_WORKERS; i++) {
    const struct report *r = &run->reports[i];
    fprintf(file, "%s\"worker/%d\": {\"steps\": %.0f, \"images\": %.0f, \"seconds\": %.3f, \"images_per_second\": %.1f}", i ? ", " : "", i,
            r->steps, r->images, r->seconds, speed_of(r));
  }
  fputs("}", file);
}

int write_summary(const struct options *options, const struct place *place, const struct data *data, const struct training_run *run) {
  const char *channel = getenv("DTG_CHANNEL");
  char loss[32] = "null"; /* where an earlier life of the chief made the last step */
  if (run->steps > run->begun_at) snprintf(loss, sizeof loss, "%.6f", run->loss);
  double speed = 0; /* of those that have reported: after an interrupt the chief alone */
  for (int i = 0; i < MAX_WORKERS; i++) speed += speed_of(&run->reports[i]);
  FILE *file = open_in(options->run, "summary.json", "w");
  if (!file) return 0;
  fprintf(file,
          "{\"dataset\": \"%s\", \"accuracy\": %.6f, \"loss\": %s, \"steps\": %lld, \"epochs\": %d, \"seconds\": %.3f, "
          "\"images_per_second\": %.1f, \"seed\": %llu, \"interrupted\": %s, ",
          data->name, run->accuracy, loss, (long long)run->steps, options->epochs, run->seconds, speed, (unsigned long long)options->seed,
          interrupted ? "true" : "false");
  fprintf(file, "\"mode\": \"%s\", \"channel\": \"%s\", \"workers\": %d, \"ps\": %d, \"shards\": %d, ",
          !place->cluster      ? "alone"
          : place->coordinates ? options->strategy
                               : options->mode,
          !place->cluster ? "none"
          : channel       ? channel
                          : "unknown",
          count_workers(place), place->cluster ? place->task.num_ps : 0, options->shards);
  write_ledger(file, run);
  write_tasks(file, place, run);
  fputs("}\n", file);
  return fclose(file) == 0;
}

dtg_error *save_weights(const struct options *options, const struct network *n, const struct training_run *run) {
  char path[4096];
  snprintf(path, sizeof path, "%s/model.safetensors", options->run);
  return dtg_model_save(n->model, run->session, path, DTG_STRLEN);
}
