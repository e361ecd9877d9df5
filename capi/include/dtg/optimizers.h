/* dtg/optimizers.h: optimizers, training steps and schedules of the learning rate, for models of dtg/nn.h, which includes this.
 *
 *   dtg_optimizer how = DTG_OPTIMIZER_INIT;
 *   how.kind = DTG_OPT_ADAMW;
 *   how.undecayed_names = "bias,gamma,beta";
 *   dtg_nn_minimize(model, loss, &how, &training);       then run dtg_model_init's target once and training.train every step
 *
 * What an optimizer keeps from step to step are variables of the model: saved, restored and named like all others. Those that belong to a
 * variable "v" are called "v/...", stand on its device and have its type ("slots"); those that belong to all of them are scalars beside
 * the first. All kinds work alone, with towers and with replicas in every mode (dtg/replicas.h), where strict workers and towers leave
 * equal bits; what does not says UNIMPLEMENTED. Threads and errors are those of dtg/nn.h.
 *
 * Several calls of dtg_nn_minimize in one model make several steps, each with slots of its own (a name that is taken gets a number): a
 * generator and its critic list their `variables`, and the program runs whichever step it wants. Each step counts the global step.
 */
#ifndef DTG_OPTIMIZERS_H
#define DTG_OPTIMIZERS_H

#include <dtg/base.h>
#include <dtg/graph.h>
#include <dtg/nn.h>

DTG_BEGIN_DECLS

/* ---- optimizers ---- */

/* How a variable v is moved by its gradient g; t counts the steps from 1, w is weight_decay, and numbers are those of dtg_optimizer. The
 * formulas are TensorFlow's (ops ResourceApply...) where TensorFlow has one, and those of Keras 3 otherwise; TensorFlow's differ from
 * Keras' in first values and in where epsilon stands, as told below. Before the formula every kind but LARS takes rate * w * v off v
 * (decoupled weight decay, as in Keras).
 *
 * For gradients that are rows: "rows" says that other rows and their slots stay as they are (TensorFlow's ResourceSparseApply... and
 * ResourceScatterSub), "all" that rows without a gradient have the gradient 0 (TensorFlow's Adam, Keras' others). Equal indices are added
 * up first.
 *
 * What each kind keeps beside "v", with first values; what becomes of rows; and where it differs from Keras 3:
 *
 * - SGD: nothing. Rows.
 * - MOMENTUM: "Momentum" a, 0. Rows. Keras has the rate in a: a = momentum * a - rate * g.
 * - ADAM: "Adam" m, 0; "Adam_1" s, 0; with amsgrad "Adam_2" h, 0. All. An epsilon of 1e-8, not 1e-7.
 * - ADAMW: as ADAM.
 * - ADAGRAD: "Adagrad" a, initial_accumulator. Rows. No epsilon.
 * - RMSPROP: "RMSProp" s, 1; "RMSProp_1" a, 0. Rows. s begins at 1, not 0.
 * - RMSPROP, centered: "RMSProp" s, 1; "RMSProp_1" the mean c of g, 0; "RMSProp_2" a, 0. Rows. s begins at 1, not 0.
 * - ADADELTA: "Adadelta" s, 0; "Adadelta_1" d, 0. Rows.
 * - ADAMAX: "Adamax" m, 0; "Adamax_1" h, 0. All.
 * - NADAM: "Nadam" m, 0; "Nadam_1" s, 0. All.
 * - FTRL: "Ftrl" a, initial_accumulator; "Ftrl_1" z, 0. Rows.
 * - LION: "Lion" m, 0. All.
 * - LAMB: "LAMB" m, 0; "LAMB_1" s, 0. All.
 * - LARS: "LARS" a, 0. All. Not in Keras: tf.contrib.opt.LARSOptimizer.
 * - ADAFACTOR: "Adafactor" r, 0, without the last dimension; "Adafactor_1" c, 0, without the last but one; of scalars and vectors
 *   "Adafactor" s, 0. All. There is no relative_step, which Keras 3 ignores.
 *
 * Scalars: "beta1_power" and "beta2_power" (ADAM, ADAMW, LAMB; the first of ADAMAX, the second of NADAM), "nadam_decay_power",
 * "nadam_u_product", "adafactor_step", "average_step", "accumulation_step". Row gradients of ADAM and ADAMW may be `lazy`. */
