// Attention with several heads, with the formulas, variables and defaults of tf.keras.layers.MultiHeadAttention. Called by the thread that
// builds the model.
#pragma once

#include <string_view>

#include "nn/model.h"

namespace dtg {

struct AttentionLayer {
  std::string_view name = "multi_head_attention";
  int64_t heads = 0;
  int64_t key_width = 0;     // of each head
  int64_t value_width = 0;   // of each head; 0: like the key
  int64_t output_width = 0;  // 0: that of the query
  bool use_bias = true;
  bool causal = false;  // no place sees a later one
  Initializer kernel = Initializer::glorot_uniform();
  Initializer bias = Initializer::zeros();
  std::string_view weights_of = {};
  // bool, [batch, queries, keys] or what broadcasts to it; false: not seen. Invalid: all.
  Value mask = {};
  // int32 or int64 of [batch]: how many keys of each example count; invalid: all.
  Value lengths = {};
};

// query[batch, queries, in], value[batch, keys, in'], key (invalid: the value) likewise; [batch, queries, output].
Result<Value> attention(Model& model, Value query, Value value, Value key, const AttentionLayer& layer);

// --- its pieces, for those who share the heads out ---

// What can be told before anything is built; `key` may be invalid.
Status check_attention(const Model& model, Value query, Value value, Value key, const AttentionLayer& layer);
// [batch, places, heads x width] as [batch, places, heads, width], and back.
Value to_heads(Build& build, Value x, int64_t heads, int64_t width);
Value from_heads(Build& build, Value x, int64_t heads, int64_t width);
// What the heads make of their queries, keys and values, all [batch, places, heads, width].
Value attend(Build& build, Value query, Value key, Value value, const AttentionLayer& layer);

// --- decoding, place by place ---

// What decoding keeps of the places before: keys and values as the heads see them, [batch, longest, heads, width], of which those below
// `position` (int32 scalar) are there. Without a position all are there, and none is added: those of an encoder.
struct AttentionCache {
  Value keys = {};
  Value values = {};
  Value position = {};
};
// The projections of value[batch, places, in], with room for `longest` places; 0: for those only, and none is added.
Result<AttentionCache> attention_cache(Model& model, Value value, const AttentionLayer& layer, int64_t longest);
// What attention() gives for the places of query[batch, places, in] that come next, with their keys and values written behind those of the
// cache; each sees the places up to its own. The cache comes back as it is then. With weights of a layer made before.
Result<Value> attention_step(Model& model, Value query, const AttentionLayer& layer, AttentionCache* cache);

}  // namespace dtg
