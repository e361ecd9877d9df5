/* recipes.c: ten tasks, each as short as it goes; capi/RECIPES.md shows them one by one. All use the digits of tests/data, images of
 * 8 x 8 and what they show. The same in Go, Rust and Java. */
#define _POSIX_C_SOURCE 200809L
#include <dtg/dtg.h>
#include <dtg/sugar.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#define TRY(call) do { if ((err = (call)) != NULL) goto done; } while (0)

static const int64_t open_rows[2] = {-1, 64};

/* What every recipe has: data, a graph with its inputs, a model. */
typedef struct task {
  dtg_dataset *data;
  dtg_graph *graph;
  dtg_model *model;
  dtg_session *session;
  dtg_value x, y;
  const char *file; /* for what is served */
} task;

static dtg_error *begin(task *t, const char *path, const char *label) {
  dtg_error *err = NULL;
  dtg_csv_options csv = DTG_CSV_OPTIONS_INIT;
  csv.label = label;
  TRY(dtg_dataset_csv(NULL, path, DTG_STRLEN, &csv, &t->data));
  TRY(dtg_dataset_scale(t->data, 0, 16));
  TRY(dtg_dataset_shuffle(t->data, 0, 1));
  TRY(dtg_dataset_batch(t->data, 32, 1));
  TRY(dtg_graph_create(NULL, &t->graph));
  TRY(dtg_model_create(t->graph, 1, &t->model));
  TRY(dtg_placeholder(t->graph, "x", DTG_F32, open_rows, 2, &t->x));
  TRY(dtg_placeholder(t->graph, "y", DTG_I64, open_rows, 1, &t->y));
done:
  return err;
}

/* One epoch with Adam; the loss of its last step. */
static dtg_error *train(task *t, dtg_value loss, float *last) {
  dtg_error *err = NULL;
  dtg_optimizer adam = DTG_OPTIMIZER_INIT;
  dtg_training training = DTG_TRAINING_INIT;
  dtg_value feeds[2], init;
  dtg_tensor *batch[2];
  int32_t more = 1;
  adam.kind = DTG_OPT_ADAM;
  adam.rate = 0.01;
  adam.lazy = 1; /* of an embedding only the rows that were used move */
  TRY(dtg_nn_minimize(t->model, loss, &adam, &training));
  TRY(dtg_model_init(t->model, &init));
  TRY(dtg_session_connect(NULL, "local", DTG_STRLEN, t->graph, NULL, &t->session));
  TRY(dtg_run_target(t->session, init));
  feeds[0] = t->x;
  feeds[1] = t->y;
  for (;;) {
    TRY(dtg_dataset_next(t->data, batch, 2, &more));
    if (!more) break;
    err = dtg_step_f32(t->session, feeds, batch, 2, loss, training.train, last);
    dtg_tensor_release(batch[0]);
    dtg_tensor_release(batch[1]);
    TRY(err);
  }
done:
  return err;
}

static void end(task *t) {
  dtg_session_release(t->session);
  dtg_model_release(t->model);
  dtg_graph_release(t->graph);
  dtg_dataset_release(t->data);
}

static dtg_error *layer(task *t, dtg_value in, int64_t units, dtg_activation activation, dtg_value *out) {
  dtg_dense dense = DTG_DENSE_INIT;
  dense.units = units;
  dense.activation = activation;
  return dtg_nn_dense(t->model, in, &dense, out);
}

/* The labels as numbers in a column, [batch, 1]. */
static dtg_error *column(task *t, dtg_value *out) {
  dtg_error *err = NULL;
  dtg_value numbers, shape;
  const int64_t rows[2] = {-1, 1};
  TRY(dtg_add_cast(t->graph, NULL, t->y, DTG_F32, NULL, &numbers));
  TRY(dtg_const_i64s(t->graph, rows, 2, &shape));
  TRY(dtg_add2(t->graph, "Reshape", numbers, shape, out));
done:
  return err;
}