typedef int32_t dtg_optimizer_kind;
enum {
  DTG_OPT_SGD = 0,      /* v -= rate * g */
  DTG_OPT_MOMENTUM = 1, /* a = momentum * a + g; v -= rate * a, with nesterov v -= rate * (g + momentum * a) */
  DTG_OPT_ADAM = 2,     /* moving means m of g (beta1) and s of g^2 (beta2); v -= rate * sqrt(1 - beta2^t) / (1 - beta1^t) * m / (sqrt(s) +
                           epsilon); with amsgrad h = max(h, s) in place of s */
  DTG_OPT_ADAGRAD = 3,  /* a += g^2; v -= rate * g / sqrt(a) */
  DTG_OPT_RMSPROP = 4,  /* s = decay * s + (1 - decay) * g^2; a = momentum * a + rate * g / sqrt(s + epsilon); v -= a. With centered c
                           follows  g as s does g^2, and sqrt(s - c^2 + epsilon) divides */
  DTG_OPT_ADAMW = 5,    /* Adam with a weight decay of 0.004 unless another is given */
  DTG_OPT_ADADELTA = 6, /* s = decay * s + (1 - decay) * g^2; u = sqrt(d + epsilon) / sqrt(s + epsilon) * g; v -= rate * u;
                           d = decay * d + (1 - decay) * u^2 */
  DTG_OPT_ADAMAX = 7,   /* m as Adam; h = max(beta2 * h, |g|); v -= rate / (1 - beta1^t) * m / (h + epsilon) */
  DTG_OPT_NADAM = 8, /* m, s as Adam; u(t) = beta1 * (1 - 0.96^t / 2), U(t) = u(1) * ... * u(t); v -= rate * (u(t + 1) * m / (1 - U(t + 1))
                        + (1 - u(t)) * g / (1 - U(t))) / (sqrt(s / (1 - beta2^t)) + epsilon) */
  DTG_OPT_FTRL = 9,  /* b = a + g^2; z += g + 2 * l2_shrinkage * v - (b^-p - a^-p) / rate * v with p = rate_power; a = b;
                        v = (clip(z, -l1, l1) - z) / (b^-p / rate + 2 * l2 + ftrl_beta / rate). Semantics: ResourceApplyFtrlV2 */
  DTG_OPT_LION = 10, /* v -= rate * sign(beta1 * m + (1 - beta1) * g); m = beta2 * m + (1 - beta2) * g */
  DTG_OPT_LAMB = 11, /* m, s as Adam; u = m / (1 - beta1^t) / (sqrt(s / (1 - beta2^t)) + epsilon); v -= rate * |v| / |u| * u, where a norm
                        is 0 without the quotient */
  DTG_OPT_LARS = 12, /* q = rate * trust * |v| / (|g| + w * |v| + epsilon), where a norm is 0 the rate; momentum of g + w * v with q.
                        What is exempt from weight decay has the rate and g */
  DTG_OPT_ADAFACTOR = 13 /* e = t^decay; r and c follow the means of g^2 + epsilon over the last dimension and the one before it, with the
                            share e; u = g / sqrt(r / mean(r) * c); v -= max(epsilon2, rms(v)) * min(rate, 1 / sqrt(t)) * u /
                            max(1, rms(u) / clip_threshold) */
};

/* An optimizer and its numbers, which are constants of the graph; only the learning rate may change from step to step. A 0 means
 * the default that stands beside the field, so to get a rate of 0 feed one. Where the kind has no use for momentum, nesterov, amsgrad,
 * lazy, centered or a number of DTG_OPT_FTRL, to give one is INVALID_ARGUMENT; of the other numbers those that it does not use are
 * ignored. Pointers are read during the call only. */
