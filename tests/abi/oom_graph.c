/* Memory that runs out while graphs are built, written, read and run by one process, and in the runtime below them: tensors, nodes and
 * scopes, functions and what calls them, every way to run. See oom.h for how it fails, and what must hold then. */
#define _GNU_SOURCE
#include "oom.h"

#if OWN_ALLOCATOR
static const int64_t four[] = {4}, two_by_two[] = {2, 2};

/* ---- what has no graph yet ---- */

static int tensors(void) {
  const char *const words[] = {"one", "a longer word than fits into a short one", "", "three"};
  const size_t lengths[] = {3, 2, 0, 5};
  size_t nbytes = 0;
  PART(new_tensor(0, DTG_F32, four, 1));
  TRY(dtg_tensor_create(DTG_F32, two_by_two, 2, dtg_tensor_mutable_data(h.tensor[0]), 16, NULL, NULL, &h.tensor[1]));
  TRY(dtg_tensor_create_strings(four, 1, words, NULL, &h.tensor[2]));
  TRY(dtg_tensor_create_packed_strings(four, 1, "oneone there", 10, lengths, &h.tensor[3]));
  HOLDS(dtg_tensor_string(h.tensor[2], 1, &nbytes) != NULL && nbytes == strlen(words[1]));
  HOLDS(dtg_tensor_dtype(h.tensor[1]) == DTG_F32 && dtg_tensor_rank(h.tensor[1]) == 2 && dtg_tensor_dim(h.tensor[1], 1) == 2);
  HOLDS(dtg_tensor_data(h.tensor[1], NULL) != NULL && dtg_tensor_count(h.tensor[1]) == 4);
  h.tensor[4] = dtg_tensor_retain(h.tensor[3]);
  return 1;
}

static int given_back;
static void give_back(void *data, size_t nbytes, void *user) {
  (void)data, (void)nbytes, (void)user;
  given_back++;
}

/* Borrowed memory is given back once, and not by a call that failed. */
static int loans(void) {
  static float lent[4];
  DLManagedTensorVersioned *managed = NULL;
  DLManagedTensor *plain = NULL;
  given_back = 0;
  TRY(dtg_tensor_create(DTG_F32, four, 1, lent, sizeof lent, give_back, NULL, &h.tensor[0]));
  TRY(dtg_tensor_to_dlpack(h.tensor[0], 1, &managed));
  dtg_error *error = dtg_tensor_from_dlpack(managed, &h.tensor[1]);
  for (int i = 0; error && i < 2; i++) { /* it is still ours */
    dtg_error_release(error);
    fail_no_more();
    error = dtg_tensor_from_dlpack(managed, &h.tensor[1]);
  }
  HOLDS(error == NULL);
  TRY(dtg_tensor_to_dlpack_unversioned(h.tensor[1], &plain));
  error = dtg_tensor_from_dlpack_unversioned(plain, &h.tensor[2]);
  if (error) {
    dtg_error_release(error);
    fail_no_more();
    error = dtg_tensor_from_dlpack_unversioned(plain, &h.tensor[2]);
  }
  HOLDS(error == NULL && given_back == 0);
  LET_GO(tensor, h.tensor);
  memset(h.tensor, 0, sizeof h.tensor);
  HOLDS(given_back == 1);
  return 1;
}

/* What needs no memory: it answers the same with and without. */
static int answers(void) {
  TRY(dtg_cluster_parse("ps=unix:/a;worker=unix:/b,unix:/c", DTG_STRLEN, &h.cluster));
  const long before = calls;
  HOLDS(dtg_abi_version() != 0 && dtg_version()[0] != 0 && dtg_has_feature("cpu") == 1 && dtg_live_handles() > 0);
  HOLDS(dtg_dtype_size(DTG_F32) == 4 && strcmp(dtg_dtype_name(DTG_F32), "float32") == 0 && dtg_dtype_from_name("float32") == DTG_F32);
  HOLDS(strcmp(dtg_code_name(DTG_OK), "OK") == 0 && dtg_runtime_threads(runtime) == 2);
  HOLDS(dtg_cluster_job_count(h.cluster) == 2 && strcmp(dtg_cluster_job(h.cluster, 1), "worker") == 0);
  HOLDS(dtg_cluster_task_count(h.cluster, "worker") == 2 && dtg_cluster_task_index(h.cluster, "worker", 1) == 1);
  HOLDS(strcmp(dtg_cluster_address(h.cluster, "ps", 0), "unix:/a") == 0);
  dtg_cluster_release(dtg_cluster_retain(h.cluster));
  HOLDS(calls == before || way != WHOLE);
  return 1;
}