/* Regression: a number for each row. Here it is the number that the image shows. */
static dtg_error *regression(task *t, float *out) {
  dtg_error *err = NULL;
  dtg_value hidden, number, wanted, loss;
  TRY(layer(t, t->x, 32, DTG_ACT_RELU, &hidden));
  TRY(layer(t, hidden, 1, DTG_ACT_NONE, &number));
  TRY(column(t, &wanted));
  TRY(dtg_nn_mean_squared_error(t->model, wanted, number, &loss));
  TRY(train(t, loss, out));
done:
  return err;
}

/* An image classifier: convolutions over [batch, height, width, channels]. */
static dtg_error *images(task *t, float *out) {
  dtg_error *err = NULL;
  dtg_value shape, image, convolved, pooled, flat, logits, loss;
  const int64_t dims[4] = {-1, 8, 8, 1};
  dtg_conv2d conv = DTG_CONV2D_INIT;
  conv.filters = 8;
  conv.padding = DTG_PADDING_SAME;
  conv.activation = DTG_ACT_RELU;
  TRY(dtg_const_i64s(t->graph, dims, 4, &shape));
  TRY(dtg_add2(t->graph, "Reshape", t->x, shape, &image));
  TRY(dtg_nn_conv2d(t->model, image, &conv, &convolved));
  TRY(dtg_nn_max_pool2d(t->model, convolved, NULL, &pooled));
  TRY(dtg_nn_flatten(t->model, pooled, &flat));
  TRY(layer(t, flat, 10, DTG_ACT_NONE, &logits));
  TRY(dtg_nn_sparse_softmax_cross_entropy(t->model, t->y, logits, &loss));
  TRY(train(t, loss, out));
done:
  return err;
}

/* Embeddings: a vector per number, learned. Here one for each digit, from which its image is to be drawn. */
static dtg_error *embeddings(task *t, float *out) {
  dtg_error *err = NULL;
  dtg_value vector, drawn, loss;
  dtg_embedding table = DTG_EMBEDDING_INIT;
  table.rows = 10;
  table.width = 4;
  TRY(dtg_nn_embedding(t->model, t->y, &table, &vector));
  TRY(layer(t, vector, 64, DTG_ACT_SIGMOID, &drawn));
  TRY(dtg_nn_mean_squared_error(t->model, t->x, drawn, &loss));
  TRY(train(t, loss, out));
done:
  return err;
}

/* Texts that are fed: a vocabulary gives them numbers, row 0 of the table is for all that it does not know. Here the names of digits. */
static dtg_error *texts(task *t, float *out) {
  static const char *const words[] = {"zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine"};
  dtg_error *err = NULL;
  dtg_value fed, numbers, vector, drawn, loss;
  dtg_tensor *vocabulary = NULL;
  dtg_lookup known = DTG_LOOKUP_INIT;
  dtg_embedding table = DTG_EMBEDDING_INIT;
  const int64_t ten[] = {10};
  TRY(dtg_tensor_create_strings(ten, 1, words, NULL, &vocabulary));
  known.vocabulary = vocabulary;
  known.invert = known.no_oov = 1;
  TRY(dtg_nn_lookup(t->model, t->y, &known, &fed)); /* instead of this a program has a placeholder of DTG_STRING */
  known.invert = known.no_oov = 0;
  TRY(dtg_nn_lookup(t->model, fed, &known, &numbers));
  table.rows = 11;
  table.width = 4;
  TRY(dtg_nn_embedding(t->model, numbers, &table, &vector));
  TRY(layer(t, vector, 64, DTG_ACT_SIGMOID, &drawn));
  TRY(dtg_nn_mean_squared_error(t->model, t->x, drawn, &loss));
  TRY(train(t, loss, out));
done:
  dtg_tensor_release(vocabulary);
  return err;
}

