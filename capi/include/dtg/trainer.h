/* dtg/trainer.h: fit: a model, its loss, its optimizer and its metrics trained over epochs of a data set, with validation, checkpoints that
 * a training goes on from, early stopping, a learning rate that falls on a plateau, and a directory that keeps what came of it.
 *
 *   dtg_trainer_options what = DTG_TRAINER_OPTIONS_INIT; dtg_fit how = DTG_FIT_INIT;
 *   what.feeds = feeds; what.num_feeds = 2; what.loss = loss; what.optimizer = &adam;        feeds: {images, labels}
 *   dtg_trainer_create(model, &what, &trainer);
 *   dtg_trainer_add_metric(trainer, "accuracy", DTG_STRLEN, &accuracy);
 *   how.epochs = 10; how.directory = "run";
 *   dtg_trainer_fit(trainer, train, test, &how, &callbacks);
 *
 * A fit is pulled: dtg_trainer_begin, then dtg_trainer_next, which goes on to the next event and says which:
 *
 *   dtg_fit_event event = DTG_FIT_EVENT_INIT;
 *   dtg_trainer_begin(trainer, train, test, &how);
 *   while (event.kind != DTG_FIT_DONE) {
 *     dtg_trainer_next(trainer, &event);
 *     if (event.kind == DTG_FIT_STEP && event.step % 100 == 0) printf("step %lld: loss %g\n", (long long)event.step, event.loss);
 *   }
 *
 * dtg_trainer_fit is that loop, with a function of the host called for each event. Nothing happens between two calls, no thread of the
 * trainer's own is at work but the one that writes checkpoints, and a step is one run: the loss is fetched, the training and the updates of
 * the metrics are its targets. So a fit makes the same steps, to the last bit, as a loop by hand.
 *
 * With a directory a fit that was killed at any moment, and is begun again by the same program, goes on with the step that comes after its
 * last checkpoint, and ends with the same weights to the last bit, where training is deterministic: weights, what optimizers keep, metrics,
 * the places of both data sets and what the rules below have counted are in a checkpoint. In the directory are
 *   checkpoints/        sets of dtg/checkpoint.h
 *   metrics.csv         a row per epoch: epoch, step, loss, metrics, val_loss, ...; metrics.jsonl the same as a line of JSON each
 *   tensorboard/        curves by steps, in train/ and validation/, with Keras' names ("epoch_loss", "batch_loss"); settings; histograms
 *   best.safetensors    the weights of the epoch that was best, with `best`, and the model's metadata
 *   model.safetensors   the same at the end (dtg_model_restore_from reads them)
 *   model.dtg           where the trainer has outputs: graph, weights, signature and metadata in one file, for dtg_model_load, which also
 *                       tells the names of classes (dtg_model_classes); see dtg_trainer_export
 *   summary.json        what dtg_trainer_summary says, at the end
 *   report.html         the same as a page that needs no network: curves, where the time went, settings. `dtg report` compares runs
 *
 * Workers of a MultiWorkerMirrored strategy (dtg/strategy.h) fit together: each is a program that builds the same model, asks the strategy
 * for the training, and gives its trainer `strategy`, that `train`, and as `loss` a value that all have (dtg_strategy_reduce). Each reads
 * data of its own (dtg_dataset_shard), and says the same of everything else. The fit gives the variables their values; do not run the
 * target of dtg_model_init.
 *   - All make as many steps in an epoch: as `steps_per_epoch` says, or as those do whose data have the fewest elements. So with
 *     `validation_steps`.
 *   - dtg_trainer_evaluate and a metric's result are calls of all workers too, at the same place of each program.
 *   - What an epoch's end decides is decided by the first worker's values. It alone writes the directory, which the others need not see.
 *   - A stop that any worker is asked for, or a time limit, ends the fit of all behind the step that is under way, or the one after it.
 *   - When a worker is lost, the others wait for it, 60 s at most. Started again, as by `dtg run --restart on-failure`, it joins the group,
 *     builds, begins its fit, and all go on from where the furthest is: with the weights to the last bit that nothing would have ended
 *     with. The loss that the epoch tells leaves out a step that nobody has heard the end of; metrics of that epoch leave out what the
 *     lost worker had counted. Where all are started again, they go on from the first worker's last checkpoint.
 *
 * Epochs count from 1. Errors of all functions: INVALID_ARGUMENT (a closed handle, a value of another graph, numbers out of range),
 * RESOURCE_EXHAUSTED, FAILED_PRECONDITION (another thread is inside); others stand with the function. Single: one thread at a time uses a
 * trainer, and with it its model and the data sets of the call; dtg_trainer_stop and dtg_trainer_summary come from any thread, and nobody
 * is refused for them. Of two threads a fit that was begun is not the one that is refused: it waits for who came between two of its
 * events. */