typedef struct dtg_optimizer {
  size_t struct_size;
  dtg_optimizer_kind kind;
  int32_t nesterov;
  dtg_value learning_rate;    /* a floating-point scalar, such as a placeholder or a schedule, in place of `rate`; {0}: `rate` */
  double rate;                /* 0: 0.01 */
  double momentum;            /* of DTG_OPT_MOMENTUM, DTG_OPT_RMSPROP and DTG_OPT_LARS, to 1; 0: none */
  double beta1;               /* 0: 0.9 */
  double beta2;               /* 0: 0.999; DTG_OPT_LION: 0.99 */
  double epsilon;             /* 0: 1e-8; of kinds from DTG_OPT_ADADELTA on 1e-7, but DTG_OPT_LARS: none, DTG_OPT_ADAFACTOR: 1e-30 */
  double decay;               /* 0: 0.9; DTG_OPT_ADADELTA: 0.95; DTG_OPT_ADAFACTOR: -0.8, below 0 */
  double initial_accumulator; /* of DTG_OPT_ADAGRAD and DTG_OPT_FTRL; 0: 0.1 */
  double clip_norm;           /* gradients whose norm over all variables is greater are scaled down to it; 0: never */
  int32_t unchecked_loss;     /* 0: a step whose loss is no finite number fails with INVALID_ARGUMENT and changes nothing; the message names
                                 the step, the worker or tower, and of dtg_session_run and dtg_callable_run the first value that is not
                                 finite (computed once more for that). With DTG_SYNC_STRICT the step fails on all workers, also when it
                                 is another's loss. Otherwise such a loss goes into the weights. Gradients of one's own are not checked */
  int32_t lazy;               /* of DTG_OPT_ADAM and DTG_OPT_ADAMW, for gradients that are rows. 0: as TensorFlow's Adam, all rows move and
                                 decay in each step; otherwise only the rows that were used, with their m and s (LazyAdam) */
  double weight_decay;   /* share of each variable, times the rate, that goes each step; 0: none, DTG_OPT_ADAMW: 0.004. Of DTG_OPT_LARS it
                            is added to the gradient */
  int32_t amsgrad;       /* of DTG_OPT_ADAM and DTG_OPT_ADAMW: the largest s so far divides. Not together with lazy: UNIMPLEMENTED */
  int32_t centered;      /* of DTG_OPT_RMSPROP: the variance of the gradient divides */
  double l1;             /* of DTG_OPT_FTRL */
  double l2;             /* of DTG_OPT_FTRL */
  double l2_shrinkage;   /* of DTG_OPT_FTRL */
  double ftrl_beta;      /* of DTG_OPT_FTRL */
  double rate_power;     /* of DTG_OPT_FTRL, below 0; 0: -0.5 */
  double trust;          /* of DTG_OPT_LARS; 0: 0.001 */
  double epsilon2;       /* of DTG_OPT_ADAFACTOR; 0: 0.001 */
  double clip_threshold; /* of DTG_OPT_ADAFACTOR; 0: 1 */
  double clip_value;     /* each element of a gradient is cut to [-clip_value, clip_value]; 0: never. Keras' clipvalue */
  double clip_each_norm; /* each gradient whose norm is greater is scaled down to it; 0: never. Keras' clipnorm. Of clip_norm (Keras'
                            global_clipnorm), clip_each_norm and clip_value one may be given */
  const char *undecayed_names; /* words, with commas between them: a variable whose name contains one is exempt from weight decay, as by
                                 Keras' exclude_from_weight_decay; each is of some variable ("bias,gamma,beta"). NULL: none */
  size_t undecayed_names_len;
  const dtg_value *undecayed; /* handles of variables that are exempt too */
  size_t num_undecayed;
  const dtg_value *variables; /* handles of the variables to train, all trainable, each once; NULL: all such. Moving statistics then follow
                                 only as far as the loss depends on them. dtg_nn_apply_gradients and the like do not look at it */
  size_t num_variables;
  int32_t use_ema; /* keeps a mean of each trained variable, "v/ExponentialMovingAverage" (dtg_model_find_variable), which is v after
                      the first step and then mean = ema_momentum * mean + (1 - ema_momentum) * v, after each step. Keras' use_ema, but
                      that no fit takes the means over at its end: a trainer evaluates, keeps and exports v. To have them there, give
                      ema_overwrite_every the number of steps of the training, or restore a file of weights with names mapped */
  int32_t reserved1;
  double ema_momentum;         /* of use_ema; 0: 0.99 */
  int64_t ema_overwrite_every; /* steps after which v becomes its mean, again and again; 0: never. Keras' ema_overwrite_frequency */
  int64_t accumulation_steps;  /* 2 or more: gradients are added up in "v/Accumulated" (of rows too, as a whole table), and each so manyth
                                  step  applies their mean, clipped; the others move no variable. Each counts the global step, and v's mean
                                  follows  each, as in Keras (gradient_accumulation_steps). Alone, with towers and strategies; with replicas
                                  UNIMPLEMENTED */
  int64_t lookahead_steps; /* 1 or more: after so many steps the slow copy "v/Slow" (at first v itself) goes lookahead_share of the way to
                              v, and v goes there, again and again; with accumulation_steps steps that apply are counted. Semantics:
                              tfa.optimizers.Lookahead; 0: none */
  double lookahead_share;  /* of lookahead_steps; 0: 0.5 */
} dtg_optimizer;
/* clang-format off */
#define DTG_OPTIMIZER_INIT {sizeof(dtg_optimizer), DTG_OPT_SGD, 0, {0}, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0, 0, 0.0, 0, 0, 0.0, \
                            0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, NULL, DTG_STRLEN, NULL, 0, NULL, 0, 0, 0, 0.0, 0, 0, 0, 0.0}