/* One-hot: a column whose numbers stand for names becomes as many columns of 0 and 1. Here pixel 20, as if its 17 shades were names. */
static dtg_error *one_hot(task *t, float *out) {
  dtg_error *err = NULL;
  dtg_value sizes, axis, parts[3], scale, numbers, names, depth, on, off, shape, all, logits, loss;
  const int64_t widths[3] = {20, 1, 43}, rows[2] = {-1, 17};
  const int32_t second = 1, shades = 17;
  TRY(dtg_const_i64s(t->graph, widths, 3, &sizes));
  TRY(dtg_const_of(t->graph, DTG_I32, NULL, 0, &second, sizeof second, &axis));
  TRY(dtg_add_split_v(t->graph, NULL, t->x, sizes, axis, 3, parts));
  TRY(dtg_const_f32(t->graph, 16, &scale)); /* all columns were divided by that */
  TRY(dtg_add2(t->graph, "Mul", parts[1], scale, &numbers));
  TRY(dtg_add_cast(t->graph, NULL, numbers, DTG_I64, NULL, &names));
  TRY(dtg_const_of(t->graph, DTG_I32, NULL, 0, &shades, sizeof shades, &depth));
  TRY(dtg_const_f32(t->graph, 1, &on));
  TRY(dtg_const_f32(t->graph, 0, &off));
  TRY(dtg_add_one_hot(t->graph, NULL, names, depth, on, off, NULL, &names));
  TRY(dtg_const_i64s(t->graph, rows, 2, &shape));
  TRY(dtg_add2(t->graph, "Reshape", names, shape, &parts[1]));
  TRY(dtg_add_concat_v2(t->graph, NULL, parts, 3, axis, &all));
  TRY(layer(t, all, 10, DTG_ACT_NONE, &logits));
  TRY(dtg_nn_sparse_softmax_cross_entropy(t->model, t->y, logits, &loss));
  TRY(train(t, loss, out));
done:
  return err;
}

/* Several outputs: one trunk, two heads, one loss that is the sum of theirs. */
static dtg_error *outputs(task *t, float *out) {
  dtg_error *err = NULL;
  dtg_value hidden, logits, number, wanted, first, second, loss;
  TRY(layer(t, t->x, 32, DTG_ACT_RELU, &hidden));
  TRY(layer(t, hidden, 10, DTG_ACT_NONE, &logits));
  TRY(layer(t, hidden, 1, DTG_ACT_NONE, &number));
  TRY(column(t, &wanted));
  TRY(dtg_nn_sparse_softmax_cross_entropy(t->model, t->y, logits, &first));
  TRY(dtg_nn_mean_squared_error(t->model, wanted, number, &second));
  TRY(dtg_add2(t->graph, "AddV2", first, second, &loss));
  TRY(train(t, loss, out));
done:
  return err;
}

/* A loss of one's own: any nodes that end in a scalar. Here log(cosh(error)), which outliers pull less. */
static dtg_error *own_loss(task *t, float *out) {
  dtg_error *err = NULL;
  dtg_value number, wanted, error, cosh, log, axes, loss;
  const int64_t both[2] = {0, 1};
  TRY(layer(t, t->x, 1, DTG_ACT_NONE, &number));
  TRY(column(t, &wanted));
  TRY(dtg_add2(t->graph, "Sub", number, wanted, &error));
  TRY(dtg_add1(t->graph, "Cosh", error, &cosh));
  TRY(dtg_add1(t->graph, "Log", cosh, &log));
  TRY(dtg_const_i64s(t->graph, both, 2, &axes));
  TRY(dtg_add2(t->graph, "Mean", log, axes, &loss));
  TRY(train(t, loss, out));
done:
  return err;
}