#ifndef DTG_TRAINER_H
#define DTG_TRAINER_H

#include <dtg/base.h>
#include <dtg/data.h>
#include <dtg/metrics.h>
#include <dtg/nn.h>
#include <dtg/session.h>
#include <dtg/strategy.h>

DTG_BEGIN_DECLS

typedef struct dtg_trainer dtg_trainer;

/* What a trainer trains. Read during the call only; session and values are kept. */
/* clang-format off */
typedef struct dtg_trainer_options {
  size_t struct_size;
  dtg_session *session;           /* of the model's graph, local or the chief's; NULL: a local one of its own */
  const dtg_value *feeds;         /* what the components of an element of data are fed to, in their order: inputs, then labels and weights;
                                     each once */
  size_t num_feeds;
  size_t num_inputs;              /* how many of them dtg_trainer_predict feeds; 0: 1 */
  const dtg_value *outputs;       /* what dtg_trainer_predict gives; may be none */
  size_t num_outputs;
  dtg_value loss;                 /* a float32 or float64 scalar */
  const dtg_optimizer *optimizer; /* NULL: SGD. Not looked at where `train` is given */
  dtg_value train;                /* the target of a step that was made before, as by a strategy; {0}: dtg_nn_minimize makes it */
  dtg_value training;             /* a bool scalar placeholder, true in steps of training and false elsewhere (dropout, norms); {0}: none */
  const char *const *input_names; /* of the inputs in model.dtg, as many as there are, each ends with NUL; NULL: the names of their nodes */
  const char *const *output_names; /* of the outputs; NULL: "output", "output_1" and so on */
  dtg_strategy *strategy;         /* MultiWorkerMirrored, whose workers all fit together, see above; NULL, and any other: this one alone */
} dtg_trainer_options;
#define DTG_TRAINER_OPTIONS_INIT {sizeof(dtg_trainer_options), NULL, NULL, 0, 0, NULL, 0, {0}, NULL, {0}, {0}, NULL, NULL, NULL}
/* clang-format on */

/* A trainer of `model`, which it keeps with its session. Adds the training to the graph, with a learning rate that a plateau may lower
 * where the optimizer has a number for it. The model gets the optimizer's variables. `*out` is owned by the caller. Errors: those of
 * dtg_nn_minimize, UNIMPLEMENTED (without such a strategy, a session that is not the chief's, or a `train` that reduces with other
 * workers), FAILED_PRECONDITION (between workers: the model has no global step). Since 0.1. Semantics: keras.Model.compile. */
DTG_ERR dtg_trainer_create(dtg_model *model, const dtg_trainer_options *options, dtg_trainer **out) DTG_NOEXCEPT;

/* Adds a reference and returns the trainer; NULL for NULL. Any thread. Since 0.1. */
DTG_API dtg_trainer *dtg_trainer_retain(dtg_trainer *trainer) DTG_NOEXCEPT;

/* Drops a reference; a fit under way is given up where it stands, and a checkpoint that is being written gets written. NULL is fine.
 * Since 0.1. */
DTG_API void dtg_trainer_release(dtg_trainer *trainer) DTG_NOEXCEPT;

