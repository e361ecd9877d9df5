/* options.c: what the command line asks for. */
#include "fashion_mnist.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int usage(const char *program) {
  fprintf(
      stderr,
      "usage: %s [OPTION VALUE]...\n"
      "  --data DIR      the data set; default /usr/share/datasets/fashion-mnist. Or the folder of digits.csv.gz: that of the\n"
      "                  installed examples, or tests/data of the source tree\n"
      "  --run DIR       where curves, weights and summary go; default fashion_mnist.run\n"
      "  --checkpoint DIR  saves sets of all that training has come to there; started again with it, it goes on from the newest\n"
      "  --every N       steps between two of them; default 500\n"
      "  --epochs N      default 7\n"
      "  --mode MODE     sync (default), sync-replicas, async, ssp or elastic: how the workers of a cluster train together\n"
      "  --staleness N   --mode ssp: steps that a worker may be ahead of the slowest; default 4\n"
      "  --shards N      alone: towers that share a batch as N workers would; default 1\n"
      "  --strategy S    alone: one, mirrored, central or custom: the shards are replicas of a strategy, each on an emulated accelerator;\n"
      "                  multi-worker: the workers of a cluster are replicas, and there are no parameter servers;\n"
      "                  coordinator: the task chief/0 feeds the workers, which are servers: dtg run --local --chief\n"
      "  --batch N       images per step of all workers together; default 64\n"
      "  --rate R        learning rate at its top; default 0.05\n"
      "  --seed N        default 1\n"
      "It trains alone, or as the task that TF_CONFIG names: dtg run --local --ps 1 --workers 2 -- %s\n",
      program, program);
  return 3;
}

static int known_mode(const char *mode) {
  static const char *const known[] = {"sync", "sync-replicas", "async", "ssp", "elastic"};
  for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
    if (strcmp(mode, known[i]) == 0) return 1;
  }
  return 0;
}

static int known_strategy(const struct options *options) {
  const char *const s = options->strategy;
  if (s && (strcmp(s, "multi-worker") == 0 || strcmp(s, "coordinator") == 0))
    return options->shards == 1 && strcmp(options->mode, "sync") == 0;
  if (!s || strcmp(s, "mirrored") == 0 || strcmp(s, "central") == 0 || strcmp(s, "custom") == 0) return 1;
  return strcmp(s, "one") == 0 && options->shards == 1;
}

static int set(struct options *options, const char *name, const char *value) {
  if (strcmp(name, "--data") == 0) options->data = value;
  else if (strcmp(name, "--run") == 0) options->run = value;
  else if (strcmp(name, "--checkpoint") == 0) options->checkpoint = value;
  else if (strcmp(name, "--every") == 0) options->every = atoi(value);
  else if (strcmp(name, "--mode") == 0) options->mode = value;
  else if (strcmp(name, "--staleness") == 0) options->staleness = atoi(value);
  else if (strcmp(name, "--epochs") == 0) options->epochs = atoi(value);
  else if (strcmp(name, "--shards") == 0) options->shards = atoi(value);
  else if (strcmp(name, "--strategy") == 0) options->strategy = value;
  else if (strcmp(name, "--batch") == 0) options->batch = atoi(value);
  else if (strcmp(name, "--rate") == 0) options->rate = atof(value);
  else if (strcmp(name, "--seed") == 0) options->seed = strtoull(value, NULL, 10);
  else return 0;
  return 1;
}

int read_options(int argc, char **argv, struct options *options) {
  const int smoke = argc == 2 && strcmp(argv[1], "--smoke") == 0; /* a test: the digits, for a second */
  *options = (struct options){.data = "/usr/share/datasets/fashion-mnist",
                              .run = "fashion_mnist.run",
                              .mode = "sync",
                              .staleness = 4,
                              .every = 500,
                              .epochs = 7,
                              .shards = 1,
                              .batch = 64,
                              .rate = 0.05,
                              .seed = 1};
  if (smoke) options->data = "absent", options->epochs = 20;
  for (int i = 1; i < argc && !smoke; i += 2) {
    if (i + 1 == argc || !set(options, argv[i], argv[i + 1])) return usage(argv[0]);
  }
  if (options->epochs < 1 || options->shards < 1 || options->shards > MAX_SHARDS || options->batch < options->shards ||
      options->rate <= 0 || options->every < 1 || options->staleness < 0 || !known_mode(options->mode) || !known_strategy(options)) {
    return usage(argv[0]);
  }
  if (options->checkpoint && options->strategy && strcmp(options->strategy, "coordinator") == 0) {
    fprintf(
        stderr,
        "--checkpoint: not with --strategy coordinator yet; let the parameter servers keep their state instead (dtg run --state DIR)\n");
    return 3;
  }
  if (options->checkpoint && options->strategy && strcmp(options->strategy, "multi-worker") == 0) {
    fprintf(stderr, "--checkpoint: not with --strategy multi-worker yet; a worker that is started again has what the others have\n");
    return 3;
  }
  if (options->checkpoint && each_for_itself(options)) {
    fprintf(stderr,
            "--checkpoint: with --mode %s how far each worker is belongs to no set; let the parameter servers keep their state\n"
            "instead (dtg run --state DIR), or take --mode sync\n",
            options->mode);
    return 3;
  }
  return 0;
}

dtg_sync_mode sync_mode(const struct options *options) {
  if (strcmp(options->mode, "async") == 0) return DTG_SYNC_ASYNC;
  if (strcmp(options->mode, "ssp") == 0) return DTG_SYNC_SSP;
  if (strcmp(options->mode, "elastic") == 0) return DTG_SYNC_ELASTIC;
  return strcmp(options->mode, "sync") == 0 ? DTG_SYNC_STRICT : DTG_SYNC_REPLICAS;
}

/* Workers that make every step together, so that the step is the same for all. */
int in_step(const struct options *options) { return sync_mode(options) == DTG_SYNC_STRICT || sync_mode(options) == DTG_SYNC_ELASTIC; }

int each_for_itself(const struct options *options) { return sync_mode(options) == DTG_SYNC_ASYNC || sync_mode(options) == DTG_SYNC_SSP; }
