/* fashion_mnist.c: trains a small convolutional network on the 60,000 images of Fashion-MNIST and tests it on the other
 * 10,000. Where the data set is absent (Debian: package dataset-fashion-mnist) it takes the 8x8 digits that come with the
 * sources instead.
 *
 *   example_fashion_mnist [DATA_DIR [RUN_DIR [EPOCHS [SEED]]]]        Ctrl-C ends early and saves
 *
 * RUN_DIR receives what a training run should leave behind: model.safetensors (weights), events.out.tfevents.* (curves for
 * TensorBoard), run.json (how it was started) and summary.json (how it ended).
 */
#define _POSIX_C_SOURCE 200809L
#include <dtg/dtg.h>
#include <dtg/sugar.h>
#include <errno.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* Every function returns what went wrong, or NULL. */
#define TRY(call)                         \
  do {                                    \
    dtg_error *error_ = (call);           \
    if (error_ != NULL) return error_;    \
  } while (0)

enum { BATCH = 32, TEST_BATCH = 500, EVENTS_EVERY = 50 };

struct options {
  const char *data, *run;
  int epochs;
  uint64_t seed;
};

struct data {
  const char *name;
  dtg_dataset *train, *test;
  int64_t side; /* images are side x side */
};

struct network {
  dtg_graph *graph;
  dtg_model *model;
  dtg_value images, labels, rate; /* fed */
  dtg_value loss, accuracy, correct;
  dtg_value init;
  dtg_training training;
};

struct run {
  dtg_session *session;
  dtg_callable *step, *test;
  dtg_tensor *rate;          /* fed each step */
  dtg_tensor *results[3];    /* loss, accuracy, gradient norm: written in place, so a warm step allocates nothing */
  dtg_event_writer *events;
  int64_t steps, total, images;
  double seconds;            /* of training, tests not counted */
  double accuracy;           /* of the last test */
};

static volatile sig_atomic_t interrupted;
static void on_interrupt(int signal) { (void)signal; interrupted = 1; }

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static float scalar(const dtg_tensor *tensor) { return *(const float *)dtg_tensor_data(tensor, NULL); }

/* ---- data ---- */

static dtg_error *batches(dtg_dataset *data, double divisor, int64_t size, int shuffle, uint64_t seed) {
  TRY(dtg_dataset_scale(data, 0, divisor));
  TRY(dtg_dataset_cast(data, 1, DTG_I64));
  if (shuffle) TRY(dtg_dataset_shuffle(data, 0, seed));
  TRY(dtg_dataset_batch(data, size, shuffle)); /* training steps are all of one size, a test leaves nothing out */
  return dtg_dataset_prefetch(data, 4);
}

static dtg_error *open_pair(const char *directory, const char *prefix, dtg_dataset **out) {
  char images[4096], labels[4096];
  const char *paths[2] = {images, labels};
  snprintf(images, sizeof images, "%s/%s-images-idx3-ubyte.gz", directory, prefix);
  snprintf(labels, sizeof labels, "%s/%s-labels-idx1-ubyte.gz", directory, prefix);
  return dtg_dataset_idx(NULL, paths, 2, out);
}

static dtg_error *open_digits(struct data *data) {
  const char *sources = getenv("DTG_SOURCE_DIR");
  char path[4096];
  dtg_csv_options csv = DTG_CSV_OPTIONS_INIT;
  csv.label = "c64"; /* 64 pixels, then the digit */
  csv.header = 2;
  data->name = "digits";
  data->side = 8;
  snprintf(path, sizeof path, "%s/tests/data/digits.csv.gz", sources ? sources : ".");
  TRY(dtg_dataset_csv(NULL, path, DTG_STRLEN, &csv, &data->train));
  TRY(dtg_dataset_csv(NULL, path, DTG_STRLEN, &csv, &data->test));
  TRY(dtg_dataset_take(data->train, 1500));
  return dtg_dataset_skip(data->test, 1500);
}

static dtg_error *open_data(const struct options *options, struct data *data) {
  dtg_error *error = open_pair(options->data, "train", &data->train);
  if (dtg_error_code(error) == DTG_NOT_FOUND) {
    printf("no data set in %s, taking the 8x8 digits; for the real one: apt install dataset-fashion-mnist\n", options->data);
    dtg_error_release(error);
    TRY(open_digits(data));
  } else {
    TRY(error);
    data->name = "fashion-mnist";
    data->side = 28;
    TRY(open_pair(options->data, "t10k", &data->test));
  }
  const double white = data->side == 28 ? 255 : 16;
  TRY(batches(data->train, white, BATCH, 1, options->seed));
  return batches(data->test, white, TEST_BATCH, 0, 0);
}