/* The session in which the trainer runs, as a handle more, owned by the caller. Since 0.1. */
DTG_ERR dtg_trainer_session(const dtg_trainer *trainer, dtg_session **out) DTG_NOEXCEPT;

/* From now on steps update this metric, and epochs and evaluations tell its result, under `name` ("accuracy"; 1 to 64 characters of ASCII
 * without spaces, commas and quotes) and "val_" before it. The result must be a scalar. Before the first step. Errors: ALREADY_EXISTS (the
 * name is taken), FAILED_PRECONDITION (steps have been made). Since 0.1. */
DTG_ERR dtg_trainer_add_metric(dtg_trainer *trainer, const char *name, size_t name_len, const dtg_metric_values *metric) DTG_NOEXCEPT;

/* ---- rules of a fit ----
 *
 * They watch a value by its name, "loss", "val_loss", or a metric's with or without "val_"; NULL: "val_loss" where the fit has data to
 * validate with, else "loss". A value that is told in no epoch of the fit is INVALID_ARGUMENT when it begins. After an epoch without
 * validation nothing is decided by a "val_" value, nor by one that is NaN, of which a warning tells with the element of the data that made
 * it so. Any other one that is no number improves on nothing (in Keras a first one is the best for ever).
 */

/* Which way a value gets better. By its name: greater where that has acc, auc, precision, recall, f1, r2 or iou in it, else less. */
typedef int32_t dtg_better;
enum { DTG_BETTER_BY_NAME = 0, DTG_BETTER_LESS = 1, DTG_BETTER_GREATER = 2 };

/* Ends a fit when the value has not got better for `patience` epochs. Semantics: keras.callbacks.EarlyStopping. */
/* clang-format off */
typedef struct dtg_early_stopping {
  size_t struct_size;
  const char *monitor;      /* which value */
  size_t monitor_len;
  dtg_better better;
  int32_t has_baseline;     /* not 0: patience begins anew only with values that are better than `baseline` too */
  double baseline;
  double min_delta;         /* by how much a value must be better to count */
  int64_t patience;         /* epochs without progress; 0 is as 1 */
  int64_t start_from_epoch; /* so many epochs pass before it looks */
  int32_t restore_best;     /* not 0: when the fit ends, early or not, but by no error, the weights are those of the best epoch. They are kept in
                               memory, and in each checkpoint */
  int32_t reserved0;
} dtg_early_stopping;
#define DTG_EARLY_STOPPING_INIT {sizeof(dtg_early_stopping), NULL, DTG_STRLEN, DTG_BETTER_BY_NAME, 0, 0.0, 0.0, 0, 0, 0, 0}
/* clang-format on */

/* Lowers the learning rate when the value has not got better for `patience` epochs: rate = max(rate * factor, min_rate). Semantics:
 * keras.callbacks.ReduceLROnPlateau. */
/* clang-format off */
typedef struct dtg_plateau {
  size_t struct_size;
  const char *monitor; /* which value */
  size_t monitor_len;
  dtg_better better;
  int32_t reserved0;
  double factor;       /* between 0 and 1; 0: 0.1 */
  double min_delta;    /* 0: 0.0001; below 0: none */
  double min_rate;
  int64_t patience;    /* 0: 10 */
  int64_t cooldown;    /* epochs after a fall in which none are counted */
} dtg_plateau;
#define DTG_PLATEAU_INIT {sizeof(dtg_plateau), NULL, DTG_STRLEN, DTG_BETTER_BY_NAME, 0, 0.0, 0.0, 0.0, 0, 0}
/* clang-format on */

/* Where the progress of a fit is shown; never on stdout. */
typedef int32_t dtg_progress;
enum {
  DTG_PROGRESS_BEST = 0, /* where stderr is a terminal, and the host takes no log: one line there, with a bar, the time left, the mean loss
                            and examples/s, and a line that stays for each epoch, with its values; else as LINES */
  DTG_PROGRESS_LINES =
      1, /* a line per epoch to the host's log, at level INFO; without one there is nothing, as stderr gets warnings only */
  DTG_PROGRESS_OFF = 2
};

