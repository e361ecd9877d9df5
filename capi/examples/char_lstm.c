/* char_lstm.c: a recurrent network learns six words, letter by letter, in sequences of different lengths, and then writes them from their
 * first letter. Alone it trains in this process; as the worker of a job (TF_CONFIG) it keeps its variables on the ps, with the same losses.
 * --device places everything else, and --cell the steps of the network, inside the loops. The same in Go, Rust and Java: bindings/.
 *
 *   example_char_lstm [--device /device:EMU:0 [--cell /device:EMU:1]]
 *   dtg run --local --ps 1 --workers 1 -- example_char_lstm
 */
#include <dtg/dtg.h>
#include <dtg/sugar.h>
#include <dtg/sugar_ops.h>
#include <stdio.h>
#include <string.h>
#define TRY(call) do { if ((err = (call)) != NULL) goto done; } while (0)
#define OF(...) (const dtg_value[]){__VA_ARGS__}, sizeof((const dtg_value[]){__VA_ARGS__}) / sizeof(dtg_value)
enum { LETTERS = 27, EMBEDDING = 8, HIDDEN = 16, SEQUENCES = 3, STEPS = 60, LONGEST = 12 }; /* letter 0 ends a word */
static const char *const words[2][SEQUENCES] = {{"if", "loop", "case"}, {"graph", "tensor", "variable"}};

struct network { /* what is NULL was not made */
  dtg_graph *graph; dtg_model *model; dtg_session *session;
  dtg_value rows, kernel, bias, output, offset; /* weights */
  dtg_value text, lengths, first;               /* fed */
  dtg_value loss, written, init; dtg_training training;
  const char *cell_device; /* "": as what is around it */
};

/* ---- small things ---- */

static dtg_error *i32(dtg_graph *g, int32_t value, dtg_value *out) { return dtg_const_of(g, DTG_I32, NULL, 0, &value, sizeof value, out); }

static dtg_error *i32s(dtg_graph *g, const int32_t *values, int64_t count, dtg_value *out) {
  return dtg_const_of(g, DTG_I32, &count, 1, values, sizeof *values * (size_t)count, out);
}

static dtg_error *zeros(dtg_graph *g, int64_t rows, dtg_value *out) {
  static const float nothing[SEQUENCES * HIDDEN];
  const int64_t dims[] = {rows, HIDDEN};
  return dtg_const_of(g, DTG_F32, dims, 2, nothing, sizeof(float) * HIDDEN * (size_t)rows, out);
}

/* An op whose second input is a scalar. */
static dtg_error *with(dtg_graph *g, const char *op, dtg_value x, int32_t number, dtg_value *out) {
  dtg_error *err = NULL; dtg_value scalar;
  TRY(i32(g, number, &scalar)); TRY(dtg_add2(g, op, x, scalar, out));
done:
  return err;
}

static dtg_error *variable(struct network *n, const char *name, dtg_initializer_kind kind, int64_t rows, int64_t columns, dtg_value *out) {
  dtg_variable_spec spec = DTG_VARIABLE_SPEC_INIT; dtg_variable made = DTG_VARIABLE_INIT;
  const int64_t dims[] = {rows, columns};
  dtg_error *err;
  spec.name = name; spec.dims = rows ? dims : dims + 1; spec.rank = rows ? 2 : 1; spec.initializer.kind = kind;
  err = dtg_model_add_variable(n->model, &spec, &made);
  *out = made.read;
  return err;
}

/* ---- the network ---- */