/* ---- the network: two convolutions, each with a pooling, and a linear classifier ---- */

static dtg_error *build(struct network *n, int64_t side, uint64_t seed) {
  const int64_t image[4] = {-1, side, side, 1}, any[1] = {-1};
  dtg_conv2d conv = DTG_CONV2D_INIT;
  dtg_dense classes = DTG_DENSE_INIT;
  dtg_optimizer optimizer = DTG_OPTIMIZER_INIT;
  dtg_value x, shape;
  TRY(dtg_graph_create(NULL, &n->graph));
  TRY(dtg_model_create(n->graph, seed, &n->model));
  TRY(dtg_placeholder(n->graph, "images", DTG_F32, NULL, DTG_STRLEN, &n->images));
  TRY(dtg_placeholder(n->graph, "labels", DTG_I64, any, 1, &n->labels));
  TRY(dtg_placeholder(n->graph, "rate", DTG_F32, NULL, 0, &n->rate));

  TRY(dtg_const_i64s(n->graph, image, 4, &shape));
  TRY(dtg_add2(n->graph, "Reshape", n->images, shape, &x));
  conv.padding = DTG_PADDING_SAME;
  conv.activation = DTG_ACT_RELU;
  conv.filters = 16;
  TRY(dtg_nn_conv2d(n->model, x, &conv, &x));
  TRY(dtg_nn_max_pool2d(n->model, x, NULL, &x));
  conv.filters = 32;
  TRY(dtg_nn_conv2d(n->model, x, &conv, &x));
  TRY(dtg_nn_max_pool2d(n->model, x, NULL, &x));
  TRY(dtg_nn_flatten(n->model, x, &x));
  classes.units = 10;
  TRY(dtg_nn_dense(n->model, x, &classes, &x));

  TRY(dtg_nn_sparse_softmax_cross_entropy(n->model, n->labels, x, &n->loss));
  TRY(dtg_nn_accuracy(n->model, n->labels, x, &n->accuracy));
  TRY(dtg_nn_correct_count(n->model, n->labels, x, &n->correct));
  optimizer.kind = DTG_OPT_MOMENTUM;
  optimizer.momentum = 0.9;
  optimizer.learning_rate = n->rate;
  n->training = (dtg_training)DTG_TRAINING_INIT;
  TRY(dtg_nn_minimize(n->model, n->loss, &optimizer, &n->training));
  return dtg_model_init(n->model, &n->init);
}

/* What happens every step and every test batch is prepared once: inputs, results and targets. */
static dtg_error *prepare(struct run *run, const struct network *n) {
  const dtg_value step_feeds[3] = {n->images, n->labels, n->rate};
  const dtg_value step_results[3] = {n->loss, n->accuracy, n->training.gradient_norm};
  dtg_run_args step = DTG_RUN_ARGS_INIT, test = DTG_RUN_ARGS_INIT;
  TRY(dtg_session_connect(NULL, "local", DTG_STRLEN, n->graph, NULL, &run->session));
  TRY(dtg_run_target(run->session, n->init));
  step.feeds = step_feeds;
  step.num_feeds = 3;
  step.fetches = step_results;
  step.num_fetches = 3;
  step.targets = &n->training.train;
  step.num_targets = 1;
  TRY(dtg_session_prepare(run->session, &step, &run->step));
  test.feeds = step_feeds;
  test.num_feeds = 2;
  test.fetches = &n->correct;
  test.num_fetches = 1;
  TRY(dtg_session_prepare(run->session, &test, &run->test));
  TRY(dtg_tensor_allocate(DTG_F32, NULL, 0, &run->rate));
  for (int i = 0; i < 3; i++) TRY(dtg_tensor_allocate(DTG_F32, NULL, 0, &run->results[i]));
  return NULL;
}

/* ---- training ---- */

/* Half a cosine from 0.03 down to 0, after a short warm-up. */
static float rate_at(int64_t step, int64_t total) {
  const double done = (double)step / (double)total, warm = (double)(step + 1) / 100;
  return (float)(0.03 * 0.5 * (1 + cos(3.14159265358979 * done)) * (warm < 1 ? warm : 1));
}