/* How long a fit goes on, what it watches and what it keeps. Zero is the default of every field; read during the call only. A field that
 * would do nothing is INVALID_ARGUMENT: what says when and what to write without a directory, or how to validate without data for that. */
/* clang-format off */
typedef struct dtg_fit {
  size_t struct_size;
  int64_t epochs;            /* in all, those before it went on too; 0: 1 */
  int64_t steps_per_epoch;   /* 0: until the data ends, and the next epoch begins it anew. Otherwise epochs go on in the data where the one
                                before has ended, and where it ends it begins anew */
  int64_t validation_every;  /* epochs; 0: 1 */
  int64_t validation_steps;  /* 0: all of the data */
  int64_t time_limit_ns;     /* the fit ends in good order before the first step after that; 0: no limit */
  const char *directory;     /* of this run; made where it is not there. NULL or "": nothing is kept */
  size_t directory_len;
  int64_t checkpoint_steps;  /* a checkpoint at each multiple of that, exactly: it waits for the one before. 0: not by steps. Steps are those
                                that sets are named by: the model's count of them, which may have begun before the fit */
  int64_t checkpoint_ns;     /* and when so much time has passed since the last one; 0: not by time */
  int64_t checkpoint_epochs; /* and after so many epochs; 0: 1. One is made at the end in any case */
  int32_t keep;              /* how many checkpoints; 0: 3 */
  int32_t fresh;             /* not 0: where the directory has a training already, that is ALREADY_EXISTS; 0: the fit goes on with it */
  const char *best;          /* best.safetensors is written after each epoch in which this value was the best so far; NULL: never */
  size_t best_len;
  dtg_better best_better;
  int32_t reserved0;
  const dtg_early_stopping *early_stopping; /* NULL: none */
  const dtg_plateau *plateau;               /* NULL: none */
  dtg_cancellation *cancellation;           /* ends the fit with CANCELLED, in the middle of a step too; NULL: nobody does */
  int32_t no_tensorboard;                   /* not 0: no curves; 0: in the directory, if there is one */
  dtg_progress progress;                    /* who looks on */
  int64_t tensorboard_steps;                /* curves have the loss of each multiple of that too; 0: values of epochs only */
  int64_t histogram_epochs;                 /* and histograms of the weights after so many epochs; 0: none */
} dtg_fit;
#define DTG_FIT_INIT {sizeof(dtg_fit), 0, 0, 0, 0, 0, NULL, DTG_STRLEN, 0, 0, 0, 0, 0, NULL, DTG_STRLEN, DTG_BETTER_BY_NAME, 0, NULL, NULL, NULL, 0, 0, 0, 0}
/* clang-format on */

/* ---- events ---- */

/* What a fit has come to. Of an epoch the events come in this order: EPOCH_BEGIN, STEP for each step, VALIDATION, RATE, EPOCH_END,
 * CHECKPOINT; those in the middle, and CHECKPOINT between steps, only where there is cause. */
typedef int32_t dtg_fit_event_kind;
enum {
  DTG_FIT_BEGIN = 0,       /* text: whether it starts or goes on */
  DTG_FIT_EPOCH_BEGIN = 1, /* comes again for an epoch that a resumed fit goes on with */
  DTG_FIT_STEP = 2,        /* values: "loss", that of this step */
  DTG_FIT_VALIDATION = 3,  /* values: the epoch's so far, "val_loss" and "val_" metrics among them */
  DTG_FIT_RATE = 4,        /* a plateau has lowered the learning rate; text */
  DTG_FIT_EPOCH_END = 5,   /* values: "loss", the mean over the epoch's examples; metrics; those of the validation; "learning_rate" */
  DTG_FIT_CHECKPOINT = 6,  /* the values of a checkpoint are taken, and are being written; text: where */
  DTG_FIT_STOPPED = 7,     /* the fit ends early; text: why. A rule, the time limit, dtg_trainer_stop */
  DTG_FIT_DONE = 8         /* the last event: everything is on the disk */
};

