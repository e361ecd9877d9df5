/* data.c: the images. Each worker takes every n-th of them, and so does each tower: who trains on which image, and in
 * which order, depends on the seed alone. With "elastic", where nobody knows who will be there, all have all images in the same order, and
 * the batches are dealt to who is. */
#define _POSIX_C_SOURCE 200809L
#include "fashion_mnist.h"

#include <stdio.h>
#include <stdlib.h>

static dtg_error *open_pair(const char *directory, const char *prefix, dtg_dataset **out) {
  char images[4096], labels[4096];
  const char *paths[2] = {images, labels};
  snprintf(images, sizeof images, "%s/%s-images-idx3-ubyte.gz", directory, prefix);
  snprintf(labels, sizeof labels, "%s/%s-labels-idx1-ubyte.gz", directory, prefix);
  return dtg_dataset_idx(NULL, paths, 2, out);
}

/* The 8x8 digits that come with the library: 1,500 to train, 297 to test. --data may name the folder of digits.csv.gz, which is installed
 * beside the examples; else they are those of the source tree. */
static dtg_error *open_digits(const struct options *options, int testing, dtg_dataset **out) {
  const char *sources = getenv("DTG_SOURCE_DIR");
  char path[4096];
  dtg_error *error;
  dtg_csv_options csv = DTG_CSV_OPTIONS_INIT;
  csv.label = "c64"; /* 64 pixels, then the digit */
  csv.header = 2;
  snprintf(path, sizeof path, "%s/digits.csv.gz", options->data);
  error = dtg_dataset_csv(NULL, path, DTG_STRLEN, &csv, out);
  if (dtg_error_code(error) == DTG_NOT_FOUND) {
    dtg_error_release(error);
    snprintf(path, sizeof path, "%s/tests/data/digits.csv.gz", sources ? sources : ".");
    error = dtg_dataset_csv(NULL, path, DTG_STRLEN, &csv, out);
    if (dtg_error_code(error) == DTG_NOT_FOUND)
      fprintf(stderr,
              "no images: in %s are neither those of Fashion-MNIST (apt install dataset-fashion-mnist) nor digits.csv.gz, and there is\n"
              "no %s; --data DIR names the folder of either\n",
              options->data, path);
  }
  if (error) return error;
  return testing ? dtg_dataset_skip(*out, 1500) : dtg_dataset_take(*out, 1500);
}

static dtg_error *open_images(const struct options *options, struct data *data, int testing, dtg_dataset **out) {
  if (data->side == 0) { /* not known yet which set it is */
    dtg_error *error = open_pair(options->data, testing ? "t10k" : "train", out);
    if (dtg_error_code(error) != DTG_NOT_FOUND) return data->name = "fashion-mnist", data->side = 28, error;
    dtg_error_release(error);
    data->name = "digits";
    data->side = 8;
  }
  return data->side == 28 ? open_pair(options->data, testing ? "t10k" : "train", out) : open_digits(options, testing, out);
}

static dtg_error *batches(dtg_dataset *images, const struct data *data, int64_t size, int testing) {
  TRY(dtg_dataset_scale(images, 0, data->side == 28 ? 255 : 16));
  TRY(dtg_dataset_cast(images, 1, DTG_I64));
  TRY(dtg_dataset_batch(images, size, !testing)); /* training steps are all of one size, a test leaves nothing out */
  return dtg_dataset_prefetch(images, 4);
}

static dtg_error *open_shard(const struct options *options, struct data *data, int of, int index, dtg_dataset **out) {
  TRY(open_images(options, data, 0, out));
  /* The same for all workers, although their shares may differ by an image. */
  data->steps = dtg_dataset_cardinality(*out) / of / (options->batch / of);
  if (of > 1) TRY(dtg_dataset_shard(*out, of, index));
  TRY(dtg_dataset_shuffle(*out, 0, options->seed + (uint64_t)index));
  return batches(*out, data, options->batch / of, 0);
}

/* The last batch may be short: every image is in one. No prefetch, as most of what comes next is another worker's. */
static dtg_error *open_dealt(const struct options *options, const struct place *place, struct data *data, dtg_dataset **out) {
  const int workers = place->task.num_workers, least = place->min_workers > 0 ? place->min_workers : workers;
  TRY(open_images(options, data, 0, out));
  data->images = dtg_dataset_cardinality(*out);
  TRY(dtg_dataset_shuffle(*out, 0, options->seed));
  TRY(dtg_dataset_scale(*out, 0, data->side == 28 ? 255 : 16));
  TRY(dtg_dataset_cast(*out, 1, DTG_I64));
  TRY(dtg_dataset_batch(*out, options->batch > workers ? options->batch / workers : 1, 0));
  data->elements = dtg_dataset_cardinality(*out);
  data->steps = (data->elements + least - 1) / least;
  return NULL;
}

dtg_error *open_data(const struct options *options, const struct place *place, struct data *data) {
  /* A coordinator has all images, and gives each worker the share of a batch that it would take. */
  struct options share = *options;
  if (place->coordinates) {
    share.batch = options->batch > count_workers(place) ? options->batch / count_workers(place) : 1;
    data->shards = 1;
    TRY(open_shard(&share, data, 1, 0, &data->train[0]));
  }
  const int workers = place->cluster ? place->task.num_workers : options->shards;
  data->shards = place->cluster ? 1 : options->shards;
  const int dealt = has_ps(place) && sync_mode(options) == DTG_SYNC_ELASTIC;
  if (dealt) TRY(open_dealt(options, place, data, &data->train[0]));
  for (int i = 0; i < data->shards && !dealt && !place->coordinates; i++)
    TRY(open_shard(options, data, workers, place->cluster ? place->task.id : i, &data->train[i]));
  if (data->side == 8 && place->task.id == 0) {
    printf("no data set in %s, taking the 8x8 digits; for the real one: apt install dataset-fashion-mnist\n", options->data);
  }
  TRY(open_images(options, data, 1, &data->test));
  return batches(data->test, data, TEST_BATCH, 1);
}

/* The order of an epoch hangs on the seed and on its number, so it is enough to begin that many and to leave out the rest. */
dtg_error *skip_steps(struct data *data, int64_t steps) {
  for (int i = 0; i < data->shards; i++) {
    const int64_t per_epoch = dtg_dataset_cardinality(data->train[i]);
    if (per_epoch < 1) continue;
    for (int64_t epoch = 0; epoch < steps / per_epoch; epoch++) TRY(dtg_dataset_restart(data->train[i]));
    for (int64_t step = 0; step < steps % per_epoch; step++) {
      dtg_tensor *batch[2];
      int32_t more = 0;
      TRY(dtg_dataset_next(data->train[i], batch, 2, &more));
      if (more) dtg_tensor_release(batch[0]), dtg_tensor_release(batch[1]);
    }
  }
  return NULL;
}

void close_data(struct data *data) {
  for (int i = 0; i < data->shards; i++) dtg_dataset_release(data->train[i]);
  dtg_dataset_release(data->test);
}
