/* fashion_mnist.h: the parts of the example and what they hand each other. One thread uses all of it.
 *
 *   options.c   what the command line asks for
 *   place.c     alone, or a task of a cluster: server, session, the end of the job
 *   data.c      images and labels, this worker's share of them
 *   network.c   the graph: model, losses, and how it is trained in each mode
 *   ledger.c    what outlives a worker that dies: how far each is, how it did
 *   train.c     the steps, the tests, what the person at the terminal sees
 *   coordinate.c  the steps and tests where a chief gives them to workers that are plain servers
 *   files.c     the run directory: curves, weights, summary
 *   main.c      one after the other
 */
#ifndef FASHION_MNIST_H
#define FASHION_MNIST_H

#include <dtg/dtg.h>
#include <dtg/sugar.h>

/* Every function returns what went wrong, or NULL. */
#define TRY(call)                      \
  do {                                 \
    dtg_error *error_ = (call);        \
    if (error_ != NULL) return error_; \
  } while (0)

enum { TEST_BATCH = 500, EVENTS_EVERY = 50, MAX_SHARDS = 16, MAX_WORKERS = 256, MAX_TESTS = 64 };

/* ---- options.c ---- */

struct options {
  const char *data, *run;
  const char *checkpoint; /* NULL: none */
  int every;              /* steps */
  const char *mode;       /* "sync", "sync-replicas", "async", "ssp" or "elastic": how the workers of a cluster train together */
  int staleness;          /* "ssp": steps that a worker may be ahead of the slowest */
  int epochs;
  int shards;           /* alone: towers that share a batch, as that many workers would; equal bits */
  const char *strategy; /* NULL: none. "one", "mirrored", "central", "custom": whose replicas the shards are; "multi-worker": whose
                           replicas the workers of the cluster are; "coordinator": workers are servers and
                           the chief's task gives them every step */
  int batch;            /* of all workers together */
  double rate;
  uint64_t seed;
};

int read_options(int argc, char **argv, struct options *options); /* 0: go on; otherwise the exit code + 1 */
dtg_sync_mode sync_mode(const struct options *options);
int in_step(const struct options *options);
int each_for_itself(const struct options *options); /* a worker's step is an update of its own */

/* ---- place.c ---- */

struct network;

struct place {
  dtg_task task;
  dtg_cluster *cluster; /* NULL: alone */
  dtg_runtime *runtime;
  dtg_server *server;
  dtg_group *group; /* "multi-worker": the workers; they have no parameter servers. Else NULL */
  int coordinates;  /* the chief's task feeds the workers, which are servers like the parameter servers */
  char name[80];    /* "worker-1", also of its run directory */
  int restarts;     /* how often the launcher has started this task again */
  int min_workers;  /* workers come and go, but for so many; 0: their number is fixed */
};

dtg_error *find_place(const struct options *options, struct place *place);
int is_worker(const struct place *place); /* has steps to make, or to give out */
int count_workers(const struct place *place);
int has_ps(const struct place *place); /* variables stand on parameter servers */
int job_has_ended(const struct place *place);
dtg_error *serve(const struct place *place,
                 const struct options *options); /* a ps, or a worker for a coordinator: until the chief ends the job */
dtg_error *connect_session(const struct place *place, const struct network *network, dtg_session **out);
void leave_place(struct place *place);

/* ---- data.c ---- */

struct data {
  const char *name;
  int64_t side;             /* images are side x side */
  int shards;               /* of this process: 1, or one per tower */
  int64_t steps;            /* per epoch; where elements are dealt, with as many workers as there are at least */
  int64_t images, elements; /* "elastic": images of an epoch, and batches that it is dealt in; else 0 */
  dtg_dataset *train[MAX_SHARDS], *test;
};

dtg_error *open_data(const struct options *options, const struct place *place, struct data *data);
dtg_error *skip_steps(struct data *data, int64_t steps); /* as if that many had been taken, from the beginning */
void close_data(struct data *data);

/* ---- network.c ---- */

/* One copy of the computation. */
struct tower {
  dtg_value images, labels; /* fed */
  dtg_value loss, accuracy, correct;
};

struct ledger {
  dtg_model *progress, *reports; /* NULL: not kept */
  dtg_value init, mine;          /* of the progress: first values, how far this worker is */
  dtg_value advance;             /* target, part of a step; {0}: not counted */
  dtg_value report, report_in;
};