/* An error of the host's is never lost: without memory it is that. */
static int errors(void) {
  size_t length = 0;
  h.error = dtg_error_create(DTG_NOT_FOUND, "nothing of the name that was asked for is here", DTG_STRLEN);
  const dtg_code code = dtg_error_code(h.error);
  HOLDS(h.error != NULL && (code == DTG_NOT_FOUND || (code == DTG_RESOURCE_EXHAUSTED && way != WHOLE)));
  HOLDS(dtg_error_message(h.error, &length)[0] != 0 && length > 0 && dtg_error_node(h.error)[0] == 0 && dtg_error_task(h.error)[0] == 0);
  HOLDS(dtg_error_peer(h.error)[0] == 0 && dtg_error_phase(h.error)[0] == 0);
  dtg_error_release(dtg_error_retain(h.error));
  return 1;
}

static void log_line(void *user, dtg_log_level level, const char *component, const char *message) {
  (void)user, (void)level, (void)component, (void)message;
}

/* A runtime of one's own, its tables and numbers. */
static int runtimes(void) {
  dtg_runtime_options options = DTG_RUNTIME_OPTIONS_INIT;
  size_t nbytes = 0;
  options.compute_threads = 2;
  options.log = log_line;
  options.log_level = DTG_LOG_DEBUG;
  TRY(dtg_runtime_create(&options, &h.own));
  TRY(dtg_runtime_metrics(h.own, &h.string[0]));
  TRY(dtg_runtime_trace_start(h.own));
  TRY(dtg_runtime_trace_stop(h.own, &h.string[1]));
  TRY(dtg_runtime_trim(h.own));
  HOLDS(dtg_string_data(h.string[0], &nbytes)[0] != 0 && nbytes > 0);
  dtg_runtime_release(dtg_runtime_retain(h.own));
  return 1;
}

static int op_table(void) {
  TRY(dtg_ops_json(runtime, &h.string[0]));
  return 1;
}

/* ---- building ---- */

static int scoped(dtg_graph *g, dtg_value x, dtg_value *y) {
  dtg_device_setter setter = DTG_DEVICE_SETTER_INIT;
  setter.ps_tasks = 2;
  setter.strategy = DTG_SETTER_GREEDY_BYTES;
  TRY(dtg_graph_push_name_scope(g, "outer", DTG_STRLEN));
  TRY(dtg_graph_push_device(g, "/device:CPU:1", DTG_STRLEN));
  TRY(dtg_graph_push_controls(g, &x, 1));
  TRY(dtg_graph_push_colocation(g, x));
  TRY(dtg_add1(g, "Neg", x, y));
  TRY(dtg_graph_pop_colocation(g));
  TRY(dtg_graph_pop_controls(g));
  TRY(dtg_graph_pop_device(g));
  TRY(dtg_graph_pop_name_scope(g));
  TRY(dtg_graph_push_device_setter(g, &setter));
  TRY(dtg_add1(g, "ZerosLike", x, y));
  TRY(dtg_graph_pop_device(g));
  TRY(dtg_graph_push_recompute(g));
  TRY(dtg_add1(g, "Exp", x, y));
  TRY(dtg_add2(g, "Mul", *y, *y, y));
  TRY(dtg_graph_pop_recompute(g));
  return 1;
}