static dtg_error *train_batch(struct run *run, dtg_tensor *const batch[2]) {
  const dtg_tensor *feeds[3] = {batch[0], batch[1], run->rate};
  *(float *)dtg_tensor_mutable_data(run->rate) = rate_at(run->steps, run->total);
  const double started = now();
  TRY(dtg_callable_run(run->step, feeds, 3, run->results, 3, 0));
  const double seconds = now() - started;
  if (run->steps++ % EVENTS_EVERY != 0) return NULL;
  TRY(dtg_event_writer_scalar(run->events, "loss", DTG_STRLEN, run->steps, scalar(run->results[0])));
  TRY(dtg_event_writer_scalar(run->events, "accuracy", DTG_STRLEN, run->steps, scalar(run->results[1])));
  TRY(dtg_event_writer_scalar(run->events, "gradient_norm", DTG_STRLEN, run->steps, scalar(run->results[2])));
  TRY(dtg_event_writer_scalar(run->events, "learning_rate", DTG_STRLEN, run->steps, scalar(run->rate)));
  return dtg_event_writer_scalar(run->events, "step_time", DTG_STRLEN, run->steps, seconds);
}

static dtg_error *test_all(struct run *run, dtg_dataset *data) {
  int64_t correct = 0, seen = 0;
  int32_t more = 0;
  dtg_tensor *batch[2], *count = NULL;
  TRY(dtg_dataset_restart(data));
  for (;;) {
    TRY(dtg_dataset_next(data, batch, 2, &more));
    if (!more) break;
    const dtg_tensor *feeds[2] = {batch[0], batch[1]};
    dtg_error *error = dtg_callable_run(run->test, feeds, 2, &count, 1, 0);
    if (!error) correct += *(const int64_t *)dtg_tensor_data(count, NULL);
    seen += dtg_tensor_dim(batch[0], 0);
    dtg_tensor_release(batch[0]);
    dtg_tensor_release(batch[1]);
    TRY(error);
  }
  dtg_tensor_release(count);
  run->accuracy = seen ? (double)correct / (double)seen : 0;
  return dtg_event_writer_scalar(run->events, "test_accuracy", DTG_STRLEN, run->steps, run->accuracy);
}

/* ---- what the person at the terminal sees ---- */

static int on_terminal(void) {
  const char *term = getenv("TERM");
  return isatty(STDOUT_FILENO) && term && strcmp(term, "dumb") != 0;
}

/* One line, drawn over itself ten times a second, never wider than the terminal. */
static void show_progress(const struct run *run, double since) {
  static double drawn;
  if (!on_terminal() || (now() - drawn < 0.1 && run->steps < run->total)) return;
  drawn = now();
  const char *columns = getenv("COLUMNS"), *no_color = getenv("NO_COLOR");
  const int width = columns && atoi(columns) > 10 ? atoi(columns) - 1 : 79;
  const int color = !(no_color && *no_color);
  const double seconds = run->seconds + now() - since;
  char line[256];
  snprintf(line, sizeof line, "step %lld/%lld  loss %.4f  accuracy %.1f%%  %.0f images/s  %.0f s left", (long long)run->steps,
           (long long)run->total, scalar(run->results[0]), 100 * scalar(run->results[1]), (double)run->images / seconds,
           seconds * (double)(run->total - run->steps) / (double)run->steps);
  printf("\r%s%.*s%s\033[K", color ? "\033[36m" : "", width, line, color ? "\033[0m" : "");
  fflush(stdout);
}

static void show_epoch(const struct run *run, int epoch, int epochs) {
  if (on_terminal()) printf("\r\033[K");
  printf("epoch %d/%d  loss %.4f  test accuracy %.2f%%  %.1f s  %.0f images/s\n", epoch, epochs, scalar(run->results[0]),
         100 * run->accuracy, run->seconds, (double)run->images / run->seconds);
  fflush(stdout);
}

static dtg_error *train(struct run *run, const struct data *data, int epochs) {
  const int64_t per_epoch = dtg_dataset_cardinality(data->train);
  run->total = per_epoch * epochs;
  for (int epoch = 1; epoch <= epochs && !interrupted; epoch++) {
    const double started = now();
    if (epoch > 1) TRY(dtg_dataset_restart(data->train));
    while (!interrupted) {
      dtg_tensor *batch[2];
      int32_t more = 0;
      TRY(dtg_dataset_next(data->train, batch, 2, &more));
      if (!more) break;
      dtg_error *error = train_batch(run, batch);
      run->images += dtg_tensor_dim(batch[0], 0);
      dtg_tensor_release(batch[0]);
      dtg_tensor_release(batch[1]);
      TRY(error);
      show_progress(run, started);
    }
    run->seconds += now() - started;
    TRY(test_all(run, data->test));
    show_epoch(run, epoch, epochs);
  }
  if (interrupted) printf("interrupted after step %lld, saving\n", (long long)run->steps);
  return NULL;
}