/* clang-format on */

/* What dtg_nn_minimize adds, as values of the graph; written by the library. */
typedef struct dtg_training {
  size_t struct_size;
  dtg_value train;         /* the target that makes one step: all updates, then global_step + 1 */
  dtg_value global_step;   /* int64 scalar. Within a step it is read before or after the count, so fetch it by itself */
  dtg_value learning_rate; /* floating-point scalar */
  dtg_value gradient_norm; /* float32: the norm over all variables, before clipping. Computed only if fetched or clipped by */
} dtg_training;
/* clang-format off */
#define DTG_TRAINING_INIT {sizeof(dtg_training), {0}, {0}, {0}, {0}}
/* clang-format on */

/* Adds the gradients of `loss` with respect to every trainable variable so far (or those that the optimizer lists), and the updates of
 * `optimizer` (NULL: SGD) to the graph; runs of it that are under way do not see them. `loss` is one floating-point number: a scalar, or
 * all sizes 1. Variables that it does not depend on are left alone. What an optimizer keeps per variable stands on the variable's device
 * and is named after it ("dense/kernel/Momentum"). The model gets new variables, so ask dtg_model_init afterwards. A run of `train`
 * computes all gradients from the values before the step. With clip_norm a norm that is not finite turns the variables to NaN, as in
 * TensorFlow, rather than to go unnoticed. Errors: INVALID_ARGUMENT (a number out of range or that would do nothing, a learning rate that
 * is no floating-point scalar, a loss of many numbers or that depends on no variable), FAILED_PRECONDITION (no trainable variable),
 * UNIMPLEMENTED (an op without gradient). Since 0.1. Semantics: tf.compat.v1.train.Optimizer.minimize, which takes the sum of a loss of
 * many numbers. */
DTG_ERR dtg_nn_minimize(dtg_model *model, dtg_value loss, const dtg_optimizer *optimizer, dtg_training *out) DTG_NOEXCEPT;

/* The second half of it, for gradients of one's own (dtg_graph_add_gradients, then whatever one likes): handles[i] is the handle
 * of a variable of the model, gradients[i] its gradient, dense or rows (all zero: left out), of the variable's type. Nothing is
 * clipped, so limits for that are refused, and nothing is looked at: gradients that are no numbers make weights that are none, also where
 * `unchecked_loss` is 0 (CheckNumerics before, where that may be). `out` receives the target that makes one step: all updates, then
 * global_step + 1. Errors: INVALID_ARGUMENT (a handle that is no variable of the model, or a variable twice, a limit, no gradient at all).
 * Since 0.1. Semantics: tf.compat.v1.train.Optimizer.apply_gradients. */
DTG_ERR dtg_nn_apply_gradients(dtg_model *model, const dtg_optimizer *optimizer, const dtg_value *handles, const dtg_gradient *gradients,
                               size_t num_gradients, dtg_value *out) DTG_NOEXCEPT;

/* ---- schedules ---- */