/* One step of an LSTM: letter is a vector, one element per sequence. state is h and c, before and after. */
static dtg_error *cell(const struct network *n, dtg_graph *g, dtg_value letter, const dtg_value before[2], dtg_value after[2]) {
  dtg_error *err = NULL; dtg_value axis, x, z, gates[4], one, in, out, forget, candidate, kept, added;
  TRY(dtg_graph_push_device(g, n->cell_device, DTG_STRLEN));
  TRY(i32(g, 0, &axis)); TRY(dtg_addn(g, "GatherV2", OF(n->rows, letter, axis), &x));
  TRY(i32(g, 1, &axis)); TRY(dtg_addn(g, "ConcatV2", OF(x, before[0], axis), &z));
  TRY(dtg_add2(g, "MatMul", z, n->kernel, &z)); TRY(dtg_add2(g, "BiasAdd", z, n->bias, &z));
  TRY(dtg_add_split(g, NULL, axis, z, 4, gates)); /* input, forget, candidate, output */
  TRY(dtg_const_f32(g, 1, &one)); TRY(dtg_add2(g, "AddV2", gates[1], one, &forget)); TRY(dtg_add1(g, "Sigmoid", forget, &forget));
  TRY(dtg_add1(g, "Sigmoid", gates[0], &in)); TRY(dtg_add1(g, "Tanh", gates[2], &candidate));
  TRY(dtg_add2(g, "Mul", forget, before[1], &kept)); TRY(dtg_add2(g, "Mul", in, candidate, &added));
  TRY(dtg_add2(g, "AddV2", kept, added, &after[1]));
  TRY(dtg_add1(g, "Sigmoid", gates[3], &out)); TRY(dtg_add1(g, "Tanh", after[1], &added)); TRY(dtg_add2(g, "Mul", out, added, &after[0]));
  TRY(dtg_graph_pop_device(g));
done:
  return err;
}

static dtg_error *logits(const struct network *n, dtg_graph *g, dtg_value h, dtg_value *out) {
  dtg_error *err = NULL;
  TRY(dtg_add2(g, "MatMul", h, n->output, out)); TRY(dtg_add2(g, "BiasAdd", *out, n->offset, out));
done:
  return err;
}

/* The state of the sequences that have ended stays: t is the time, old and next are h and c. */
static dtg_error *masked(const struct network *n, dtg_graph *g, dtg_value t, const dtg_value old[2], const dtg_value next[2], dtg_value out[2]) {
  dtg_error *err = NULL; dtg_value running;
  TRY(dtg_add2(g, "Less", t, n->lengths, &running)); TRY(with(g, "ExpandDims", running, 1, &running));
  for (int k = 0; k < 2; k++) TRY(dtg_addn(g, "SelectV2", OF(running, next[k], old[k]), &out[k]));
done:
  return err;
}

/* While all sequences go on the new state is taken as it is; afterwards those that have ended keep theirs. */
static dtg_error *choose(const struct network *n, dtg_graph *g, dtg_value t, dtg_value shortest, const dtg_value old[2], dtg_value state[2]) {
  dtg_error *err = NULL; dtg_graph *branch = NULL; dtg_function *all = NULL, *some = NULL; dtg_value going, kept[2];
  TRY(dtg_function_begin(g, "all", DTG_STRLEN, &branch)); TRY(dtg_function_end(branch, state, 2, NULL, 0, &all));
  dtg_graph_release(branch); branch = NULL;
  TRY(dtg_function_begin(g, "some", DTG_STRLEN, &branch)); TRY(masked(n, branch, t, old, state, kept));
  TRY(dtg_function_end(branch, kept, 2, NULL, 0, &some));
  TRY(dtg_add2(g, "Less", t, shortest, &going)); TRY(dtg_graph_add_if(g, going, all, some, state, 2));
done:
  dtg_graph_release(branch); dtg_function_release(all); dtg_function_release(some);
  return err;
}

/* Begins the condition or the body of a loop that starts with these values. */
static dtg_error *begin(dtg_graph *g, const char *name, const dtg_value *start, size_t count, dtg_graph **body, dtg_value *v) {
  dtg_error *err = NULL;
  TRY(dtg_function_begin(g, name, DTG_STRLEN, body));
  for (size_t k = 0; k < count; k++) TRY(dtg_function_add_argument_like(*body, start[k], &v[k]));
done:
  return err;
}

/* Runs over time as long as the longest of the sequences: time, h, c, and the list of all h. */
static dtg_error *over_time(const struct network *n, dtg_value longest, dtg_value shortest, dtg_value v[4]) {
  dtg_error *err = NULL; dtg_graph *g = NULL; dtg_function *condition = NULL, *body = NULL;
  dtg_value inside[4], more, letter, axis, next[4];
  TRY(begin(n->graph, "condition", v, 4, &g, inside));
  TRY(dtg_add2(g, "Less", inside[0], longest, &more)); TRY(dtg_function_end(g, &more, 1, NULL, 0, &condition));
  dtg_graph_release(g); g = NULL;
  TRY(begin(n->graph, "body", v, 4, &g, inside));
  TRY(i32(g, 0, &axis)); TRY(dtg_addn(g, "GatherV2", OF(n->text, inside[0], axis), &letter));
  TRY(cell(n, g, letter, inside + 1, next + 1)); TRY(choose(n, g, inside[0], shortest, inside + 1, next + 1));
  TRY(with(g, "AddV2", inside[0], 1, &next[0])); TRY(dtg_add2(g, "TensorListPushBack", inside[3], next[1], &next[3]));
  TRY(dtg_function_end(g, next, 4, NULL, 0, &body));
  TRY(dtg_graph_add_while(n->graph, v, 4, condition, body, v));
done:
  dtg_graph_release(g); dtg_function_release(condition); dtg_function_release(body);
  return err;
}