static int asked(dtg_graph *g, dtg_value y) {
  const char *text = NULL;
  size_t length = 0;
  int64_t dims[4];
  int32_t number = 0;
  dtg_value found;
  TRY(dtg_graph_node_at(g, 0, &found));
  TRY(dtg_graph_find(g, "outer/Neg", DTG_STRLEN, &found));
  TRY(dtg_value_name(g, y, &text, &length));
  TRY(dtg_value_op(g, y, &text, NULL));
  TRY(dtg_value_device(g, found, &text, NULL));
  TRY(dtg_value_num_outputs(g, y, &length));
  TRY(dtg_value_output(g, y, 0, &found));
  TRY(dtg_value_dtype(g, y, &number));
  TRY(dtg_value_shape(g, y, dims, 4, &number));
  HOLDS(number == 1 && dims[0] == -1 && found.id == y.id);
  return 1;
}

static int graphs(void) {
  const int64_t open[] = {-1};
  const int64_t rows[] = {1, 0};
  dtg_value x, y, ids, table, row, sum;
  dtg_gradient gradients[2];
  size_t nbytes = 0;
  TRY(dtg_graph_create(runtime, &h.graph[0]));
  dtg_graph *const g = h.graph[0];
  TRY(dtg_placeholder(g, "x", DTG_F32, open, 1, &x));
  PART(scoped(g, x, &y));
  PART(asked(g, y));
  PART(new_tensor(0, DTG_F32, two_by_two, 2));
  TRY(dtg_const(g, h.tensor[0], &table));
  TRY(dtg_const_i64s(g, rows, 2, &ids));
  TRY(dtg_const_of(g, DTG_I64, NULL, 0, rows + 1, 8, &sum));
  TRY(dtg_add_gather_v2(g, NULL, table, ids, sum, NULL, &row));
  TRY(dtg_add1(g, "L2Loss", row, &row));
  const dtg_value ys[] = {y, row}, xs[] = {x, table};
  TRY(dtg_graph_add_gradients(g, ys, 2, xs, 2, NULL, gradients));
  TRY(dtg_graph_densify(g, &gradients[1], &sum));
  TRY(dtg_graph_serialize(g, &h.string[0]));
  const size_t nodes = dtg_graph_node_count(g);
  TRY(dtg_graph_create(runtime, &h.graph[1]));
  const char *const bytes = dtg_string_data(h.string[0], &nbytes);
  ONCE(dtg_graph_import(h.graph[1], bytes, nbytes)); /* it may hold some of the nodes by then */
  HOLDS(dtg_graph_node_count(h.graph[1]) == nodes);
  dtg_graph_release(dtg_graph_retain(g));
  return 1;
}

/* ---- functions ---- */

/* Function k of `h`, of one argument like `x`: argument and captured value through one op. */
static int new_function(int k, dtg_value like, const char *type, dtg_value captured) {
  dtg_value argument, result;
  TRY(dtg_function_begin(h.graph[0], type, DTG_STRLEN, &h.body));
  TRY(dtg_function_add_argument_like(h.body, like, &argument));
  TRY(dtg_add2(h.body, type, argument, captured, &result));
  TRY(dtg_function_end(h.body, &result, 1, NULL, 0, &h.function[k]));
  dtg_graph_release(h.body);
  h.body = NULL;
  return 1;
}

/* A function that captures its value and has no argument: a branch. */
static int new_branch(int k, const char *type, dtg_value captured) {
  dtg_value result;
  TRY(dtg_function_begin(h.graph[0], NULL, 0, &h.body));
  TRY(dtg_add1(h.body, type, captured, &result));
  TRY(dtg_function_end(h.body, &result, 1, &result, 1, &h.function[k]));
  dtg_graph_release(h.body);
  h.body = NULL;
  return 1;
}