/* One event; written by the library. What it points to is valid until the trainer's next call; where another thread releases the trainer
 * meanwhile, until this thread is given the next event of any. */
/* clang-format off */
typedef struct dtg_fit_event {
  size_t struct_size;
  dtg_fit_event_kind kind;
  int32_t reserved0;
  int64_t epoch;            /* from 1; where none is under way, how many are over */
  int64_t batch;            /* steps made in this epoch */
  int64_t batches;          /* steps of an epoch; -1 where that is not known */
  int64_t step;             /* steps made in all, before the fit went on too */
  int64_t examples;         /* of this epoch, so far */
  double loss;              /* STEP: of this step; else the mean of this epoch so far */
  double learning_rate;     /* of the steps that it tells of, as in the values; RATE: from here on. 0: a schedule's, or not the trainer's */
  double examples_per_s;    /* in this epoch */
  double seconds;           /* since the fit began, in this process */
  const char *const *names; /* of the values; each ends with NUL */
  const double *values;
  size_t num_values;
  const char *text;         /* what there is to say, or ""; ends with NUL */
} dtg_fit_event;
#define DTG_FIT_EVENT_INIT {sizeof(dtg_fit_event), 0, 0, 0, 0, 0, 0, 0, 0.0, 0.0, 0.0, 0.0, NULL, NULL, 0, NULL}
/* clang-format on */

/* Begins a fit, or goes on with the one of the directory; one that was under way is given up. Variables without a value get their first
 * one; those that have values, as restored weights, keep them, unless a checkpoint of the directory says otherwise. `validation` and `how`
 * may be NULL: no validation, one epoch. Both data sets are kept until the next fit, and until this one is over, has failed or is given up
 * nobody else reads, restarts or transforms them: that is FAILED_PRECONDITION. They are two. A fit that goes on may have other data to
 * validate with, some where there was none, more epochs, or fewer: where more are over than it asks for, it ends at once with what there
 * is, and a warning. A rule that watches another value than before begins anew, with a warning; what early stopping has decided holds as
 * long as the rule would decide it. A rate that fell stays where it is, unless the optimizer has another `rate` than when the checkpoint
 * was saved: then that one holds, with a warning (Keras puts the checkpoint's over it). Their elements have as many components as there are
 * feeds, of the same types and shapes. Data that have a schema leave it in the model as its metadata "schema", unless there is one, of an
 * earlier fit or of the file that the model was loaded from: then data to train on that mean something else are refused too, and
 * dtg_model_set_metadata says that the model shall mean them. Where model.dtg cannot be written at the end a warning says so now. Errors:
 * INVALID_ARGUMENT (data whose names have other numbers, whose columns are others or in another order, or whose label is
 * another than the schema's, or than those to train on; names of classes that do not fit an output; a label of names, where no output tells
 * so many apart), FAILED_PRECONDITION (another process trains in the directory; a checkpoint that does not fit the model; data that have
 * another schema than those which the checkpoint was made with, or other stages: give the new data a directory of its own; data that
 * another fit reads; dtg_trainer_fit is under way), ALREADY_EXISTS, DATA_LOSS, those of the disk and of dtg_session_run. Since 0.1. */
DTG_ERR dtg_trainer_begin(dtg_trainer *trainer, dtg_dataset *data, dtg_dataset *validation, const dtg_fit *how) DTG_NOEXCEPT;

/* Goes on to the next event, which is DTG_FIT_DONE at last; one call makes no more than one step. After an error the fit is over: calls
 * repeat it, and a fit that is begun anew goes on from its last checkpoint. The directory is free then, as after DTG_FIT_DONE. A last
 * checkpoint that cannot be written is an error, after model.safetensors and summary.json. Errors: those of dtg_session_run (a loss that is
 * no finite number is INVALID_ARGUMENT and names the first value that was not finite), of the data and of the disk; CANCELLED;
 * FAILED_PRECONDITION (no fit was begun, or it is over; data without elements; dtg_trainer_fit is under way). Since 0.1. */