/* The mean over all letters of all sequences, which are the columns of text. */
static dtg_error *add_loss(struct network *n) {
  dtg_error *err = NULL; dtg_graph *const g = n->graph; const int32_t of_state[] = {SEQUENCES, HIDDEN}, of_all[] = {-1, HIDDEN}, flat[] = {-1};
  const int32_t second[] = {1, 0}, rest[] = {-1, -1};
  dtg_value longest, shortest, shape, any, v[4], from, size, all, wanted, each, line, zero, one, counts;
  TRY(with(g, "Max", n->lengths, 0, &longest)); TRY(with(g, "Min", n->lengths, 0, &shortest));
  TRY(i32s(g, of_state, 2, &shape)); TRY(i32(g, -1, &any)); TRY(i32(g, 0, &zero)); TRY(i32(g, 1, &one)); TRY(i32s(g, flat, 1, &line));
  v[0] = zero; TRY(zeros(g, SEQUENCES, &v[1])); v[2] = v[1]; TRY(dtg_add_empty_tensor_list(g, NULL, shape, any, DTG_F32, &v[3]));
  TRY(over_time(n, longest, shortest, v));
  TRY(dtg_add_tensor_list_stack(g, NULL, v[3], shape, DTG_F32, NULL, &all));
  TRY(i32s(g, of_all, 2, &shape)); TRY(dtg_add2(g, "Reshape", all, shape, &all)); TRY(logits(n, g, all, &all));
  TRY(i32s(g, second, 2, &from)); TRY(i32s(g, rest, 2, &size)); TRY(dtg_addn(g, "Slice", OF(n->text, from, size), &wanted));
  TRY(dtg_add2(g, "Reshape", wanted, line, &wanted));
  TRY(dtg_add_sparse_softmax_cross_entropy_with_logits(g, NULL, all, wanted, &each, NULL));
  TRY(dtg_addn(g, "Range", OF(zero, longest, one), &counts)); TRY(with(g, "ExpandDims", counts, 1, &counts));
  TRY(dtg_add2(g, "Less", counts, n->lengths, &counts)); TRY(dtg_add_cast(g, NULL, counts, DTG_F32, NULL, &counts));
  TRY(dtg_add2(g, "Reshape", counts, line, &counts)); TRY(dtg_add2(g, "Mul", each, counts, &each));
  TRY(with(g, "Sum", each, 0, &each)); TRY(with(g, "Sum", counts, 0, &counts)); TRY(dtg_add2(g, "RealDiv", each, counts, &n->loss));
done:
  return err;
}

