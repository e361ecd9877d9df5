/* dtg/layers.h: the layers beyond those of dtg/nn.h: normalizations, recurrent layers, attention, categories, the other
 * convolutions, and what makes images smaller to a point or larger.
 *
 * What stands at the head of the layers in dtg/nn.h holds here: names and scopes, devices, shapes that are open until a run, weights that
 * several calls share by `weights_of`, errors, and that one thread at a time uses a model. Structs are all zero but for their size, and
 * every 0 means the default that stands beside the field. Formulas, defaults and the names of variables are those of tf.keras.
 *
 *   dtg_recurrent lstm = DTG_RECURRENT_INIT;                              sentences of different lengths, both ways
 *   dtg_recurrent_result read = DTG_RECURRENT_RESULT_INIT;
 *   lstm.units = 64; lstm.direction = DTG_BOTH; lstm.lengths = lengths;
 *   dtg_nn_recurrent(model, words, &lstm, &read);                         read.outputs is [batch, steps, 128]
 *   dtg_attention look = DTG_ATTENTION_INIT;
 *   look.heads = 4; look.key_width = 16; look.lengths = lengths;
 *   dtg_nn_attention(model, read.outputs, read.outputs, &look, &x);
 *   dtg_nn_layer_norm(model, x, NULL, &x);
 *
 * All of them add nodes and compute nothing, as dtg/nn.h says; gradients go through all of them, and all run on any device, alone and on a
 * cluster. Errors of all functions: INVALID_ARGUMENT (a closed handle, a value of another graph, a shape, a type or a number that does not
 * fit, with what was expected), NOT_FOUND (no layer is called as `weights_of` says), FAILED_PRECONDITION (a tower that is built otherwise
 * than the first one), RESOURCE_EXHAUSTED; others stand with the function. What fails leaves the model without new variables.
 *
 * `name` and `weights_of` of every struct: the scope of the layer, where a second layer of one name gets a number; and the full name of a
 * layer made before, scopes included, whose variables are used instead of new ones. NULL: none. */
#ifndef DTG_LAYERS_H
#define DTG_LAYERS_H

#include <dtg/nn.h>

DTG_BEGIN_DECLS

/* ---- normalization ---- */

/* Batch normalization: activations of each channel with a mean near 0 and a deviation near 1, whatever the weights before do, which lets
 * deep networks of convolutions learn fast. Where batches are small, group normalization is steadier. Variables over the channels: "gamma"
 * (first ones), "beta" (zeros), and "moving_mean" (zeros) and "moving_variance" (ones), which are not trained. Of a 16-bit input they are
 * float32. */
typedef struct dtg_batch_norm {
  size_t struct_size;
  const char *name; /* NULL: "batch_normalization" */
  size_t name_len;
  double momentum;    /* share of the moving statistics that a step leaves; 0: 0.99 */
  double epsilon;     /* 0: 0.001 */
  int32_t no_center;  /* not 0: without beta */
  int32_t no_scale;   /* not 0: without gamma */
  dtg_value training; /* a bool scalar, such as a placeholder; {0}: always true */
  const char *weights_of;
  size_t weights_of_len;
} dtg_batch_norm;
/* clang-format off */
#define DTG_BATCH_NORM_INIT {sizeof(dtg_batch_norm), NULL, DTG_STRLEN, 0.0, 0.0, 0, 0, {0}, NULL, DTG_STRLEN}
/* clang-format on */

/* gamma * (x - mean) / sqrt(variance + epsilon) + beta for each channel of x[batch, ..., channels], rank 2 to 8: while `training`, with
 * mean and variance of the batch over all dimensions but the last; otherwise with the moving ones. Each step of dtg_nn_minimize and its kin
 * moves those by 1 - momentum of the way to the batch's, whatever the optimizer, clipping and norms aside; with several workers or towers,
 * to the mean of theirs. A step that is run with `training` false leaves them as they are. `layer` may be NULL. Since 0.1. Semantics:
 * tf.keras.layers.BatchNormalization (variance of the batch, not of the sample), per replica where there are several. */
DTG_ERR dtg_nn_batch_norm(dtg_model *model, dtg_value x, const dtg_batch_norm *layer, dtg_value *out) DTG_NOEXCEPT;

/* What normalizes each example by itself, in training as in serving, with nothing that follows the batches. Variables: "gamma" and "beta"
 * over the channels; of RMS normalization "scale" alone. */
