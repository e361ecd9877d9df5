/* durability.c: a client of one parameter server that is killed and started again under it. It answers requests on its standard input, one
 * line each; seconds where nothing else is said.
 *
 *   init MIB   gives eight variables of MIB mebibytes together, and a count of steps, their first values
 *   step       adds one to the count; a task that is away is waited for, so this is how long somebody who trains would stand
 *   count      how many steps the server has counted
 */
#define _POSIX_C_SOURCE 200809L
#include <dtg/dtg.h>
#include <dtg/sugar.h>
#include <dtg/sugar_ops.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#define TRY(call)                      \
  do {                                 \
    dtg_error *error_ = (call);        \
    if (error_ != NULL) return error_; \
  } while (0)

enum { VARIABLES = 8 };

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static struct {
  dtg_graph *graph;
  dtg_model *model;
  dtg_session *session;
  dtg_variable count;
  dtg_value step;
} job;

static dtg_error *init(const char *target, long mebibytes) {
  const int64_t size = (int64_t)mebibytes * (1 << 20) / (int64_t)sizeof(float) / VARIABLES;
  dtg_variable_spec spec = DTG_VARIABLE_SPEC_INIT;
  dtg_value value, init;
  TRY(dtg_graph_create(NULL, &job.graph));
  TRY(dtg_model_create(job.graph, 1, &job.model));
  TRY(dtg_graph_push_device(job.graph, "/job:ps/task:0", DTG_STRLEN));
  spec.name = "w";
  spec.dims = &size;
  spec.rank = 1;
  spec.initializer.kind = DTG_INIT_UNIFORM;
  spec.initializer.b = 1;
  for (int i = 0; i < VARIABLES; i++) TRY(dtg_model_add_variable(job.model, &spec, NULL));
  job.count.struct_size = sizeof job.count;
  TRY(dtg_variable_f32(job.model, "count", 0, &job.count));
  TRY(dtg_const_f32(job.graph, 1, &value));
  TRY(dtg_add_assign_add_variable_op(job.graph, NULL, job.count.handle, value, &job.step));
  TRY(dtg_model_init(job.model, &init));
  TRY(dtg_graph_pop_device(job.graph));
  TRY(dtg_session_connect(NULL, target, DTG_STRLEN, job.graph, NULL, &job.session));
  return dtg_run_target(job.session, init);
}

static dtg_error *step(void) {
  dtg_run_args args = DTG_RUN_ARGS_INIT;
  args.targets = &job.step;
  args.num_targets = 1;
  args.timeout_ns = INT64_C(60000000000);
  return dtg_session_run(job.session, &args);
}

int main(int argc, char **argv) {
  char line[256];
  if (argc != 2) return 2;
  while (fgets(line, sizeof line, stdin)) {
    long mebibytes = 0;
    float counted = 0;
    dtg_error *error = NULL;
    const double begun = now();
    if (sscanf(line, "init %ld", &mebibytes) == 1) error = init(argv[1], mebibytes);
    else if (strncmp(line, "step", 4) == 0) error = step();
    else if (strncmp(line, "count", 5) == 0) error = dtg_run_f32(job.session, job.count.read, (dtg_value){0}, &counted);
    else return 2;
    if (error) return fprintf(stderr, "%s\n", dtg_error_message(error, NULL)), 1;
    printf("%.9f\n", line[0] == 'c' ? (double)counted : now() - begun);
    fflush(stdout);
  }
  return 0;
}