/* Goes on from a letter, with the likeliest one each time, until a word ends: time, letter, h, c, and the list of letters. */
static dtg_error *add_writing(struct network *n) {
  dtg_error *err = NULL; dtg_graph *const outer = n->graph; dtg_graph *g = NULL; dtg_function *condition = NULL, *body = NULL;
  dtg_arg_max_options as_i32 = DTG_ARG_MAX_OPTIONS_INIT; dtg_value none, any, axis, v[5], inside[5], next[5], soon, letter;
  as_i32.output_type = DTG_I32;
  TRY(i32s(outer, NULL, 0, &none)); TRY(i32(outer, -1, &any)); TRY(i32(outer, 0, &v[0])); v[1] = n->first;
  TRY(zeros(outer, 1, &v[2])); v[3] = v[2]; TRY(dtg_add_empty_tensor_list(outer, NULL, none, any, DTG_I32, &v[4]));
  TRY(begin(outer, "condition", v, 5, &g, inside));
  TRY(with(g, "Less", inside[0], LONGEST, &soon)); TRY(with(g, "Greater", inside[1], 0, &letter));
  TRY(dtg_add2(g, "LogicalAnd", soon, letter, &soon)); TRY(dtg_function_end(g, &soon, 1, NULL, 0, &condition));
  dtg_graph_release(g); g = NULL;
  TRY(begin(outer, "body", v, 5, &g, inside));
  TRY(with(g, "ExpandDims", inside[1], 0, &letter)); TRY(cell(n, g, letter, inside + 2, next + 2)); TRY(logits(n, g, next[2], &letter));
  TRY(i32(g, 1, &axis)); TRY(dtg_add_arg_max(g, NULL, letter, axis, &as_i32, &letter)); TRY(dtg_add2(g, "Reshape", letter, none, &next[1]));
  TRY(with(g, "AddV2", inside[0], 1, &next[0])); TRY(dtg_add2(g, "TensorListPushBack", inside[4], inside[1], &next[4]));
  TRY(dtg_function_end(g, next, 5, NULL, 0, &body));
  TRY(dtg_graph_add_while(outer, v, 5, condition, body, v));
  TRY(dtg_add_tensor_list_stack(outer, NULL, v[4], none, DTG_I32, NULL, &n->written));
done:
  dtg_graph_release(g); dtg_function_release(condition); dtg_function_release(body);
  return err;
}

static dtg_error *build(struct network *n) {
  dtg_error *err = NULL; const int64_t columns[] = {-1, SEQUENCES}, each[] = {SEQUENCES}; dtg_optimizer adam = DTG_OPTIMIZER_INIT;
  adam.kind = DTG_OPT_ADAM; adam.rate = 0.05;
  TRY(dtg_model_create(n->graph, 7, &n->model));
  TRY(variable(n, "embedding", DTG_INIT_GLOROT_UNIFORM, LETTERS, EMBEDDING, &n->rows));
  TRY(variable(n, "kernel", DTG_INIT_GLOROT_UNIFORM, EMBEDDING + HIDDEN, 4 * HIDDEN, &n->kernel));
  TRY(variable(n, "bias", DTG_INIT_ZEROS, 0, 4 * HIDDEN, &n->bias));
  TRY(variable(n, "output", DTG_INIT_GLOROT_UNIFORM, HIDDEN, LETTERS, &n->output));
  TRY(variable(n, "offset", DTG_INIT_ZEROS, 0, LETTERS, &n->offset));
  TRY(dtg_placeholder(n->graph, "text", DTG_I32, columns, 2, &n->text));
  TRY(dtg_placeholder(n->graph, "lengths", DTG_I32, each, 1, &n->lengths));
  TRY(dtg_placeholder(n->graph, "first", DTG_I32, NULL, 0, &n->first));
  TRY(add_loss(n)); TRY(add_writing(n));
  TRY(dtg_nn_minimize(n->model, n->loss, &adam, &n->training)); TRY(dtg_model_init(n->model, &n->init));
done:
  return err;
}

/* ---- running ---- */

/* A column per word, a row more than the longest has letters. The tensors hold copies. */
static dtg_error *batch(const char *const *of, dtg_tensor *out[2]) {
  dtg_error *err = NULL; int32_t text[LONGEST * SEQUENCES] = {0}, lengths[SEQUENCES]; int64_t dims[] = {0, SEQUENCES}; const int64_t each[] = {SEQUENCES};
  for (int k = 0; k < SEQUENCES; k++) {
    lengths[k] = (int32_t)strlen(of[k]);
    if (dims[0] <= lengths[k]) dims[0] = lengths[k] + 1;
    for (int t = 0; t < lengths[k]; t++) text[t * SEQUENCES + k] = of[k][t] - 'a' + 1;
  }
  TRY(dtg_tensor_create(DTG_I32, dims, 2, text, sizeof *text * SEQUENCES * (size_t)dims[0], NULL, NULL, &out[0]));
  TRY(dtg_tensor_create(DTG_I32, each, 1, lengths, sizeof lengths, NULL, NULL, &out[1]));
done:
  return err;
}