typedef struct dtg_norm {
  size_t struct_size;
  const char *name; /* NULL: "layer_normalization", "rms_normalization", "group_normalization" */
  size_t name_len;
  double epsilon;    /* 0: 0.001; RMS 0.000001 */
  int64_t groups;    /* of group normalization; 0: 32 */
  int32_t no_center; /* not 0: without beta */
  int32_t no_scale;  /* not 0: without gamma, or scale */
  const char *weights_of;
  size_t weights_of_len;
} dtg_norm;
/* clang-format off */
#define DTG_NORM_INIT {sizeof(dtg_norm), NULL, DTG_STRLEN, 0.0, 0, 0, 0, NULL, DTG_STRLEN}
/* clang-format on */

/* gamma * (x - mean) / sqrt(variance + epsilon) + beta, with mean and variance of each vector along the last dimension of x, rank 1 to 8.
 * `layer` may be NULL. Since 0.1. Semantics: tf.keras.layers.LayerNormalization. */
DTG_ERR dtg_nn_layer_norm(dtg_model *model, dtg_value x, const dtg_norm *layer, dtg_value *out) DTG_NOEXCEPT;

/* scale * x / sqrt(mean of x^2 + epsilon), likewise. `layer` may be NULL. Since 0.1. Semantics: tf.keras.layers.RMSNormalization. */
DTG_ERR dtg_nn_rms_norm(dtg_model *model, dtg_value x, const dtg_norm *layer, dtg_value *out) DTG_NOEXCEPT;

/* As layer normalization, with mean and variance of each example and each of `groups` equal groups of channels of x[batch, ..., channels],
 * rank 2 to 8; as many groups as channels is instance normalization. `layer` may be NULL. Errors: INVALID_ARGUMENT also where the channels
 * cannot be cut so. Since 0.1. Semantics: tf.keras.layers.GroupNormalization. */
DTG_ERR dtg_nn_group_norm(dtg_model *model, dtg_value x, const dtg_norm *layer, dtg_value *out) DTG_NOEXCEPT;

/* ---- recurrent layers ---- */

/* What a step makes of x, which is x kernel + bias cut into gates, and of the state h (of an LSTM also c); s is the sigmoid, * is by
 * element, and what is named U belongs to recurrent_kernel.
 *   LSTM    i = s(xi + h Ui)   f = s(xf + h Uf)   g = tanh(xg + h Ug)   o = s(xo + h Uo)    c' = f * c + i * g    h' = o * tanh(c')
 *   GRU     z = s(xz + h Uz)   r = s(xr + h Ur)   n = tanh(xn + r * (h Un + second bias))   h' = z * h + (1 - z) * n
 *   SIMPLE  h' = tanh(x + h U) */
typedef int32_t dtg_recurrent_kind;
enum {
  DTG_LSTM = 0, /* f32 and f16 */
  DTG_GRU = 1,  /* reset_after of Keras, its default */
  DTG_SIMPLE_RNN = 2
};

/* Which way over the steps. Outputs stand in the order of the input in each case, so that layers of several directions fit together; Keras
 * leaves those of a layer that goes backward in the order of its work. */
typedef int32_t dtg_direction;
enum {
  DTG_FORWARD = 0,
  DTG_BACKWARD = 1, /* from the last step to the first */
  DTG_BOTH = 2      /* one layer each way, with weights of its own, under the scopes "forward" and "backward"; outputs side by side */
};

/* A recurrent layer. To stack layers, give the outputs of one to the next; to go on where a sequence was cut, give the last states of one
 * run as the first ones of the next; an encoder gives them to a decoder. Variables: "kernel" [in, gates * units], first value Glorot
 * uniform; "recurrent_kernel" [units, gates * units], orthogonal; "bias" [gates * units], of a GRU [2, gates * units], zeros; under
 * "forward" and "backward" with DTG_BOTH. The gates are those of Keras in its order: LSTM input, forget, candidate, output; GRU update,
 * reset, candidate. */