/* A sequence: an image read row by row, 8 steps of 8 numbers, by an LSTM. Steps beyond the last row with ink do not count. */
static dtg_error *sequences(task *t, float *out) {
  dtg_error *err = NULL;
  dtg_value shape, steps, axis, ink, places, last, logits, loss;
  dtg_recurrent lstm = DTG_RECURRENT_INIT;
  dtg_recurrent_result read = DTG_RECURRENT_RESULT_INIT;
  const int64_t rows[3] = {-1, 8, 8}, second = 1, third = 2, eight = 8;
  const float numbers[8] = {1, 2, 3, 4, 5, 6, 7, 8};
  TRY(dtg_const_i64s(t->graph, rows, 3, &shape));
  TRY(dtg_add2(t->graph, "Reshape", t->x, shape, &steps));
  TRY(dtg_const_i64s(t->graph, &third, 1, &axis));
  TRY(dtg_add2(t->graph, "Sum", steps, axis, &ink));
  TRY(dtg_add1(t->graph, "Sign", ink, &ink));
  TRY(dtg_const_of(t->graph, DTG_F32, &eight, 1, numbers, sizeof numbers, &places));
  TRY(dtg_add2(t->graph, "Mul", ink, places, &places));
  TRY(dtg_const_i64s(t->graph, &second, 1, &axis));
  TRY(dtg_add2(t->graph, "Max", places, axis, &last));
  TRY(dtg_add_cast(t->graph, NULL, last, DTG_I64, NULL, &lstm.lengths));
  lstm.units = 32;
  TRY(dtg_nn_recurrent(t->model, steps, &lstm, &read));
  TRY(layer(t, read.hidden, 10, DTG_ACT_NONE, &logits));
  TRY(dtg_nn_sparse_softmax_cross_entropy(t->model, t->y, logits, &loss));
  TRY(train(t, loss, out));
done:
  return err;
}

/* A switch: dropout and batch normalization do their work in training only. It is off unless a run feeds it, so who serves need not know. */
static dtg_error *switched(task *t, float *out) {
  dtg_error *err = NULL;
  dtg_value off, training, value, logits, loss, init;
  dtg_batch_norm norm = DTG_BATCH_NORM_INIT;
  dtg_variable steps = DTG_VARIABLE_INIT;
  dtg_training step = DTG_TRAINING_INIT;
  dtg_tensor *fed[3] = {NULL, NULL, NULL}, *answer = NULL;
  dtg_model *served = NULL;
  dtg_session *server = NULL;
  int32_t more = 1;
  const bool yes = true, no = false;
  TRY(dtg_const_of(t->graph, DTG_BOOL, NULL, 0, &no, sizeof no, &off));
  TRY(dtg_add_placeholder_with_default(t->graph, "training", off, NULL, 0, &training));
  TRY(layer(t, t->x, 32, DTG_ACT_RELU, &value));
  norm.training = training;
  TRY(dtg_nn_batch_norm(t->model, value, &norm, &value));
  TRY(dtg_model_global_step(t->model, &steps));
  TRY(dtg_nn_dropout(t->model, value, 0.2, steps.read, training, &value));
  TRY(layer(t, value, 10, DTG_ACT_NONE, &logits));
  TRY(dtg_nn_sparse_softmax_cross_entropy(t->model, t->y, logits, &loss));
  TRY(dtg_nn_minimize(t->model, loss, NULL, &step));
  TRY(dtg_model_init(t->model, &init));
  TRY(dtg_session_connect(NULL, "local", DTG_STRLEN, t->graph, NULL, &t->session));
  TRY(dtg_run_target(t->session, init));
  TRY(dtg_tensor_create(DTG_BOOL, NULL, 0, (void *)&yes, sizeof yes, NULL, NULL, &fed[2]));
  for (;;) {
    const dtg_value feeds[3] = {t->x, t->y, training};
    dtg_tensor *batch[2];
    TRY(dtg_dataset_next(t->data, batch, 2, &more));
    if (!more) break;
    dtg_tensor_release(fed[0]);
    dtg_tensor_release(fed[1]);
    fed[0] = batch[0];
    fed[1] = batch[1];
    TRY(dtg_step_f32(t->session, feeds, fed, 3, loss, step.train, out));
  }
  /* Served from a file; the last batch once more, with the switch off. */
  const char *in_name = "pixels", *out_name = "scores";
  dtg_export what = DTG_EXPORT_INIT;
  dtg_run_args ask = DTG_RUN_ARGS_INIT;
  what.input_names = &in_name;
  what.inputs = &t->x;
  what.num_inputs = 1;
  what.output_names = &out_name;
  what.outputs = &logits;
  what.num_outputs = 1;
  TRY(dtg_model_export(t->model, t->session, &what, t->file, DTG_STRLEN));
  TRY(dtg_model_load(NULL, t->file, DTG_STRLEN, &server, &served));
  TRY(dtg_model_endpoint(served, in_name, DTG_STRLEN, &value));
  TRY(dtg_model_endpoint(served, out_name, DTG_STRLEN, &logits));
  ask.feeds = &value;
  ask.feed_tensors = (const dtg_tensor *const *)fed;
  ask.num_feeds = 1;
  ask.fetches = &logits;
  ask.fetched = &answer;
  ask.num_fetches = 1;
  TRY(dtg_session_run(server, &ask));
  *out = ((const float *)dtg_tensor_data(answer, NULL))[0];
done:
  for (int i = 0; i < 3; i++) dtg_tensor_release(fed[i]);
  dtg_tensor_release(answer);
  dtg_model_release(served);
  dtg_session_release(server);
  return err;
}