static int functions(void) {
  dtg_value x, limit, y[4], argument, captures[2];
  dtg_gradient gradient;
  size_t count = 0;
  TRY(dtg_graph_create(runtime, &h.graph[0]));
  dtg_graph *const g = h.graph[0];
  TRY(dtg_placeholder(g, "x", DTG_F32, NULL, 0, &x));
  TRY(dtg_const_f32(g, 3, &limit));
  PART(new_function(0, x, "Less", limit));
  PART(new_function(1, x, "AddV2", x));
  TRY(dtg_graph_add_while(g, &x, 1, h.function[0], h.function[1], &y[0]));
  TRY(dtg_function_captures(h.function[1], captures, 2, &count));
  HOLDS(count == 1 && captures[0].id == x.id);
  TRY(dtg_graph_add_call(g, h.function[1], &x, 1, &y[1], 1));
  PART(new_branch(2, "Square", y[0]));
  PART(new_branch(3, "Neg", y[1]));
  TRY(dtg_graph_add_if(g, x, h.function[2], h.function[3], &y[2], 1));
  TRY(dtg_const_of(g, DTG_I32, NULL, 0, &(int32_t){1}, 4, &argument));
  const dtg_function *const branches[] = {h.function[2], h.function[3]};
  TRY(dtg_graph_add_case(g, argument, branches, 2, &y[3], 1));
  TRY(dtg_add2(g, "AddV2", y[2], y[3], &y[2]));
  TRY(dtg_graph_add_gradients(g, &y[2], 1, &x, 1, NULL, &gradient));
  TRY(dtg_function_begin(g, "of its own", DTG_STRLEN, &h.body));
  TRY(dtg_function_add_argument(h.body, DTG_F32, NULL, 0, &argument));
  dtg_function_release(dtg_function_retain(h.function[0]));
  PART(new_tensor(0, DTG_F32, NULL, 0));
  *(float *)dtg_tensor_mutable_data(h.tensor[0]) = 1;
  float value = 0;
  TRY(dtg_session_connect(runtime, NULL, 0, g, NULL, &h.session[0]));
  TRY(dtg_step_f32(h.session[0], &x, h.tensor, 1, gradient.dense, (dtg_value){0}, &value));
  HOLDS(value != 0);
  return 1;
}

/* ---- runs ---- */

/* y = x * w twice, on two devices, w a variable; the target adds to it. */
struct net {
  dtg_value x, y, update;
};

static int new_net(struct net *n) {
  dtg_variable_spec spec = DTG_VARIABLE_SPEC_INIT;
  dtg_variable w = DTG_VARIABLE_INIT;
  PART(new_graph(0));
  spec.name = "w";
  spec.dims = four;
  spec.rank = 1;
  spec.initializer.kind = DTG_INIT_ONES;
  TRY(dtg_placeholder(h.graph[0], "x", DTG_F32, four, 1, &n->x));
  TRY(dtg_model_add_variable(h.model[0], &spec, &w));
  TRY(dtg_add2(h.graph[0], "Mul", n->x, w.read, &n->y));
  TRY(dtg_graph_push_device(h.graph[0], "/device:EMU:0", DTG_STRLEN));
  TRY(dtg_add2(h.graph[0], "Mul", n->y, n->y, &n->y));
  TRY(dtg_graph_pop_device(h.graph[0]));
  TRY(dtg_add_assign_add_variable_op(h.graph[0], NULL, w.handle, n->x, &n->update));
  PART(new_tensor(0, DTG_F32, four, 1));
  return begin_session(0, NULL);
}

/* The end of the run that was started, which must come. */
static int ended(dtg_cq *cq) {
  dtg_completion done = {0, NULL};
  size_t count = 0;
  while (count == 0) TRY(dtg_cq_next(cq, &done, 0, 1, DTG_INFINITE, &count));
  ONCE(done.error);
  return 1;
}