DTG_ERR dtg_trainer_next(dtg_trainer *trainer, dtg_fit_event *event) DTG_NOEXCEPT;

/* Gives up the fit under way where it stands, without a checkpoint: it is over as by an error, CANCELLED, and goes on from its last
 * checkpoint where it is begun anew. A checkpoint that is being written gets written, and is waited for. Its data sets and its directory
 * are free then, and the trainer may evaluate and make steps. A fit that is over stays as it is, and none is fine. Errors:
 * FAILED_PRECONDITION (dtg_trainer_fit is under way: its functions return an error instead). Since 0.1. */
DTG_ERR dtg_trainer_give_up(dtg_trainer *trainer) DTG_NOEXCEPT;

/* What the host is told of an event: on the calling thread, between two steps, with nothing locked, so that it may use the trainer
 * (evaluate and predict between epochs, over other data sets than the two of the fit, which are the fit's until it ends; what came of a
 * validation is in the event), the session and everything else. It may not begin another fit, nor pull this one, nor read the fit's data
 * sets: FAILED_PRECONDITION. NULL goes on; an error, owned by the library from then on, ends the fit with it, and dtg_trainer_next repeats
 * it. */
typedef dtg_error *(*dtg_fit_fn)(void *user, dtg_trainer *trainer, const dtg_fit_event *event);

/* One function for each kind of event, NULL: none. */
/* clang-format off */
typedef struct dtg_fit_callbacks {
  size_t struct_size;
  /* what they are given; the host's */
  void *user;
  /* once, before the first step: whether the fit starts or goes on */
  dtg_fit_fn begin;
  /* before the first step of each epoch */
  dtg_fit_fn epoch_begin;
  /* after each step: `loss` is its loss */
  dtg_fit_fn step;
  /* after a validation, with its values */
  dtg_fit_fn validation;
  /* when the learning rate has fallen */
  dtg_fit_fn rate;
  /* after each epoch, with all of its values */
  dtg_fit_fn epoch_end;
  /* when the values of a checkpoint have been taken */
  dtg_fit_fn checkpoint;
  /* when the fit ends early */
  dtg_fit_fn stopped;
  /* at last, when everything is on the disk */
  dtg_fit_fn done;
} dtg_fit_callbacks;
#define DTG_FIT_CALLBACKS_INIT {sizeof(dtg_fit_callbacks), NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL}
/* clang-format on */

/* dtg_trainer_begin, then dtg_trainer_next until DTG_FIT_DONE, with a call of the host for each event. `callbacks` may be NULL. For
 * programs of C; other languages have a loop of their own over dtg_trainer_next. Errors of both, and of the callbacks. Since 0.1.
 * Semantics: keras.Model.fit. */
DTG_ERR dtg_trainer_fit(dtg_trainer *trainer, dtg_dataset *data, dtg_dataset *validation, const dtg_fit *how,
                        const dtg_fit_callbacks *callbacks) DTG_NOEXCEPT;

/* Asks a fit to end in good order before its next step: with DTG_FIT_STOPPED, a last checkpoint, DTG_FIT_DONE. Does not wait. One that is
 * begun afterwards is not meant; one that is just beginning is. Any thread, also from a callback; NULL is fine. Since 0.1. Semantics:
 * stop_training of Keras. */
DTG_API void dtg_trainer_stop(dtg_trainer *trainer) DTG_NOEXCEPT;

/* {"outcome", "why", "epochs", "steps", "resumed", "directory", "best_epoch", "best" (of "monitor"), "settings", "environment", "times",
 * "history": [...]} of the fit that was begun last: outcome is "running", "done", "stopped" or "failed", history has what metrics.jsonl
 * has; times are those of this process' epochs, in seconds: {"epoch", "seconds", "data" (waiting), "compute" (steps), "validation",
 * "files", "examples_per_s"}.
 * Any thread, also while another is inside a fit: then it is as of the next event, or, where none comes within a second, as of one before.
 * `*out` is owned by the caller. Errors: FAILED_PRECONDITION (none was begun). Since 0.1. */