/* Serving from many threads: one callable, prepared once, called by all of them at once. */
typedef struct client {
  dtg_callable *ask;
  dtg_tensor *image;
  float sum;
  dtg_error *err;
} client;

static void *serve(void *argument) {
  client *c = argument;
  for (int i = 0; i < 100 && !c->err; i++) {
    dtg_tensor *answer = NULL;
    const dtg_tensor *given = c->image;
    c->err = dtg_callable_run(c->ask, &given, 1, &answer, 1, 0);
    if (!c->err) c->sum += ((const float *)dtg_tensor_data(answer, NULL))[0];
    dtg_tensor_release(answer);
  }
  return NULL;
}

static dtg_error *serving(task *t, float *out) {
  dtg_error *err = NULL;
  dtg_value init, chances;
  dtg_callable *ask = NULL;
  dtg_tensor *batch[2] = {NULL, NULL};
  client clients[4];
  pthread_t threads[4];
  int32_t more;
  dtg_run_args shape = DTG_RUN_ARGS_INIT;
  TRY(layer(t, t->x, 10, DTG_ACT_SOFTMAX, &chances));
  TRY(dtg_model_init(t->model, &init));
  TRY(dtg_session_connect(NULL, "local", DTG_STRLEN, t->graph, NULL, &t->session));
  TRY(dtg_run_target(t->session, init));
  shape.feeds = &t->x;
  shape.num_feeds = 1;
  shape.fetches = &chances;
  shape.num_fetches = 1;
  TRY(dtg_session_prepare(t->session, &shape, &ask));
  TRY(dtg_dataset_next(t->data, batch, 2, &more));
  for (int i = 0; i < 4; i++) {
    clients[i] = (client){ask, batch[0], 0, NULL};
    pthread_create(&threads[i], NULL, serve, &clients[i]);
  }
  *out = 0;
  for (int i = 0; i < 4; i++) {
    pthread_join(threads[i], NULL);
    *out += clients[i].sum;
    if (clients[i].err) dtg_error_release(err), err = clients[i].err;
  }
done:
  dtg_tensor_release(batch[0]);
  dtg_tensor_release(batch[1]);
  dtg_callable_release(ask);
  return err;
}

int main(int argc, char **argv) {
  dtg_error *(*const recipes[])(task *, float *) = {regression, images, embeddings, texts, one_hot, outputs, own_loss, sequences, switched, serving};
  const char *const names[] = {"regression", "images", "embeddings", "texts", "one-hot", "outputs", "own loss", "sequences", "a switch", "serving"};
  const char *path = argc > 1 ? argv[1] : "tests/data/digits.csv.gz";
  for (int i = 0; i < 10; i++) {
    task t = {NULL, NULL, NULL, NULL, {0}, {0}, argc > 2 ? argv[2] : "recipe.dtg"};
    float result = 0;
    dtg_error *err = begin(&t, path, "c64");
    if (!err) err = recipes[i](&t, &result);
    end(&t);
    if (err) {
      fprintf(stderr, "%s: %s\n", dtg_code_name(dtg_error_code(err)), dtg_error_message(err, NULL));
      dtg_error_release(err);
      return 1;
    }
    printf("%s: %.4f\n", names[i], result);
  }
  return 0;
}