static int runs(void) {
  struct net n;
  int32_t brief = 0;
  dtg_run_args args = DTG_RUN_ARGS_INIT;
  PART(new_net(&n));
  args.feeds = &n.x;
  args.feed_tensors = (const dtg_tensor *const *)h.tensor;
  args.num_feeds = 1;
  args.fetches = &n.y;
  args.fetched = &h.tensor[1];
  args.num_fetches = 1;
  args.targets = &n.update;
  args.num_targets = 1;
  TRY(dtg_cancellation_create(&h.cancellation));
  args.cancellation = h.cancellation;
  TRY(dtg_session_run(h.session[0], &args));
  args.fetched = &h.tensor[2];
  args.cancellation = NULL;
  args.num_fetches = 0;
  TRY(dtg_session_run_if_brief(h.session[0], &args, &brief));
  args.num_fetches = 1;
  TRY(dtg_session_prepare(h.session[0], &args, &h.callable));
  TRY(dtg_callable_run(h.callable, args.feed_tensors, 1, &h.tensor[2], 1, 0));
  TRY(dtg_callable_run_cancellable(h.callable, args.feed_tensors, 1, &h.tensor[2], 1, 0, h.cancellation));
  args.fetched = NULL;
  TRY(dtg_cq_create(&h.cq));
  HOLDS(dtg_cq_fd(h.cq) >= 0);
  TRY(dtg_session_run_async(h.session[0], &args, h.cq, 1, &h.run));
  PART(ended(h.cq));
  TRY(dtg_run_take_result(h.run, 0, &h.tensor[3]));
  dtg_run_cancel(h.run);
  dtg_cancellation_cancel(h.cancellation);
  HOLDS(dtg_session_device_count(h.session[0]) == 4 && dtg_session_device_name(h.session[0], 0) != NULL);
  dtg_callable_release(dtg_callable_retain(h.callable));
  dtg_run_release(dtg_run_retain(h.run));
  dtg_cq_release(dtg_cq_retain(h.cq));
  dtg_session_release(dtg_session_retain(h.session[0]));
  dtg_cancellation_release(dtg_cancellation_retain(h.cancellation));
  return 1;
}

/* A run that goes on until it is cancelled, looked at meanwhile; and the ends of a session. */
static int sessions(void) {
  struct net n;
  dtg_completion done = {0, NULL};
  size_t count = 0;
  dtg_plan_args plan = DTG_PLAN_ARGS_INIT;
  const dtg_dtype type = DTG_F32;
  const int64_t *const dims = four;
  const size_t rank = 1;
  dtg_outcome outcome = 0;
  PART(new_net(&n));
  plan.feeds = &n.x;
  plan.feed_dtypes = &type;
  plan.feed_dims = &dims;
  plan.feed_ranks = &rank;
  plan.num_feeds = 1;
  plan.fetches = &n.y;
  plan.num_fetches = 1;
  plan.pass = "all";
  TRY(dtg_session_plan_text(h.session[0], &plan, &h.string[0]));
  TRY(dtg_add1(h.graph[0], "Neg", n.x, &n.y));
  TRY(dtg_const_f32(h.graph[0], 1, &n.x));
  TRY(dtg_cq_create(&h.cq));
  TRY(dtg_session_run_repeatedly(h.session[0], &n.x, 1, h.cq, 1, &h.run));
  dtg_run_cancel(h.run);
  while (count == 0) TRY(dtg_cq_next(h.cq, &done, 0, 1, DTG_INFINITE, &count));
  HOLDS(dtg_error_code(done.error) == DTG_CANCELLED || way != WHOLE);
  dtg_error_release(done.error);
  TRY(dtg_session_barrier(h.session[0], "all", DTG_STRLEN, 0));
  dtg_error *const no_such_run = dtg_session_outcome(h.session[0], UINT64_C(1) << 40, 0, &outcome);
  HOLDS(no_such_run != NULL);
  dtg_error_release(no_such_run);
  TRY(dtg_session_reset(h.session[0], NULL, 0));
  TRY(dtg_session_close(h.session[0], 0));
  return 1;
}

static const struct scene scenes[] = {
    {"tensors", tensors, 0, 0},   {"loans", loans, 0, 0},       {"answers", answers, 0, 0}, {"errors", errors, 0, 0},
    {"runtimes", runtimes, 0, 0}, {"op table", op_table, 0, 0}, {"graphs", graphs, 0, 0},   {"functions", functions, 0, 0},
    {"runs", runs, 0, 0},         {"sessions", sessions, 0, 0},
};
#endif

STAGE("graph", scenes)
