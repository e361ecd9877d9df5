/* decode.c: the transformer writes. A loop of the graph, whose body is made of the layers that were trained (`weights_of`), takes all beams of
 * all rows one place further in each round; what attention has seen so far goes along in a cache, so that a place costs one place of work.
 * Of the ways to go on, those that are likeliest so far are kept. */
#include <assert.h>

#include "transformer.h"

/* What goes from round to round. */
enum { AT, LAST, WRITTEN, SCORES, KEYS, VALUES, CARRIED };

enum { MOST = 64 }; /* rows of all beams */

/* A place to build in: the body of the loop, and the model inside of it. */
struct round {
  dtg_graph *graph;
  dtg_model *model;
  int64_t beams, rows; /* rows: of all beams */
  dtg_value lengths;   /* of each of them */
  dtg_attention_cache read;
};

static dtg_error *integers(dtg_graph *g, const int64_t *dims, size_t rank, const int32_t *values, dtg_value *out) {
  size_t count = 1;
  for (size_t i = 0; i < rank; i++) count *= (size_t)dims[i];
  return dtg_const_of(g, DTG_I32, dims, rank, values, count * sizeof *values, out);
}

static dtg_error *integer(dtg_graph *g, int32_t value, dtg_value *out) { return integers(g, NULL, 0, &value, out); }

static dtg_error *shaped(dtg_graph *g, dtg_value x, int64_t rows, int64_t columns, dtg_value *out) {
  const int64_t dims[] = {rows, columns};
  dtg_value shape;
  TRY(dtg_const_i64s(g, dims, columns ? 2 : 1, &shape));
  return dtg_add2(g, "Reshape", x, shape, out);
}

static dtg_error *rows_of(dtg_graph *g, dtg_value x, dtg_value rows, dtg_value *out) {
  dtg_value axis;
  TRY(integer(g, 0, &axis));
  return dtg_add_gather_v2(g, NULL, x, rows, axis, NULL, out);
}

static dtg_error *norm(struct round *r, const char *trained, dtg_value x, dtg_value *y) {
  dtg_norm layer = DTG_NORM_INIT;
  layer.weights_of = trained;
  return dtg_nn_layer_norm(r->model, x, &layer, y);
}

static dtg_error *dense_again(struct round *r, const char *trained, int64_t units, dtg_activation activation, dtg_value *x) {
  dtg_dense layer = DTG_DENSE_INIT;
  layer.units = units;
  layer.activation = activation;
  layer.weights_of = trained;
  return dtg_nn_dense(r->model, *x, &layer, x);
}

static dtg_error *look_up(struct round *r, const char *trained, int64_t rows, dtg_value ids, dtg_value *out) {
  dtg_embedding layer = DTG_EMBEDDING_INIT;
  layer.rows = rows;
  layer.width = WIDTH;
  layer.weights_of = trained;
  return dtg_nn_embedding(r->model, ids, &layer, out);
}

static dtg_error *attend_again(struct round *r, const char *trained, dtg_value lengths, dtg_attention_cache *seen, dtg_value *y) {
  dtg_attention layer = DTG_ATTENTION_INIT;
  layer.heads = HEADS;
  layer.key_width = WIDTH / HEADS;
  layer.lengths = lengths;
  layer.weights_of = trained;
  return dtg_nn_attention_step(r->model, *y, &layer, seen, y);
}