typedef struct dtg_recurrent {
  size_t struct_size;
  const char *name; /* NULL: "lstm", "gru", "simple_rnn"; "bidirectional" */
  size_t name_len;
  dtg_recurrent_kind kind;
  dtg_direction direction;
  int64_t units; /* at least 1 */
  int32_t no_bias;
  int32_t no_forget_bias; /* 0: the bias of an LSTM's forget gate begins at 1 */
  dtg_initializer kernel;
  dtg_initializer recurrent;
  dtg_initializer bias;
  dtg_value lengths; /* int32 or int64 [batch]: steps of each example that count, 0 to all; {0}: all. More is an error of the run */
  dtg_value hidden;  /* first state [batch, units]; {0}: zeros. Not with DTG_BOTH */
  dtg_value cell;    /* of an LSTM, likewise */
  const char *weights_of;
  size_t weights_of_len;
} dtg_recurrent;
/* clang-format off */
#define DTG_RECURRENT_INIT                                                                                                                 \
  {sizeof(dtg_recurrent), NULL, DTG_STRLEN, DTG_LSTM, DTG_FORWARD, 0, 0, 0, DTG_INITIALIZER_INIT, DTG_INITIALIZER_INIT,                    \
   DTG_INITIALIZER_INIT, {0}, {0}, {0}, NULL, DTG_STRLEN}
/* clang-format on */

/* What a recurrent layer gives, written by the library. With DTG_BOTH every last dimension is 2 * units, forward first. */
typedef struct dtg_recurrent_result {
  size_t struct_size;
  dtg_value outputs; /* [batch, steps, units], in the order of the input. Beyond an example's length: with DTG_FORWARD its last output, with
                        DTG_BACKWARD and DTG_BOTH zeros, in both halves */
  dtg_value hidden;  /* [batch, units], after each example's last step (backward: its first) */
  dtg_value cell;    /* of an LSTM, likewise; {0} of others */
} dtg_recurrent_result;
/* clang-format off */
#define DTG_RECURRENT_RESULT_INIT {sizeof(dtg_recurrent_result), {0}, {0}, {0}}
/* clang-format on */

/* Runs over the steps of x[batch, steps, in]. An LSTM is one node; the others are a loop, whose products with x are made before it for all
 * steps at once. Steps beyond an example's length cost time and change nothing: neither states nor gradients of what counts. A run with a
 * length below 0 or beyond the steps fails with INVALID_ARGUMENT. Since 0.1. Semantics: tf.keras.layers.LSTM, GRU, SimpleRNN and
 * Bidirectional, with a mask that ends where it began. */
DTG_ERR dtg_nn_recurrent(dtg_model *model, dtg_value x, const dtg_recurrent *layer, dtg_recurrent_result *out) DTG_NOEXCEPT;

/* ---- attention ---- */

/* Attention with several heads: each place of the query takes the values of those keys that suit it. With query and value the same it is
 * self-attention, with the outputs of an encoder as the value cross-attention, and with `causal` that of a decoder. Variables:
 * "query/kernel" and "key/kernel" [in, heads, key_width], "value/kernel" [in, heads, value_width], "attention_output/kernel" [heads,
 * value_width, output_width], and a "bias" beside each. */
typedef struct dtg_attention {
  size_t struct_size;
  const char *name; /* NULL: "multi_head_attention" */
  size_t name_len;
  int64_t heads;        /* at least 1 */
  int64_t key_width;    /* of each head, at least 1 */
  int64_t value_width;  /* of each head; 0: like the key */
  int64_t output_width; /* 0: that of the query */
  int32_t no_bias;
  int32_t causal;    /* not 0: place i of the query sees keys 0 to i only */
  dtg_value key;     /* [batch, keys, in]; {0}: the value */
  dtg_value mask;    /* bool [batch, queries, keys], or dimensions of 1 for what is the same for all: what may be seen; {0}: all */
  dtg_value lengths; /* int32 or int64 [batch]: how many keys of each example count, 0 to all; {0}: all. More is an error of the run */
  dtg_initializer kernel;
  dtg_initializer bias;
  const char *weights_of;
  size_t weights_of_len;
} dtg_attention;
/* clang-format off */
#define DTG_ATTENTION_INIT                                                                                                                \
  {sizeof(dtg_attention), NULL, DTG_STRLEN, 0, 0, 0, 0, 0, 0, {0}, {0}, {0}, DTG_INITIALIZER_INIT, DTG_INITIALIZER_INIT, NULL, DTG_STRLEN}
/* clang-format on */