struct network {
  dtg_graph *graph;
  dtg_model *model;
  struct tower towers[MAX_SHARDS];
  int num_towers;
  dtg_strategy *strategy;   /* NULL: plain towers */
  dtg_per_replica losses;   /* of a strategy */
  dtg_value worker, maker;  /* "coordinator": fed with the worker's number, and the same as a result */
  dtg_value level;          /* "multi-worker": target, gives all workers what the furthest has */
  int64_t side;             /* of an image */
  dtg_value loss, accuracy; /* means over the towers */
  dtg_value init, rate;
  dtg_training training;     /* alone */
  dtg_replicated replicated; /* a worker of a cluster */
  struct ledger ledger;
};

dtg_error *build_network(const struct options *options, const struct place *place, const struct data *data, struct network *n);

/* ---- training ---- */

/* What a worker tells the chief at its end. Images and seconds are those since it was last started, steps all of them. */
struct report {
  double steps, images, seconds, recoveries;
};
enum { REPORT_VALUES = sizeof(struct report) / sizeof(double) };

/* Updates that there should be, that there are, and what is wrong with them; "elastic": images in updates. */
struct tally {
  int64_t expected, counted, lost, doubled;
};

struct desk;

struct training_run {
  dtg_session *session;
  dtg_callable *step, *test, *rate;
  dtg_cq *ended; /* of the chief's update loop */
  dtg_run *updates;
  struct desk *desk;      /* of a coordinator */
  dtg_tensor *results[5]; /* loss, accuracy, gradient norm, local and next step: written in place, so that a warm step
                             allocates nothing */
  int num_results;
  dtg_tensor *batch[2 * MAX_SHARDS]; /* the one that was taken last */
  int64_t taken;                     /* batches: the next is that of this step */
  dtg_event_writer *events;
  dtg_checkpoint *sets; /* of the chief, or the only process; NULL: none */
  int64_t steps, total, images;
  int64_t begun_at;      /* steps of earlier lives of this process */
  int losses;            /* of a task in the middle of a step */
  double seconds;        /* of training, tests not counted */
  double loss, accuracy; /* the last ones; accuracy is that of the last test */
  int64_t staleness;
  struct report reports[MAX_WORKERS]; /* of all workers; the chief's are complete */
  struct tally tally;
};

/* ---- ledger.c ---- */

dtg_error *build_ledger(const struct options *options, const struct place *place, struct network *n);
dtg_error *has_values(dtg_session *session, dtg_graph *graph, const dtg_model *model, int *all);
dtg_error *find_progress(dtg_session *session, const struct place *place, const struct network *n, int64_t *steps);
dtg_error *check_ledger(const struct options *options, struct training_run *run, const struct place *place, const struct network *n,
                        const struct data *data);
struct report report_of(const struct training_run *run, const struct place *place);
dtg_error *send_report(struct training_run *run, const struct place *place, const struct network *n);
dtg_error *take_reports(struct training_run *run, const struct place *place, const struct network *n);
dtg_error *exchange_reports(struct training_run *run, const struct place *place); /* "multi-worker": all of them, at the end */
void release_ledger(struct ledger *ledger);

/* ---- train.c ---- */

extern volatile int interrupted;

dtg_error *prepare_run(struct training_run *run, const struct place *place, const struct network *n, struct data *data,
                       const struct options *options);
dtg_error *train(struct training_run *run, const struct place *place, const struct network *n, const struct data *data,
                 const struct options *options);
dtg_error *part_from_equals(struct training_run *run, const struct place *place, const struct network *n); /* "multi-worker" */
dtg_error *save_set(struct training_run *run); /* where sets are kept: what training has come to */
dtg_error *finish_run(struct training_run *run);
void release_run(struct training_run *run);
float scalar(const dtg_tensor *tensor);
dtg_error *next_batch(struct training_run *run, const struct data *data);
dtg_error *write_events(const struct training_run *run, const struct place *place, double seconds);
void show_progress(const struct training_run *run, const struct place *place, double since);

/* ---- coordinate.c ---- */

dtg_error *prepare_desk(struct training_run *run, const struct network *n);
dtg_error *coordinate_until(int64_t goal, struct training_run *run, const struct place *place, const struct data *data);
dtg_error *coordinate_test(struct training_run *run, dtg_dataset *data, int64_t *correct, int64_t *seen);
dtg_error *report_for_workers(struct training_run *run, const struct place *place);
void release_desk(struct desk *desk);

/* ---- files.c ---- */

dtg_error *open_events(const struct options *options, const struct place *place, int64_t begun_at, dtg_event_writer **out);
dtg_error *write_server_status(const struct options *options, const struct place *place);
int write_run(const struct options *options, int argc, char **argv);
int write_summary(const struct options *options, const struct place *place, const struct data *data, const struct training_run *run);
dtg_error *save_weights(const struct options *options, const struct network *n, const struct training_run *run);

#endif /* FASHION_MNIST_H */
