/* dtg/sugar.h's one-liners, and the generated op wrappers of dtg/sugar_ops.h, one of each form: defaults and options, lists among
 * the inputs, several outputs, outputs that a list attribute counts, no outputs. Single-threaded. */
#include <dtg/dtg.h>
#include <dtg/sugar.h>
#include <stdio.h>
#include <string.h>

static int failures;

static void check(int condition, const char *what) {
  if (condition) return;
  fprintf(stderr, "FAILED: %s\n", what);
  failures++;
}

static void good(dtg_error *error, const char *what) {
  if (error) fprintf(stderr, "%s: %s\n", what, dtg_error_message(error, NULL));
  check(error == NULL, what);
  dtg_error_release(error);
}

static void refused(dtg_error *error, dtg_code code, const char *what) {
  check(dtg_error_code(error) == code, what);
  dtg_error_release(error);
}

/* Fetches one value and compares its bytes. */
static void expect(dtg_session *session, dtg_value value, const void *bytes, size_t nbytes, const char *what) {
  dtg_tensor *tensor = NULL;
  dtg_run_args args = DTG_RUN_ARGS_INIT;
  size_t found = 0;
  const void *data;
  args.fetches = &value;
  args.num_fetches = 1;
  args.fetched = &tensor;
  good(dtg_session_run(session, &args), what);
  data = dtg_tensor_data(tensor, &found);
  check(found == nbytes && memcmp(data, bytes, nbytes) == 0, what);
  dtg_tensor_release(tensor);
}

static void lists_and_outputs(dtg_graph *graph, dtg_session *session) {
  const int64_t four = 4, two = 2;
  const float xs[4] = {3, 1, 3, 2}, joined[6] = {3, 1, 3, 2, 3, 1}, second[2] = {3, 2}, distinct[3] = {3, 1, 2};
  const int32_t zero = 0, where[4] = {0, 1, 0, 2};
  const int64_t types[2] = {DTG_F32, DTG_I32};
  dtg_value x, axis, parts[2], values[2], all, y, idx, queue, tuple[2], out[2], op;
  good(dtg_const_of(graph, DTG_F32, &four, 1, xs, sizeof xs, &x), "Const");
  good(dtg_const_of(graph, DTG_I32, NULL, 0, &zero, sizeof zero, &axis), "Const");
  good(dtg_add_split(graph, "halves", axis, x, two, parts), "Split");
  expect(session, parts[1], second, sizeof second, "the second half");
  values[0] = x;
  values[1] = parts[0];
  good(dtg_add_concat_v2(graph, NULL, values, 2, axis, &all), "ConcatV2");
  expect(session, all, joined, sizeof joined, "a list and a single input in a row");
  good(dtg_add_unique(graph, NULL, x, NULL, &y, &idx), "Unique");
  expect(session, y, distinct, sizeof distinct, "the first of two outputs");
  expect(session, idx, where, sizeof where, "the second of two outputs");
  good(dtg_add_unique(graph, NULL, x, NULL, NULL, &idx), "an output that is not wanted");
  good(dtg_add_fifo_queue_v2(graph, "queue", types, 2, NULL, &queue), "FIFOQueueV2");
  tuple[0] = y;
  tuple[1] = idx;
  good(dtg_add_queue_enqueue_v2(graph, NULL, queue, tuple, 2, NULL, &op), "QueueEnqueueV2");
  good(dtg_run_target(session, op), "a node without outputs");
  good(dtg_add_queue_dequeue_v2(graph, NULL, queue, types, 2, NULL, out), "QueueDequeueV2");
  expect(session, out[1], where, sizeof where, "what was put into the queue");
  good(dtg_add_placeholder(graph, "fed", DTG_F32, NULL, &x), "Placeholder");
}