/* ---- the run directory ---- */

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

static dtg_error *open_events(const struct options *options, struct run *run) {
  dtg_event_writer_options events = DTG_EVENT_WRITER_OPTIONS_INIT;
  events.resumed_at_step = 1; /* takes the place of the curves that an earlier run left there */
  return dtg_event_writer_open(options->run, DTG_STRLEN, &events, &run->events);
}

static int write_run(const struct options *options, int argc, char **argv) {
  FILE *file = open_in(options->run, "run.json", "w");
  if (!file) return 0;
  fprintf(file, "{\"arguments\": [");
  for (int i = 0; i < argc; i++) {
    if (i) fputs(", ", file);
    write_string(file, argv[i]);
  }
  fprintf(file, "], \"seed\": %llu, \"epochs\": %d, \"batch\": %d, \"dtg_version\": \"%s\", \"abi_version\": \"%u.%u\"}\n",
          (unsigned long long)options->seed, options->epochs, BATCH, dtg_version(), dtg_abi_version() >> 16,
          dtg_abi_version() & 0xffff);
  return fclose(file) == 0;
}

static int write_summary(const struct options *options, const struct data *data, const struct run *run) {
  FILE *file = open_in(options->run, "summary.json", "w");
  if (!file) return 0;
  fprintf(file,
          "{\"dataset\": \"%s\", \"accuracy\": %.6f, \"loss\": %.6f, \"steps\": %lld, \"epochs\": %d, \"seconds\": %.3f, "
          "\"images_per_second\": %.1f, \"seed\": %llu, \"interrupted\": %s}\n",
          data->name, run->accuracy, scalar(run->results[0]), (long long)run->steps, options->epochs, run->seconds,
          run->seconds > 0 ? (double)run->images / run->seconds : 0, (unsigned long long)options->seed,
          interrupted ? "true" : "false");
  return fclose(file) == 0;
}

static dtg_error *save(const struct options *options, const struct network *n, const struct run *run) {
  char path[4096];
  snprintf(path, sizeof path, "%s/model.safetensors", options->run);
  TRY(dtg_model_save(n->model, run->session, path, DTG_STRLEN));
  return dtg_event_writer_close(run->events);
}

/* ---- main ---- */

static void read_options(int argc, char **argv, struct options *options) {
  const int smoke = argc > 1 && strcmp(argv[1], "--smoke") == 0; /* a test: the digits, for a second */
  options->data = smoke ? "absent" : argc > 1 ? argv[1] : "/usr/share/datasets/fashion-mnist";
  options->run = argc > 2 ? argv[2] : "fashion_mnist.run";
  options->epochs = argc > 3 ? atoi(argv[3]) : smoke ? 20 : 12;
  options->seed = argc > 4 ? strtoull(argv[4], NULL, 10) : 1;
}

int main(int argc, char **argv) {
  struct options options;
  struct data data = {0};
  struct network network = {0};
  struct run run = {0};
  struct sigaction interrupt = {.sa_handler = on_interrupt};
  read_options(argc, argv, &options);
  if (options.epochs < 1) return fprintf(stderr, "usage: %s [DATA_DIR [RUN_DIR [EPOCHS [SEED]]]]\n", argv[0]), 2;
  sigaction(SIGINT, &interrupt, NULL);

  int written = 0;
  dtg_error *error = open_data(&options, &data);
  if (!error) error = build(&network, data.side, options.seed);
  if (!error) error = prepare(&run, &network);
  if (!error) error = open_events(&options, &run); /* makes the directory */
  if (!error) written = write_run(&options, argc, argv);
  if (!error) error = train(&run, &data, options.epochs);
  if (!error) error = save(&options, &network, &run);
  if (!error) written = write_summary(&options, &data, &run) && written;
  if (!error && written) printf("%.2f%% of the test images are right; weights, curves and summary are in %s\n", 100 * run.accuracy, options.run);
  if (error) fprintf(stderr, "%s: %s\n", dtg_code_name(dtg_error_code(error)), dtg_error_message(error, NULL));

  dtg_event_writer_release(run.events);
  for (int i = 0; i < 3; i++) dtg_tensor_release(run.results[i]);
  dtg_tensor_release(run.rate);
  dtg_callable_release(run.step);
  dtg_callable_release(run.test);
  dtg_session_release(run.session);
  dtg_model_release(network.model);
  dtg_graph_release(network.graph);
  dtg_dataset_release(data.train);
  dtg_dataset_release(data.test);
  const int failed = error != NULL || !written;
  dtg_error_release(error);
  return failed;
}