/* One place of the decoder: logarithms of probabilities [rows, TOKENS] of what stands there. */
static dtg_error *next_token(struct round *r, dtg_value *v, dtg_value *out) {
  const dtg_value none = {0};
  dtg_attention_cache written = DTG_ATTENTION_CACHE_INIT, read = r->read;
  dtg_value x, y, place;
  written.keys = v[KEYS];
  written.values = v[VALUES];
  written.position = v[AT];
  TRY(look_up(r, "embedding_2", TOKENS, v[LAST], &x));
  TRY(look_up(r, "embedding_3", LONGEST, v[AT], &place));
  TRY(dtg_add2(r->graph, "AddV2", x, place, &x));
  TRY(norm(r, "layer_normalization_3", x, &y));
  TRY(attend_again(r, "multi_head_attention_1", none, &written, &y));
  TRY(dtg_add2(r->graph, "AddV2", x, y, &x));
  TRY(norm(r, "layer_normalization_4", x, &y));
  TRY(attend_again(r, "multi_head_attention_2", r->lengths, &read, &y));
  TRY(dtg_add2(r->graph, "AddV2", x, y, &x));
  TRY(norm(r, "layer_normalization_5", x, &y));
  TRY(dense_again(r, "dense_2", 2 * WIDTH, DTG_ACT_GELU, &y));
  TRY(dense_again(r, "dense_3", WIDTH, DTG_ACT_NONE, &y));
  TRY(dtg_add2(r->graph, "AddV2", x, y, &x));
  TRY(norm(r, "layer_normalization_6", x, &y));
  TRY(dense_again(r, "dense_4", TOKENS, DTG_ACT_NONE, &y));
  TRY(shaped(r->graph, y, r->rows, TOKENS, &y));
  TRY(dtg_add1(r->graph, "LogSoftmax", y, out));
  v[KEYS] = written.keys;
  v[VALUES] = written.values;
  return NULL;
}

/* Behind its end a row says nothing but 0, which changes no score. */
static dtg_error *end_rows(struct round *r, dtg_value at, dtg_value *likely) {
  const int64_t dims[] = {1, TOKENS};
  float silence[TOKENS] = {0};
  dtg_value quiet, open;
  for (int k = 1; k < TOKENS; k++) silence[k] = -1e9F;
  TRY(dtg_const_of(r->graph, DTG_F32, dims, 2, silence, sizeof silence, &quiet));
  TRY(dtg_add2(r->graph, "Less", at, r->lengths, &open));
  TRY(shaped(r->graph, open, r->rows, 1, &open));
  return dtg_add_select_v2(r->graph, NULL, open, *likely, quiet, likely);
}

/* The likeliest of all ways to go on: `from`, which row of the beams each goes on with, and `token`, with what. */
static dtg_error *choose(struct round *r, dtg_value likely, dtg_value *scores, dtg_value *from, dtg_value *token) {
  const int64_t batch = r->rows / r->beams, column[] = {batch, 1};
  int32_t first[MOST];
  dtg_value total, tokens, beams, base;
  TRY(shaped(r->graph, *scores, r->rows, 1, &total));
  TRY(dtg_add2(r->graph, "AddV2", total, likely, &total));
  TRY(shaped(r->graph, total, batch, r->beams * TOKENS, &total));
  TRY(integer(r->graph, (int32_t)r->beams, &beams));
  TRY(dtg_add_top_k_v2(r->graph, NULL, total, beams, NULL, scores, &total));
  TRY(integer(r->graph, TOKENS, &tokens));
  for (int64_t i = 0; i < batch; i++) first[i] = (int32_t)(i * r->beams);
  TRY(integers(r->graph, column, 2, first, &base));
  TRY(dtg_add2(r->graph, "FloorDiv", total, tokens, from));
  TRY(dtg_add2(r->graph, "AddV2", *from, base, from));
  TRY(shaped(r->graph, *from, r->rows, 0, from));
  TRY(dtg_add2(r->graph, "FloorMod", total, tokens, token));
  return shaped(r->graph, *token, r->rows, 1, token);
}

static dtg_error *go_on(struct round *r, dtg_value *v) {
  const int32_t counted[LONGEST] = {0, 1, 2, 3, 4, 5, 6, 7};
  const int64_t longest = LONGEST;
  dtg_value likely, from, places, here, one;
  TRY(next_token(r, v, &likely));
  TRY(end_rows(r, v[AT], &likely));
  TRY(choose(r, likely, &v[SCORES], &from, &v[LAST]));
  for (int i = WRITTEN; i < CARRIED; i++) {
    if (i != SCORES) TRY(rows_of(r->graph, v[i], from, &v[i]));
  }
  TRY(integers(r->graph, &longest, 1, counted, &places));
  TRY(dtg_add2(r->graph, "Equal", places, v[AT], &here));
  TRY(dtg_add_select_v2(r->graph, NULL, here, v[LAST], v[WRITTEN], &v[WRITTEN]));
  TRY(integer(r->graph, 1, &one));
  return dtg_add2(r->graph, "AddV2", v[AT], one, &v[AT]);
}

