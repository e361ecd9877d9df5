/* main.c: trains one of the models and says how it does, in lines of JSON or for people.
 *
 *   example_models                          the names of all
 *   example_models lenet --seconds 20       trains, evaluates now and then, prints loss, metric and speed
 *   example_models lenet --reference 50     the losses of the first steps in full, for whoever holds them to another library's
 *   example_models lenet --dump DIR 50      first weights and batches of these steps as safetensors files, for that library
 *   example_models lenet --steps 400 --save FILE  trains, and keeps the weights
 *   example_models --smoke                  two steps of each
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "models.h"

static const struct example *const examples[] = {&lenet, &resnet,      &mobilenet, &unet, &vae, &gan, &word2vec, &word2vec_softmax, &lstm, &gru,
 &transformer, &wide_deep, &dlrm, &policy};
enum { EXAMPLES = sizeof examples / sizeof *examples, EVALUATED = 8 };

struct options {
  const char *name, *dump, *save, *device;
  int64_t steps, reference;
  double seconds;
  int json;
};

static double now(void) {
  struct timespec t;
  timespec_get(&t, TIME_UTC);
  return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static dtg_error *make(const struct example *e, const struct options *o, struct work *w) {
  dtg_session_options devices = DTG_SESSION_OPTIONS_INIT;
  dtg_value init;
  w->batch = e->batch;
  w->calm = e->calm;
  w->as_reference = o->reference > 0 || o->dump;
  devices.emu_devices = strstr(o->device, "EMU") != NULL;
  TRY(dtg_graph_create(NULL, &w->graph));
  TRY(dtg_graph_push_device(w->graph, o->device, DTG_STRLEN));
  TRY(dtg_model_create(w->graph, 2015, &w->model));
  TRY(feed(w, "training", DTG_BOOL, NULL, 0, &w->training));
  TRY(e->build(w));
  TRY(dtg_model_init(w->model, &init));
  TRY(dtg_session_connect(NULL, "local", DTG_STRLEN, w->graph, &devices, &w->session));
  TRY(dtg_run_target(w->session, init));
  return w->before.id ? dtg_run_target(w->session, w->before) : NULL;
}

static void drop(struct work *w) {
  for (size_t i = 0; i < w->num_feeds; i++) dtg_tensor_release(w->fed[i]);
  dtg_session_release(w->session);
  dtg_model_release(w->model);
  dtg_graph_release(w->graph);
}

/* One step, all its phases on one batch; `spent` grows by the seconds of its runs. */
static dtg_error *step(const struct example *e, struct work *w, int64_t number, float losses[MAX_PHASES], double *spent) {
  double start;
  TRY(e->fill(w, number));
  *(uint8_t *)dtg_tensor_mutable_data(w->fed[0]) = 1;
  start = now();
  for (int k = 0; k < w->phases; k++) {
    TRY(dtg_step_f32(w->session, w->feeds, w->fed, w->num_feeds, w->losses[k], w->steps[k].train, &losses[k]));
  }
  *spent += now() - start;
  return NULL;
}

/* The mean of the metric over batches that nobody trained on. */
static dtg_error *evaluate(const struct example *e, struct work *w, float *out) {
  *out = 0;
  if (!w->metric.id) return NULL;
  for (int64_t k = 1; k <= EVALUATED; k++) {
    dtg_tensor *value;
    TRY(e->fill(w, -k));
    TRY(look(w, w->metric, &value));
    *out += *(const float *)dtg_tensor_data(value, NULL) / EVALUATED;
    dtg_tensor_release(value);
  }
  return NULL;
}

static dtg_error *dump(const struct example *e, const struct options *o, struct work *w) {
  char path[4096];
  snprintf(path, sizeof path, "%s/weights.safetensors", o->dump);
  TRY(dtg_model_save(w->model, w->session, path, DTG_STRLEN));
  for (int64_t k = 0; k < o->steps; k++) {
    dtg_weights *batch;
    TRY(e->fill(w, k));
    TRY(dtg_weights_create(&batch));
    for (size_t i = 1; i < w->num_feeds; i++) TRY(dtg_weights_set(batch, w->feed_names[i], DTG_STRLEN, w->fed[i]));
    snprintf(path, sizeof path, "%s/batch_%03d.safetensors", o->dump, (int)k);
    TRY(dtg_weights_save(batch, path, DTG_STRLEN));
    dtg_weights_release(batch);
  }
  return NULL;
}