/* For each head softmax(q k' / sqrt(key_width)) v with projections q of query[batch, queries, in], k of the key and v of
 * value[batch, keys, in'], the heads side by side projected to out[batch, queries, output_width]. What the mask, the lengths or `causal`
 * hide has no weight; a place that sees no key at all takes the mean of all values. Query, key and value are of one floating-point type;
 * self-attention gives the same value for all. Since 0.1. Semantics: tf.keras.layers.MultiHeadAttention. */
DTG_ERR dtg_nn_attention(dtg_model *model, dtg_value query, dtg_value value, const dtg_attention *layer, dtg_value *out) DTG_NOEXCEPT;

/* What decoding keeps, so that each new place of a sequence costs one place of work: the keys and values of the places before, as
 * [batch, longest, heads, width], and how many of them are there. All are values of the graph, made by dtg_nn_attention_cache: fetch them
 * and feed placeholders of their shapes with them in the next run, or carry them from round to round of a loop (dtg_model_inside;
 * capi/examples/models/decode.c searches so).
 *
 *   look.weights_of = "multi_head_attention"; look.weights_of_len = DTG_STRLEN;   the layer that was trained
 *   dtg_nn_attention_cache(model, prompt, &look, 64, &cache);                     keys and values of what is there, room for 64 places
 *   fetch cache.keys, cache.values and cache.position, once
 *   cache.keys = k; cache.values = v; cache.position = p;                         placeholders, fed with what the last run fetched
 *   dtg_nn_attention_step(model, letter, &look, &cache, &y);                      of one place; cache has what the next run is fed
 *
 * A cache has its whole size from the beginning: batch * longest * heads * (key_width + value_width) numbers. What lies behind `position`
 * is zeros, and no query sees it. An empty cache of one's own, for a batch that is open, has a shape that is computed (Fill of Concat of
 * Shape): Reshape it to [-1, longest, heads, width], so that the graph sees what is not open. */
typedef struct dtg_attention_cache {
  size_t struct_size;
  dtg_value keys;     /* [batch, longest, heads, key_width] */
  dtg_value values;   /* [batch, longest, heads, value_width] */
  dtg_value position; /* int32 scalar: places that are there; {0}: all are, and none is added (those of an encoder) */
} dtg_attention_cache;
/* clang-format off */
#define DTG_ATTENTION_CACHE_INIT {sizeof(dtg_attention_cache), {0}, {0}, {0}}
/* clang-format on */

/* The cache of the places of value[batch, places, in], with room for `longest` in all: the beginning of what is decoded. With a `longest`
 * of 0 it has those places and takes no more: the outputs of an encoder, for cross-attention. `layer` as in dtg_nn_attention, most often
 * with the `weights_of` of the layer that was trained; its heads, widths and weights count. Since 0.1. Semantics: keras_hub's
 * CachedMultiHeadAttention. */
DTG_ERR dtg_nn_attention_cache(dtg_model *model, dtg_value value, const dtg_attention *layer, int64_t longest,
                               dtg_attention_cache *out) DTG_NOEXCEPT;

/* What dtg_nn_attention gives for the next places, query[batch, places, in], which may be one: with their keys and values written into the
 * cache behind those that are there, and each seeing all up to its own, as with `causal`. `cache` is read, and written with what it is
 * afterwards. Without a position the query looks at all of it. `layer` as before; its mask [batch, places, longest] and lengths hold too. A
 * run in which the places do not fit is an error of the run. Errors: INVALID_ARGUMENT also for a cache of other heads. Since 0.1. */
DTG_ERR dtg_nn_attention_step(dtg_model *model, dtg_value query, const dtg_attention *layer, dtg_attention_cache *cache,
                              dtg_value *out) DTG_NOEXCEPT;

/* ---- places and bags ---- */

/* How the places of a sequence are told. */
typedef int32_t dtg_position_kind;
enum {
  DTG_POSITION_SINE = 0,   /* no variables: sin and cos by turns of place / wavelength^(2 (i / 2) / width), for column i */
  DTG_POSITION_LEARNED = 1 /* "embeddings" [longest, width] */
};

/* Attention does not know in which order places stand; this tells it. Sines reach any number of places and have nothing to learn; rows that
 * are learned suit sequences of a length that is known, and take longest * width numbers. In decoding step by step `start` is the position
 * of the cache, so that each place gets the vector that it had in training. */