static dtg_error *train(struct network *n) {
  dtg_error *err = NULL; const dtg_value feeds[] = {n->text, n->lengths}; float loss; uint32_t bits;
  for (int step = 1; step <= STEPS; step++) {
    dtg_tensor *fed[2] = {NULL, NULL};
    err = batch(words[step % 2], fed);
    if (!err) err = dtg_step_f32(n->session, feeds, fed, 2, n->loss, n->training.train, &loss);
    dtg_tensor_release(fed[0]); dtg_tensor_release(fed[1]);
    TRY(err);
    memcpy(&bits, &loss, sizeof bits);
    printf("{\"step\": %d, \"loss\": %.6f, \"bits\": \"%08x\"}\n", step, loss, (unsigned)bits);
  }
done:
  return err;
}

static dtg_error *write_word(struct network *n, char begin_with) {
  dtg_error *err = NULL; int32_t first = begin_with - 'a' + 1; const int32_t *letters; size_t bytes; char word[LONGEST + 1] = "";
  dtg_tensor *fed = NULL, *out = NULL; dtg_run_args args = DTG_RUN_ARGS_INIT;
  TRY(dtg_tensor_create(DTG_I32, NULL, 0, &first, sizeof first, NULL, NULL, &fed));
  args.feeds = &n->first; args.feed_tensors = (const dtg_tensor *const *)&fed; args.num_feeds = 1;
  args.fetches = &n->written; args.fetched = &out; args.num_fetches = 1;
  TRY(dtg_session_run(n->session, &args));
  letters = (const int32_t *)dtg_tensor_data(out, &bytes);
  for (size_t k = 0; k < bytes / sizeof *letters && k < LONGEST; k++) word[k] = (char)(letters[k] - 1 + 'a');
  printf("{\"first\": \"%c\", \"word\": \"%s\"}\n", begin_with, word);
done:
  dtg_tensor_release(fed); dtg_tensor_release(out);
  return err;
}

static dtg_error *work(struct network *n, const char *target, int emulated) {
  dtg_error *err = NULL; dtg_session_options devices = DTG_SESSION_OPTIONS_INIT;
  devices.emu_devices = emulated;
  TRY(build(n)); TRY(dtg_session_connect(NULL, target, DTG_STRLEN, n->graph, &devices, &n->session)); TRY(dtg_run_target(n->session, n->init));
  TRY(train(n));
  for (int k = 0; k < 2 * SEQUENCES; k++) TRY(write_word(n, words[k / SEQUENCES][k % SEQUENCES][0]));
done:
  return err;
}

int main(int argc, char **argv) {
  dtg_error *err = NULL; struct network n = {.training = DTG_TRAINING_INIT}; dtg_cluster *cluster = NULL; dtg_server *server = NULL;
  dtg_task self = DTG_TASK_INIT; dtg_server_options place = DTG_SERVER_OPTIONS_INIT; dtg_device_setter setter = DTG_DEVICE_SETTER_INIT;
  const char *device = ""; char here[160];
  n.cell_device = "";
  for (int i = 1; i + 1 < argc; i += 2) *(strcmp(argv[i], "--cell") == 0 ? &n.cell_device : &device) = argv[i + 1];
  TRY(dtg_cluster_from_tf_config(NULL, 0, &cluster, &self)); TRY(dtg_graph_create(NULL, &n.graph));
  if (!cluster) { TRY(dtg_graph_push_device(n.graph, device, DTG_STRLEN)); TRY(work(&n, "local", strstr(device, "EMU") ? 2 : 0)); goto done; }
  place.job = self.type; place.task = self.index;
  TRY(dtg_server_start(NULL, cluster, &place, &server));
  if (strcmp(self.type, "ps") == 0) { TRY(dtg_server_join(server, DTG_INFINITE)); goto done; }
  snprintf(here, sizeof here, "/job:%s/task:%d%s", self.type, (int)self.index, device);
  setter.cluster = cluster; setter.worker_device = here;
  TRY(dtg_graph_push_device_setter(n.graph, &setter)); TRY(work(&n, dtg_server_target(server), 0)); TRY(dtg_session_end_job(n.session, 0));
done:
  if (err) fprintf(stderr, "%s: %s\n", dtg_code_name(dtg_error_code(err)), dtg_error_message(err, NULL));
  dtg_session_release(n.session); dtg_model_release(n.model); dtg_graph_release(n.graph); dtg_server_release(server); dtg_cluster_release(cluster);
  dtg_error_release(err);
  return err != NULL;
}
