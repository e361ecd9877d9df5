// What every layer asks before it adds anything, and what most of them add: the checks of an input and of a window, variables that may be
// another layer's, products and biases. For the files of layers beside it; the thread that builds the model.
#pragma once

#include <string>
#include <string_view>

#include "nn/layers.h"

namespace dtg {

const char* padding_name(Padding padding);
// The value with its name, type and shape, for messages.
std::string described(const Graph& graph, Value x);
inline std::string described(const Model& model, Value x) { return described(model.graph(), x); }
// The last dimension of a layer's input, which is a floating-point value of such a rank.
Result<int64_t> channels_of(const Model& model, Value x, const char* layer, int rank_min, int rank_max);
// A variable of the layer's own, or that of the layer whose weights it shares.
Result<NamedVariable> variable_of(Model& model, std::string_view weights_of, const VariableSpec& spec);
// Rows of a table by their numbers, looked up where the table stands, which need not be where the rest computes. The body of a function
// reads the table instead: it can be anywhere then, and its gradient is whole.
Value look_up(Model& model, Build& build, const NamedVariable& table, Value ids);
// y + bias[units], of the channels that come last.
Value add_bias(Model& model, Build& build, Value y, int64_t units, const Initializer& initializer, std::string_view weights_of);
// x[..., in] of any rank times a matrix [in, units].
Value project(Build& build, Value x, Value kernel, int64_t in, int64_t units);
// Dimension `axis` of a shape, which is a vector; and 0, 1, ... below a number. Both int32.
Value dimension(Build& build, Value shape, int64_t axis);
Value counting(Build& build, Value below);
// Lengths of sequences as int32, once a run has found each of them in [0, limit]; `limit` is an int32 scalar.
Value checked_lengths(Build& build, Value lengths, Value limit);
// What there is one of for each example of x, by its first dimension: another number of them, where both are known. `said` begins the
// message: "the lengths are".
Status check_one_each(const Model& model, const char* layer, const char* said, Value each, Value x);
// What is known of a value's shape, said where the graph cannot see it through a reshape.
Value shaped(Build& build, Value x, const PartialShape& shape);
// A window that slides along a dimension (negative: not known), before anything is added for it.
Status check_window(const char* layer, int64_t size, int64_t window, int64_t stride, int64_t dilation, Padding padding);

}  // namespace dtg