typedef struct dtg_position {
  size_t struct_size;
  const char *name; /* of a learned one; NULL: "position_embedding" */
  size_t name_len;
  dtg_position_kind kind;
  int32_t reserved;  /* 0 */
  double wavelength; /* of a sine, the longest; 0: 10000 */
  int64_t longest;   /* of a learned one: places that it has rows for, at least 1 */
  dtg_value start;   /* int32 or int64 scalar: the place of the first step, in decoding; {0}: 0 */
  dtg_initializer table;
  const char *weights_of;
  size_t weights_of_len;
} dtg_position;
/* clang-format off */
#define DTG_POSITION_INIT {sizeof(dtg_position), NULL, DTG_STRLEN, DTG_POSITION_SINE, 0, 0.0, 0, {0}, DTG_INITIALIZER_INIT, NULL, DTG_STRLEN}
/* clang-format on */

/* x[batch, steps, width], floating-point, plus the vector of each step's place. `layer` may be NULL. A step beyond the rows of a learned
 * one is INVALID_ARGUMENT, of the run where the steps are open. Since 0.1. Semantics: keras_hub's SinePositionEncoding and
 * PositionEmbedding (first values Glorot uniform), added to x. */
DTG_ERR dtg_nn_position_embedding(dtg_model *model, dtg_value x, const dtg_position *layer, dtg_value *out) DTG_NOEXCEPT;

/* What one row is made of the rows of a bag, w being their weights. */
typedef int32_t dtg_combiner;
enum {
  DTG_COMBINE_MEAN = 0, /* sum(w row) / sum(w) */
  DTG_COMBINE_SUM = 1,  /* sum(w row) */
  DTG_COMBINE_SQRTN = 2 /* sum(w row) / sqrt(sum(w^2)) */
};

/* Bags of words, of products, of whatever has a number: what recommenders and classifiers of short texts begin with. Their order does not
 * count, and their number may be another for each example. Variable: "embeddings", float32 of [rows, width]. */
typedef struct dtg_embedding_bag {
  size_t struct_size;
  const char *name; /* NULL: "embedding_bag" */
  size_t name_len;
  int64_t rows;
  int64_t width;
  dtg_combiner combiner;
  int32_t reserved;      /* 0 */
  dtg_value lengths;     /* int32 or int64 [batch]: how many ids of each bag count, 0 to all; {0}: all. More is an error of the run */
  dtg_value weights;     /* float32 [batch, places]; {0}: 1 each */
  dtg_initializer table; /* default: uniform in [-0.05, 0.05) */
  const char *weights_of;
  size_t weights_of_len;
} dtg_embedding_bag;
/* clang-format off */
#define DTG_EMBEDDING_BAG_INIT                                                                                                      \
  {sizeof(dtg_embedding_bag), NULL, DTG_STRLEN, 0, 0, DTG_COMBINE_MEAN, 0, {0}, {0}, DTG_INITIALIZER_INIT, NULL, DTG_STRLEN}
/* clang-format on */

/* One row [batch, width] per bag of ids[batch, places], int32 or int64: the rows that its ids name, combined. Beyond a bag's length nothing
 * is looked up, and no row gets a gradient; an empty bag gives zeros, and one whose weights add up to 0 is not divided. Ids as in
 * dtg_nn_embedding. Since 0.1. Semantics: tf.nn.safe_embedding_lookup_sparse; a bag per row where that has sparse ids. */
DTG_ERR dtg_nn_embedding_bag(dtg_model *model, dtg_value ids, const dtg_embedding_bag *layer, dtg_value *out) DTG_NOEXCEPT;

/* ---- categories ---- */

/* How the numbers of categories come out. In rows there is a place for each category, `depth` in all. */
typedef int32_t dtg_output_mode;
enum {
  DTG_OUTPUT_INT = 0,       /* int64, shaped like x: what an embedding looks up */
  DTG_OUTPUT_ONE_HOT = 1,   /* float32 [..., depth]: 1 at the number's place; of an x whose last dimension is 1, in place of that */
  DTG_OUTPUT_MULTI_HOT = 2, /* float32 [depth] of x[places], [batch, depth] of x[batch, places]: 1 for each number that is there */
  DTG_OUTPUT_COUNT = 3      /* likewise, how often it is there */
};