DTG_ERR dtg_trainer_summary(const dtg_trainer *trainer, dtg_string **out) DTG_NOEXCEPT;

/* ---- for those who drive it themselves ----
 *
 * `cancellation` may be NULL. Variables without a value get their first one. In the middle of an epoch of a fit, from
 * DTG_FIT_EPOCH_BEGIN to DTG_FIT_EPOCH_END, these are FAILED_PRECONDITION, but for dtg_trainer_predict: they would change what it counts.
 */

/* One step of training with these tensors, one per feed, with equally many rows where the placeholders leave their number open: otherwise
 * it is INVALID_ARGUMENT, as are values that are no numbers under maximum pooling, whose loss does not tell of them (dtg_nn_max_pool2d); so
 * it is in a fit. `loss` (NULL: not told) receives its loss, before the step. Metrics are updated; dtg_trainer_evaluate and a fit begin
 * them anew. Allocates nothing once it is warm. Errors: those of dtg_session_run. Since 0.1. Semantics: keras.Model.train_on_batch. */
DTG_ERR dtg_trainer_train_step(dtg_trainer *trainer, const dtg_tensor *const *tensors, size_t num_tensors, dtg_cancellation *cancellation,
                               double *loss) DTG_NOEXCEPT;

/* Loss and metrics over a data set from its beginning, or over `steps` elements (0: all): the loss is the mean over examples. `out` (its
 * struct_size set) receives the values, "loss" and the metrics, as of DTG_FIT_VALIDATION without "val_". A loss that is NaN, data that
 * were not normalized, scaled or cast as those of the last fit were, and rows that batches have dropped (whole batches only) are a warning.
 * Errors: those of dtg_session_run, FAILED_PRECONDITION (no elements), INVALID_ARGUMENT (data that mean something else by their numbers, as
 * in dtg_trainer_predict). Since 0.1. Semantics: keras.Model.evaluate. */
DTG_ERR dtg_trainer_evaluate(dtg_trainer *trainer, dtg_dataset *data, int64_t steps, dtg_cancellation *cancellation,
                             dtg_fit_event *out) DTG_NOEXCEPT;

/* The outputs of the trainer for a data set from its beginning, one row per example: outputs[i] receives those of output i, all batches one
 * below the other, owned by the caller. num_outputs must be that of the trainer. Elements may have the inputs only, or labels too. Rows
 * that were left out where the data were read (DTG_MISSING_DROP), or that were too few for a batch (whole batches only), have no
 * prediction, and a warning says so. Errors: those of
 * dtg_session_run, INVALID_ARGUMENT (an output without a row for each example; data whose names have other numbers than the model's
 * metadata "schema" says, or are numbers there, or columns that are others, or in another order; for dtg_trainer_evaluate another label,
 * too), FAILED_PRECONDITION (no elements, or no outputs). Since 0.1. Semantics: keras.Model.predict. */
DTG_ERR dtg_trainer_predict(dtg_trainer *trainer, dtg_dataset *data, dtg_cancellation *cancellation, dtg_tensor **outputs,
                            size_t num_outputs) DTG_NOEXCEPT;

/* Writes model.dtg to a path of one's own: what dtg_trainer_predict runs, as dtg_model_export writes it, with the trainer's inputs and
 * outputs by name, the model's metadata, and the switch of training off for good. Another process, in any language, loads it with
 * dtg_model_load and runs it, from as many threads as it likes. Also in the middle of a fit. Errors: those of dtg_model_export;
 * FAILED_PRECONDITION (no outputs); INVALID_ARGUMENT (an input and an output of one name); UNIMPLEMENTED (variables with copies on several
 * devices). Since 0.1. */
DTG_ERR dtg_trainer_export(dtg_trainer *trainer, const char *path, size_t path_len) DTG_NOEXCEPT;

DTG_END_DECLS

#endif /* DTG_TRAINER_H */