static dtg_error *reference(const struct example *e, const struct options *o, struct work *w) {
  float losses[MAX_PHASES] = {0};
  double spent = 0;
  for (int64_t k = 0; k < o->reference; k++) {
    TRY(step(e, w, k, losses, &spent));
    printf(w->phases > 1 ? "[%.9g, %.9g]\n" : "[%.9g]\n", (double)losses[0], (double)losses[1]);
  }
  return NULL;
}

static dtg_error *train(const struct example *e, const struct options *o, struct work *w) {
  float losses[MAX_PHASES] = {0}, metric = 0;
  double spent = 0, said = 0;
  int64_t done = 0;
  while (done < o->steps || (o->steps == 0 && spent < o->seconds)) {
    TRY(step(e, w, done, losses, &spent));
    if (done++ == 0) spent = 0; /* the first step plans */
    if (spent - said < 2 && done != o->steps && !(o->steps == 0 && spent >= o->seconds)) continue;
    said = spent;
    TRY(evaluate(e, w, &metric));
    printf(o->json ? "{\"model\": \"%s\", \"step\": %lld, \"loss\": %.5g, \"metric\": %.4g, \"items_per_second\": %.5g, \"batch\": %lld}\n"
                   : "%-12s step %5lld   loss %8.5g   metric %7.4g   %9.5g items/s\n",
           e->name, (long long)done, (double)losses[0], (double)metric, spent > 0 ? (double)((done - 1) * w->batch) / spent : 0.0, (long long)w->batch);
    fflush(stdout);
  }
  if (o->save) TRY(dtg_model_save(w->model, w->session, o->save, DTG_STRLEN));
  return e->show && !o->json ? e->show(w) : NULL;
}

static dtg_error *run(const struct example *e, const struct options *o) {
  struct work w;
  dtg_error *err;
  memset(&w, 0, sizeof w);
  err = make(e, o, &w);
  if (!err) err = o->dump ? dump(e, o, &w) : o->reference ? reference(e, o, &w) : train(e, o, &w);
  drop(&w);
  return err;
}

static int read_options(int argc, char **argv, struct options *o) {
  for (int i = 1; i < argc; i++) {
    const int more = argc - i - 1;
    if (strcmp(argv[i], "--json") == 0) o->json = 1;
    else if (strcmp(argv[i], "--smoke") == 0) o->steps = 2;
    else if (strcmp(argv[i], "--steps") == 0 && more > 0) o->steps = atoll(argv[++i]);
    else if (strcmp(argv[i], "--seconds") == 0 && more > 0) o->seconds = atof(argv[++i]);
    else if (strcmp(argv[i], "--reference") == 0 && more > 0) o->reference = atoll(argv[++i]);
    else if (strcmp(argv[i], "--save") == 0 && more > 0) o->save = argv[++i];
    else if (strcmp(argv[i], "--device") == 0 && more > 0) o->device = argv[++i];
    else if (strcmp(argv[i], "--dump") == 0 && more > 1) o->dump = argv[i + 1], o->steps = atoll(argv[i + 2]), i += 2;
    else if (argv[i][0] != '-' && !o->name) o->name = argv[i];
    else return 0;
  }
  return 1;
}

int main(int argc, char **argv) {
  struct options o = {NULL, NULL, NULL, "", 0, 0, 0, 0};
  int found = 0;
  if (!read_options(argc, argv, &o)) {
    fprintf(stderr, "usage: example_models [NAME] [--seconds S | --steps N | --reference N | --dump DIR N] [--save FILE] [--device D] [--json] [--smoke]\n");
    return 2;
  }
  for (int i = 0; i < EXAMPLES; i++) {
    dtg_error *err = NULL;
    if (o.name ? strcmp(o.name, examples[i]->name) != 0 : argc > 1) {
      if (o.name) continue;
    } else if (!o.name) {
      printf("%s %s %s\n", examples[i]->name, examples[i]->items, examples[i]->metric);
      continue;
    }
    found++;
    err = run(examples[i], &o);
    if (err) {
      fprintf(stderr, "%s: %s: %s\n", examples[i]->name, dtg_code_name(dtg_error_code(err)), dtg_error_message(err, NULL));
      dtg_error_release(err);
      return 1;
    }
  }
  if (o.name && !found) fprintf(stderr, "no model is called %s\n", o.name);
  return o.name && !found ? 2 : 0;
}