/* Categories without a vocabulary: each text or integer gets a bin by its hash, always the same one, here and in TensorFlow. Several may
 * share a bin; with some times as many bins as categories few do. */
typedef struct dtg_hashing {
  size_t struct_size;
  const char *name; /* NULL: "hashing" */
  size_t name_len;
  int64_t num_bins;             /* at least 1 */
  const dtg_tensor *mask_value; /* a scalar, string or (of integers) int64: it has bin 0, and no other value has; NULL: none. Of 1 bin it
                                   does not count */
  int32_t salted;               /* not 0: hashed under `salt`, so that who does not know it cannot aim at a bin */
  dtg_output_mode output_mode;
  uint64_t salt[2]; /* one number of Keras is twice the same here */
} dtg_hashing;
/* clang-format off */
#define DTG_HASHING_INIT {sizeof(dtg_hashing), NULL, DTG_STRLEN, 0, NULL, 0, DTG_OUTPUT_INT, {0, 0}}
/* clang-format on */

/* The bin in [0, num_bins) of each element of x, of any shape: strings, or integers up to int64, which are hashed as their decimal text.
 * FarmHash, or with a salt SipHash. No variables, no gradient. Errors: INVALID_ARGUMENT also for a mask of another type than x. Since 0.1.
 * Semantics: tf.keras.layers.Hashing; rows are float32. */
DTG_ERR dtg_nn_hashing(dtg_model *model, dtg_value x, const dtg_hashing *layer, dtg_value *out) DTG_NOEXCEPT;

/* Categories with a vocabulary: texts or integers become numbers, for an embedding, or as rows for a dense layer; inverted, numbers become
 * texts or integers again, such as the class that was predicted. Numbers are given out in this order: 0 to the mask token, where there is
 * one and output_mode is DTG_OUTPUT_INT; then num_oov_indices to what is not in the vocabulary ("out of vocabulary"), such as a category
 * that training did not know; then one to each token in its order. So an embedding needs (mask_token ? 1 : 0) + num_oov_indices + tokens
 * rows. What is masked has no place in the other output modes, so its rows are zeros.
 *
 *   const char *const cities[] = {"Berlin", "Lyon", "Porto"};  const int64_t three[] = {3};
 *   dtg_lookup lookup = DTG_LOOKUP_INIT;
 *   dtg_tensor_create_strings(three, 1, cities, NULL, &vocabulary);
 *   lookup.vocabulary = vocabulary;
 *   dtg_nn_lookup(model, city, &lookup, &number);                    "Porto" is 3, "Oslo" 0
 *   embedding.rows = 4; embedding.width = 8;
 *   dtg_nn_embedding(model, number, &embedding, &x);
 *
 * The vocabulary becomes part of the graph: it is exported, loaded, imported and sent to a cluster with it, and nothing has to be
 * initialized before a run. It has no variables. A lookup takes a time that grows with the logarithm of the tokens: half a
 * microsecond among a million. */
typedef struct dtg_lookup {
  size_t struct_size;
  const char *name; /* NULL: "string_lookup" or "integer_lookup", after the vocabulary */
  size_t name_len;
  const dtg_tensor *vocabulary; /* string or int64 [tokens], at least 1, each once. Copied. As in Keras it may begin with the mask token and
                                   num_oov_indices times the oov_token, which are left out then */
  const dtg_tensor *mask_token; /* a scalar of the same type, which is not in the vocabulary, such as what fills up sentences; NULL: none */
  const dtg_tensor *oov_token;  /* likewise: what numbers become that no token has, where the layer is inverted; NULL: "[UNK]" or -1 */
  int64_t num_oov_indices;      /* 0: 1. More: texts are spread over them by FarmHash, integers by their remainder */
  int32_t no_oov;               /* not 0: num_oov_indices of 0; a run with what is not in the vocabulary is INVALID_ARGUMENT and names it */
  int32_t invert;               /* not 0: from numbers to tokens */
  dtg_output_mode output_mode;  /* of an inverted one DTG_OUTPUT_INT */
  int32_t reserved;             /* 0 */
} dtg_lookup;
/* clang-format off */
#define DTG_LOOKUP_INIT {sizeof(dtg_lookup), NULL, DTG_STRLEN, NULL, NULL, NULL, 0, 0, 0, DTG_OUTPUT_INT, 0}
/* clang-format on */