/* How a learning rate follows the count of steps, n (from 0). Formulas and names are those of tf.keras.optimizers.schedules. */
typedef int32_t dtg_schedule_kind;
enum {
  DTG_SCHEDULE_EXPONENTIAL_DECAY = 0,  /* rate * decay_rate^(n / steps); with staircase the exponent is rounded down */
  DTG_SCHEDULE_INVERSE_TIME_DECAY = 1, /* rate / (1 + decay_rate * n / steps); with staircase n / steps is rounded down */
  DTG_SCHEDULE_POLYNOMIAL_DECAY = 2,   /* (rate - end_rate) * (1 - n / steps)^power + end_rate, for n up to steps; with cycle `steps` is
                                          multiplied by what it takes to reach n */
  DTG_SCHEDULE_PIECEWISE_CONSTANT = 3, /* values[i] while n <= boundaries[i], the last value after the last boundary */
  DTG_SCHEDULE_COSINE_DECAY = 4,       /* rate * ((1 - alpha) * (1 + cos(pi * n / steps)) / 2 + alpha), for n up to steps. With warm-up from
                                          rate to warmup_target in a line over warmup_steps, and then that from warmup_target */
  DTG_SCHEDULE_COSINE_DECAY_RESTARTS = 5 /* the same without warm-up, again and again: each period is t_mul times as long as the one before,
                                            and begins at m_mul times its rate */
};

/* A schedule and its numbers, float32 in the graph. Read during the call only. */
typedef struct dtg_schedule {
  size_t struct_size;
  dtg_schedule_kind kind;
  int32_t staircase;
  int32_t cycle;
  int32_t warms_up; /* of DTG_SCHEDULE_COSINE_DECAY: warmup_target counts. 0: Keras' warmup_target=None, no warm-up */
  double rate;      /* at first; Keras' initial_learning_rate */
  double steps;     /* above 0; Keras' decay_steps, first_decay_steps. Without the warm-up */
  double decay_rate;
  double end_rate; /* Keras' end_learning_rate, whose default there is 0.0001 */
  double power;    /* 0: 1 */
  double alpha;    /* share of the rate that remains */
  double warmup_target;
  double warmup_steps;       /* 0 or more */
  double t_mul;              /* 1 or more; 0: 2 */
  double m_mul;              /* 0: 1 */
  const int64_t *boundaries; /* rising */
  const double *values;      /* num_boundaries + 1 of them */
  size_t num_boundaries;
} dtg_schedule;
/* clang-format off */
#define DTG_SCHEDULE_INIT {sizeof(dtg_schedule), 0, 0, 0, 0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, NULL, NULL, 0}
/* clang-format on */

/* Adds the nodes of such a rate. `step` is an integer scalar, such as the `read` of dtg_model_global_step; `out` is a float32 scalar for
 * dtg_optimizer.learning_rate. The model gets no variables. Errors: INVALID_ARGUMENT (a number out of range, boundaries that do not
 * rise). Since 0.1. Semantics: tf.keras.optimizers.schedules. */
DTG_ERR dtg_nn_schedule(dtg_model *model, dtg_value step, const dtg_schedule *schedule, dtg_value *out) DTG_NOEXCEPT;

/* A learning rate that falls by `factor` every `every` steps: rate * factor^(step / every), the exponent rounded down with a non-zero
 * `staircase`. `step` is an int64 scalar, such as the `read` of dtg_model_global_step; `every` and `factor` are positive. `out` is a
 * float32 scalar for dtg_optimizer.learning_rate. Since 0.1. Semantics: tf.keras.optimizers.schedules.ExponentialDecay. */
DTG_ERR dtg_nn_exponential_decay(dtg_model *model, dtg_value step, double rate, double every, double factor, int32_t staircase,
                                 dtg_value *out) DTG_NOEXCEPT;

/* From 0 up to `rate` over the first `warmup` steps, then down to rate * floor along half a cosine until step `steps`,
 * then constant. (Keras' own warm-up is in dtg_nn_schedule: there `steps` does not count it.) `floor` is a share of the rate, 0 to end at
 * nothing; `steps` counts the warm-up too and must be more than it. `step` and `out` as in dtg_nn_exponential_decay. Since 0.1. Semantics:
 * tf.keras.optimizers.schedules.CosineDecay. */
DTG_ERR dtg_nn_cosine_decay(dtg_model *model, dtg_value step, double rate, double steps, double floor, double warmup,
                            dtg_value *out) DTG_NOEXCEPT;

DTG_END_DECLS

#endif /* DTG_OPTIMIZERS_H */
