/* group.c: one worker of a job that trains by all-reduce, without a parameter server; the job's tasks and this one's place come from
 * TF_CONFIG. Each step reduces a dense gradient and gathers the rows of a sparse one. When a worker is lost the others go on with what
 * they have, from the step that the furthest of them has made: none is lost, none made twice.
 *
 *   dtg run --local --ps 0 --workers 4 -- example_group 100
 */
#define _DEFAULT_SOURCE
#include <dtg/dtg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#define TRY(call) do { if ((err = (call)) != NULL) goto done; } while (0)
#define WIDTH 20000 /* more than a frame: on one host it travels through shared memory */
#define ROWS 8

/* What is trained: it must be the same on every worker. The steps that were made travel with it. */
struct model { float weights[WIDTH]; float rows[ROWS]; float steps; };
struct worker { dtg_cluster *cluster; dtg_server *server; dtg_group *group; struct model model; };

static void drop(void *data, size_t bytes, void *user) { (void)data; (void)bytes; (void)user; }

/* A tensor around memory of ours. */
static dtg_error *around(dtg_dtype dtype, int64_t count, void *data, dtg_tensor **out) {
  return dtg_tensor_create(dtype, &count, 1, data, (size_t)count * (dtype == DTG_I64 ? 8 : 4), drop, NULL, out);
}

/* Reduced in place. */
static dtg_error *reduce(struct worker *w, dtg_reduction how, float *values, int64_t count) {
  dtg_error *err = NULL; dtg_tensor *tensor = NULL; dtg_collective_args args = DTG_COLLECTIVE_ARGS_INIT;
  args.reduction = how;
  TRY(around(DTG_F32, count, values, &tensor));
  TRY(dtg_group_all_reduce(w->group, tensor, &args, &tensor));
done:
  dtg_tensor_release(tensor);
  return err;
}

/* Rows by their index, of which every rank has others: gathered, then added where they belong, in the order of the ranks. */
static dtg_error *add_rows(struct worker *w, float *rows) {
  dtg_error *err = NULL; dtg_tensor *index = NULL, *value = NULL, *indices = NULL, *values = NULL; size_t bytes;
  const int rank = dtg_group_rank(w->group);
  int64_t mine[2] = {rank % ROWS, 0}; float ones[2] = {1, 1};
  TRY(around(DTG_I64, 1 + rank % 2, mine, &index));
  TRY(around(DTG_F32, 1 + rank % 2, ones, &value));
  TRY(dtg_group_all_gather(w->group, index, NULL, &indices));
  TRY(dtg_group_all_gather(w->group, value, NULL, &values));
  const int64_t *at = dtg_tensor_data(indices, &bytes);
  const float *add = dtg_tensor_data(values, NULL);
  for (size_t i = 0; i < bytes / sizeof *at; i++) rows[at[i]] += add[i];
done:
  dtg_tensor_release(index); dtg_tensor_release(value); dtg_tensor_release(indices); dtg_tensor_release(values);
  return err;
}

/* The model is changed only when everything of the step is there. */
static dtg_error *step(struct worker *w) {
  dtg_error *err = NULL; struct model next = w->model; float gradient[WIDTH];
  for (int i = 0; i < WIDTH; i++) gradient[i] = next.steps + 1;
  TRY(reduce(w, DTG_REDUCE_MEAN, gradient, WIDTH));
  TRY(add_rows(w, next.rows));
  for (int i = 0; i < WIDTH; i++) next.weights[i] += gradient[i];
  next.steps += 1;
  w->model = next;
done:
  return err;
}

/* After a loss or at the start: everybody has what the furthest has. */
static dtg_error *agree(struct worker *w) {
  dtg_error *err = NULL; float furthest = w->model.steps, root; dtg_tensor *mine = NULL, *whole = NULL;
  dtg_collective_args args = DTG_COLLECTIVE_ARGS_INIT;
  TRY(reduce(w, DTG_REDUCE_MAX, &furthest, 1));
  root = w->model.steps == furthest ? (float)dtg_group_rank(w->group) : 1e9f;
  TRY(reduce(w, DTG_REDUCE_MIN, &root, 1));
  args.root = (int32_t)root;
  TRY(around(DTG_F32, sizeof w->model / sizeof(float), &w->model, &mine));
  whole = mine;
  TRY(dtg_group_broadcast(w->group, mine, &args, &whole));
done:
  dtg_tensor_release(mine);
  return err;
}

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static dtg_error *train(struct worker *w, float steps, int pause_us) {
  dtg_error *err = NULL;
  for (int anew = 1; w->model.steps < steps;) {
    err = anew ? agree(w) : step(w);
    anew = 0;
    if (pause_us) usleep((useconds_t)pause_us);
    if (err == NULL) continue;
    /* Who is lost is named in the message; the others go on without it. */
    printf("lost: %s\n", dtg_error_message(err, NULL));
    if (dtg_error_code(err) != DTG_UNAVAILABLE && dtg_error_code(err) != DTG_ABORTED) return err;
    dtg_error_release(err);
    const double began = now();
    TRY(dtg_group_reform(w->group, 1, 0));
    printf("re-formed in %.3f s: rank %d of %d, epoch %llu\n", now() - began, (int)dtg_group_rank(w->group), (int)dtg_group_size(w->group),
           (unsigned long long)dtg_group_epoch(w->group));
    anew = 1;
  }
done:
  return err;
}

/* Alone, when no job is said. */
static dtg_error *place(struct worker *w, dtg_server_options *options, char *folder, size_t size) {
  dtg_error *err = NULL; dtg_task self = DTG_TASK_INIT; char spec[256];
  TRY(dtg_cluster_from_tf_config(NULL, 0, &w->cluster, &self));
  if (w->cluster != NULL) {
    options->job = strcmp(self.type, "chief") == 0 ? "chief" : "worker"; options->task = self.index;
  } else {
    snprintf(folder, size, "/tmp/dtg-group-XXXXXX");
    if (mkdtemp(folder) == NULL) { perror(folder); exit(2); }
    snprintf(spec, sizeof spec, "worker=unix:%s/w", folder);
    TRY(dtg_cluster_parse(spec, DTG_STRLEN, &w->cluster));
  }
done:
  return err;
}

int main(int argc, char **argv) {
  dtg_error *err = NULL; char folder[64] = ""; static struct worker w;
  dtg_server_options options = DTG_SERVER_OPTIONS_INIT;
  const char *const steps = argc > 1 && strcmp(argv[1], "--smoke") != 0 ? argv[1] : "10";
  setvbuf(stdout, NULL, _IOLBF, 0);
  TRY(place(&w, &options, folder, sizeof folder));
  TRY(dtg_server_start(NULL, w.cluster, &options, &w.server));
  TRY(dtg_group_join(w.server, NULL, &w.group));
  printf("joined: rank %d of %d\n", (int)dtg_group_rank(w.group), (int)dtg_group_size(w.group));
  TRY(train(&w, (float)atof(steps), argc > 2 ? atoi(argv[2]) : 0));
  TRY(dtg_group_barrier(w.group, 0));
  printf("done: %g steps, weight %g, row %g\n", (double)w.model.steps, (double)w.model.weights[0], (double)w.model.rows[0]);
done:
  if (err) fprintf(stderr, "%s: %s\n", dtg_code_name(dtg_error_code(err)), dtg_error_message(err, NULL));
  dtg_group_release(w.group); dtg_server_release(w.server); dtg_cluster_release(w.cluster);
  if (folder[0]) rmdir(folder);
  dtg_error_release(err);
  return err != NULL;
}