/* The number of each element of x, strings or integers up to int64 as the vocabulary is, of any shape; inverted, the token of each number,
 * which is the mask token for 0 where there is one, and the oov_token for every number that no token has. No gradient. Errors:
 * INVALID_ARGUMENT also for a vocabulary that is empty, no vector, of other types or has a token twice (which is named), for special tokens
 * of another type or in the vocabulary, and for num_oov_indices together with no_oov. Since 0.1. Semantics: tf.keras.layers.StringLookup
 * and IntegerLookup; rows are float32. */
DTG_ERR dtg_nn_lookup(dtg_model *model, dtg_value x, const dtg_lookup *layer, dtg_value *out) DTG_NOEXCEPT;

/* ---- chance ---- */

/* What is drawn in training. */
typedef int32_t dtg_noise_kind;
enum {
  DTG_SPATIAL_DROPOUT = 0,  /* whole channels of x[batch, ..., channels], rank 3 to 5, become 0; the rest is divided by 1 - amount */
  DTG_GAUSSIAN_NOISE = 1,   /* x + amount * n, n normal */
  DTG_GAUSSIAN_DROPOUT = 2, /* x * (1 + sqrt(amount / (1 - amount)) * n) */
  DTG_ALPHA_DROPOUT = 3     /* for networks of SELU, whose mean and variance it keeps: a share becomes SELU's limit */
};

/* x with that noise, the share or deviation being `amount`: in [0, 1), of DTG_GAUSSIAN_NOISE from 0. `step` and `training` as in
 * dtg_nn_dropout: the same step draws the same numbers, and without training x goes through. No variables. Since 0.1. Semantics:
 * tf.keras.layers.SpatialDropout1D, 2D, 3D, GaussianNoise, GaussianDropout and AlphaDropout, but for the source of randomness. */
DTG_ERR dtg_nn_noise(dtg_model *model, dtg_value x, dtg_noise_kind kind, double amount, dtg_value step, dtg_value training,
                     dtg_value *out) DTG_NOEXCEPT;

/* ---- more convolutions ---- */

/* A layer of filters, of all functions below. Which fields count stands with them. Kernels slide along one, two or three dimensions, which
 * is how many entries of `kernel`, `stride` and `dilation` count. First values as in dtg_conv2d.
 *
 * Along each dimension of a convolution the output has ceil((size - dilation * (kernel - 1)) / stride) entries with DTG_PADDING_VALID,
 * where no window leaves the input, and ceil(size / stride) with DTG_PADDING_SAME, where zeros surround it; a causal one has the latter
 * count too. Where the size is open when the layer is made, a run whose input is smaller than a window is an error of that run. The result
 * of the filters gets "bias" of [filters] (depthwise: [in * multiplier]), then the activation. */
typedef struct dtg_conv {
  size_t struct_size;
  const char *name; /* NULL: after the function, such as "conv1d" */
  size_t name_len;
  int64_t filters;     /* at least 1; depthwise: not looked at */
  int64_t multiplier;  /* depthwise and separable: outputs of each channel; 0: 1 */
  int64_t kernel[3];   /* 0: the first 3, the others like the one before */
  int64_t stride[3];   /* 0: the first 1, the others like the one before */
  int64_t dilation[3]; /* likewise */
  dtg_padding padding;
  int32_t causal; /* conv1d: not 0: zeros before the first step only, so that no output sees a later input; `padding` does not count */
  dtg_activation activation;
  int32_t no_bias;
  dtg_initializer kernel_init;
  dtg_initializer bias_init;
  const char *weights_of;
  size_t weights_of_len;
} dtg_conv;
/* clang-format off */
#define DTG_CONV_INIT                                                                                                                     \
  {sizeof(dtg_conv), NULL, DTG_STRLEN, 0, 0, {0, 0, 0}, {0, 0, 0}, {0, 0, 0}, DTG_PADDING_VALID, 0, DTG_ACT_NONE, 0, DTG_INITIALIZER_INIT, \
   DTG_INITIALIZER_INIT, NULL, DTG_STRLEN}
/* clang-format on */

/* Filters over time or over the letters of a text: each output sees `kernel` steps of x[batch, steps, in], `dilation` apart: kernel[width,
 * in, filters], out[batch, steps', filters]. Since 0.1. Semantics: tf.keras.layers.Conv1D, channels last. */