/* The one-liners of dtg/sugar.h trust nobody with their sizes. */
static void one_liners(dtg_graph *graph, dtg_session *session) {
  const int64_t two = 2;
  const float xs[4] = {3, 1, 3, 2};
  dtg_value whole, none = {0}, pair, seven;
  float value = -1;
  good(dtg_const_i64s(graph, &two, 1, &whole), "an int64 vector");
  expect(session, whole, &two, sizeof two, "an int64 vector");
  refused(dtg_run_f32(session, whole, none, &value), DTG_INVALID_ARGUMENT, "integers are not read as a float32");
  good(dtg_const_of(graph, DTG_F32, &two, 1, xs, sizeof xs / 2, &pair), "two of four");
  refused(dtg_run_f32(session, pair, none, &value), DTG_INVALID_ARGUMENT, "a vector is not read as a scalar");
  check(value == -1, "nothing is written on failure");
  refused(dtg_const_of(graph, DTG_F32, &two, 1, xs, sizeof xs, &pair), DTG_INVALID_ARGUMENT, "more bytes than elements");
  refused(dtg_const_of(graph, DTG_F32, &two, 1, xs, sizeof xs[0], &pair), DTG_INVALID_ARGUMENT, "fewer bytes than elements");
  good(dtg_const_f32(graph, 7, &seven), "a float32 scalar");
  good(dtg_run_f32(session, seven, none, &value), "a float32 scalar");
  check(value == 7, "a float32 scalar");
}

static void defaults_and_options(dtg_graph *graph, dtg_session *session) {
  const int64_t image[4] = {1, 2, 2, 1}, filter[4] = {1, 1, 1, 1}, strides[4] = {1, 1, 1, 1}, square[2] = {2, 2};
  const float pixels[4] = {1, 2, 3, 4}, twice = 2, doubled[4] = {2, 4, 6, 8}, plain[4] = {7, 10, 15, 22}, across[4] = {10, 14, 14, 20};
  dtg_mat_mul_options transposed = DTG_MAT_MUL_OPTIONS_INIT;
  dtg_conv2d_options layout = DTG_CONV2D_OPTIONS_INIT;
  dtg_value x, w, a, product, y;
  good(dtg_const_of(graph, DTG_F32, image, 4, pixels, sizeof pixels, &x), "Const");
  good(dtg_const_of(graph, DTG_F32, filter, 4, &twice, sizeof twice, &w), "Const");
  good(dtg_const_of(graph, DTG_F32, square, 2, pixels, sizeof pixels, &a), "Const");
  good(dtg_add_conv2d(graph, NULL, x, w, strides, 4, "SAME", NULL, &y), "Conv2D with all defaults");
  expect(session, y, doubled, sizeof doubled, "Conv2D with all defaults");
  good(dtg_add_mat_mul(graph, NULL, a, a, NULL, &product), "MatMul");
  expect(session, product, plain, sizeof plain, "MatMul");
  transposed.transpose_a = 1;
  good(dtg_add_mat_mul(graph, NULL, a, a, &transposed, &product), "MatMul with an option");
  expect(session, product, across, sizeof across, "MatMul with an option");
  layout.data_format = "WXYZ";
  refused(dtg_add_conv2d(graph, NULL, x, w, strides, 4, "SAME", &layout, &y), DTG_INVALID_ARGUMENT, "a word that is not allowed");
  refused(dtg_add_conv2d(graph, NULL, x, w, NULL, 4, "SAME", NULL, &y), DTG_INVALID_ARGUMENT, "a list that is not there");
  refused(dtg_add_concat_v2(graph, NULL, NULL, 0, a, &y), DTG_INVALID_ARGUMENT, "a list that is too short");
}

int main(void) {
  dtg_graph *graph = NULL;
  dtg_session *session = NULL;
  good(dtg_graph_create(NULL, &graph), "graph");
  good(dtg_session_connect(NULL, "local", DTG_STRLEN, graph, NULL, &session), "session");
  lists_and_outputs(graph, session);
  one_liners(graph, session);
  defaults_and_options(graph, session);
  dtg_session_release(session);
  dtg_graph_release(graph);
  check(dtg_live_handles() == 0, "no handle is left");
  return failures != 0;
}