/* The body of the loop, or what says whether it goes on. */
static dtg_error *half(struct work *w, struct round *r, const dtg_value *start, int body, dtg_function **out) {
  dtg_value v[CARRIED], longest;
  TRY(dtg_function_begin(w->graph, body ? "place" : "more", DTG_STRLEN, &r->graph));
  for (int i = 0; i < CARRIED; i++) TRY(dtg_function_add_argument_like(r->graph, start[i], &v[i]));
  if (body) {
    TRY(dtg_model_inside(w->model, r->graph, &r->model));
    TRY(go_on(r, v));
    dtg_model_release(r->model);
  } else {
    TRY(integer(r->graph, LONGEST, &longest));
    TRY(dtg_add2(r->graph, "Less", v[AT], longest, &v[0]));
  }
  TRY(dtg_function_end(r->graph, v, body ? CARRIED : 1, NULL, 0, out));
  dtg_graph_release(r->graph);
  return NULL;
}

/* Nothing is written, and all beams of a row but one are out of the question, so that they do not all write the same. */
static dtg_error *begin(struct work *w, const struct round *r, dtg_value *v) {
  const int64_t batch = r->rows / r->beams, empty[] = {r->rows, LONGEST}, scores[] = {batch, r->beams}, last[] = {r->rows, 1},
                cache[] = {r->rows, LONGEST, HEADS, WIDTH / HEADS};
  int32_t begins[MOST];
  float likely[MOST];
  dtg_value zero, dims;
  for (int64_t i = 0; i < r->rows; i++) begins[i] = START, likely[i] = i % r->beams == 0 ? 0.0F : -1e9F;
  TRY(integer(w->graph, 0, &v[AT]));
  TRY(integers(w->graph, last, 2, begins, &v[LAST]));
  TRY(dtg_const_of(w->graph, DTG_F32, scores, 2, likely, (size_t)r->rows * sizeof *likely, &v[SCORES]));
  TRY(dtg_const_i64s(w->graph, empty, 2, &dims));
  TRY(dtg_add2(w->graph, "Fill", dims, v[AT], &v[WRITTEN]));
  TRY(dtg_const_f32(w->graph, 0, &zero));
  TRY(dtg_const_i64s(w->graph, cache, 4, &dims));
  TRY(dtg_add2(w->graph, "Fill", dims, zero, &v[KEYS]));
  v[VALUES] = v[KEYS];
  return NULL;
}

dtg_error *add_writer(struct work *w, dtg_value read, dtg_value lengths, struct writer *out) {
  struct round r = {NULL, NULL, out->beams, w->batch * out->beams, {0}, DTG_ATTENTION_CACHE_INIT};
  dtg_attention layer = DTG_ATTENTION_INIT;
  dtg_value v[CARRIED], which;
  dtg_function *more, *body;
  int32_t rows[MOST];
  assert(r.rows <= MOST && w->batch <= MOST);
  /* What was read, once for each beam; its keys and values are the same in all rounds. */
  for (int64_t i = 0; i < r.rows; i++) rows[i] = (int32_t)(i / r.beams);
  TRY(integers(w->graph, &r.rows, 1, rows, &which));
  TRY(rows_of(w->graph, lengths, which, &r.lengths));
  TRY(rows_of(w->graph, read, which, &read));
  layer.heads = HEADS;
  layer.key_width = WIDTH / HEADS;
  layer.weights_of = "multi_head_attention_2";
  TRY(dtg_nn_attention_cache(w->model, read, &layer, 0, &r.read));
  TRY(begin(w, &r, v));
  TRY(half(w, &r, v, 0, &more));
  TRY(half(w, &r, v, 1, &body));
  TRY(dtg_graph_add_while(w->graph, v, CARRIED, more, body, v));
  dtg_function_release(more);
  dtg_function_release(body);
  out->rows = v[WRITTEN];
  out->scores = v[SCORES];
  return NULL;
}