DTG_ERR dtg_nn_conv1d(dtg_model *model, dtg_value x, const dtg_conv *layer, dtg_value *out) DTG_NOEXCEPT;

/* Filters over volumes and films, x[batch, depth, height, width, in]: kernel[., ., ., in, filters]. Since 0.1. Semantics:
 * tf.keras.layers.Conv3D, channels last. */
DTG_ERR dtg_nn_conv3d(dtg_model *model, dtg_value x, const dtg_conv *layer, dtg_value *out) DTG_NOEXCEPT;

/* What the gradient of a convolution does, as a layer: x[batch, height, width, in] becomes size * stride pixels high and wide, with
 * DTG_PADDING_VALID kernel - stride more where that is positive; kernel[., ., filters, in]. Errors: UNIMPLEMENTED for dilations other than
 * 1. Since 0.1. Semantics: tf.keras.layers.Conv2DTranspose, channels last. */
DTG_ERR dtg_nn_conv2d_transpose(dtg_model *model, dtg_value x, const dtg_conv *layer, dtg_value *out) DTG_NOEXCEPT;

/* Each channel of x[batch, height, width, in] by itself: kernel[., ., in, multiplier], out[..., in * multiplier]. Both strides are equal.
 * Since 0.1. Semantics: tf.keras.layers.DepthwiseConv2D, channels last. */
DTG_ERR dtg_nn_depthwise_conv2d(dtg_model *model, dtg_value x, const dtg_conv *layer, dtg_value *out) DTG_NOEXCEPT;

/* The same, then a product over the channels, which together cost far less than a full convolution and do much the same:
 * "depthwise_kernel"[., ., in, multiplier], "pointwise_kernel"[1, 1, in * multiplier, filters]. Since 0.1. Semantics:
 * tf.keras.layers.SeparableConv2D, channels last. */
DTG_ERR dtg_nn_separable_conv2d(dtg_model *model, dtg_value x, const dtg_conv *layer, dtg_value *out) DTG_NOEXCEPT;

/* ---- smaller and larger: no variables ---- */

/* x[batch, ..., channels], floating-point, of rank 3 to 5: the mean of each channel over all that lies between, [batch, channels];
 * `keep_dims` not 0: with dimensions of 1 in its place. Since 0.1. Semantics: tf.keras.layers.GlobalAveragePooling1D, 2D, 3D. */
DTG_ERR dtg_nn_global_avg_pool(dtg_model *model, dtg_value x, int32_t keep_dims, dtg_value *out) DTG_NOEXCEPT;

/* The greatest, likewise; equally great ones share the gradient. Since 0.1. Semantics: tf.keras.layers.GlobalMaxPooling1D, 2D, 3D. */
DTG_ERR dtg_nn_global_max_pool(dtg_model *model, dtg_value x, int32_t keep_dims, dtg_value *out) DTG_NOEXCEPT;

/* x[batch, ..., channels], floating-point, of rank 3 to 5, with `sizes` entries along the dimensions between, whatever it had: entry i is
 * the mean of those from floor(i in / out) to ceil((i + 1) in / out), or with `max` not 0 the greatest, where equally great ones share the
 * gradient. So images of several sizes come to one dense layer, each in a graph of its own: the dimensions of x must be known.
 * `num_sizes` is rank - 2. Since 0.1. Semantics: tf.keras.layers.AdaptiveAveragePooling1D, 2D, 3D and AdaptiveMaxPooling. */
DTG_ERR dtg_nn_adaptive_pool(dtg_model *model, dtg_value x, const int64_t *sizes, size_t num_sizes, int32_t max,
                             dtg_value *out) DTG_NOEXCEPT;

/* Makes images larger without weights, as the way back up of an autoencoder or a U-Net; dtg_nn_conv2d_transpose learns how to.
 * x[batch, height, width, channels], `high` times as high and `wide` times as wide, both at least 1: each pixel repeated, or with
 * `bilinear` not 0 mixed from its neighbours by distance of their centres. Since 0.1. Semantics: tf.keras.layers.UpSampling2D. */
DTG_ERR dtg_nn_up_sampling2d(dtg_model *model, dtg_value x, int64_t high, int64_t wide, int32_t bilinear, dtg_value *out) DTG_NOEXCEPT;

DTG_END_DECLS

#endif /* DTG_LAYERS_H */
