// Recipes for the numeric gradient check: for every differentiable op, inputs and attributes at which its gradient can be
// compared with differences. Constant data; one thread.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace dtg::grads {

using Dims = std::vector<int64_t>;

struct Input {
  enum Kind { kReal, kVariable, kInt32, kInt64, kBool } kind = kReal;
  Dims dims;
  std::vector<double> values;  // of whole numbers and flags; reals are drawn from [low, high]
  double low = -2;
  double high = 2;
};

inline Input num(Dims dims, double low = -2, double high = 2) { return {Input::kReal, std::move(dims), {}, low, high}; }
inline Input var(Dims dims) { return {Input::kVariable, std::move(dims), {}, -2, 2}; }
inline Input ints(std::vector<double> values) {
  const Dims dims = {static_cast<int64_t>(values.size())};
  return {Input::kInt32, dims, std::move(values), 0, 0};
}
inline Input ints(Dims dims, std::vector<double> values) { return {Input::kInt32, std::move(dims), std::move(values), 0, 0}; }
inline Input longs(Dims dims, std::vector<double> values) { return {Input::kInt64, std::move(dims), std::move(values), 0, 0}; }
inline Input integer(double value) { return {Input::kInt32, {}, {value}, 0, 0}; }
inline Input flags(Dims dims, std::vector<double> values) { return {Input::kBool, std::move(dims), std::move(values), 0, 0}; }
// These very values, as a real input.
inline Input exact(Dims dims, std::vector<double> values) { return {Input::kReal, std::move(dims), std::move(values), 0, 0}; }

struct Setting {
  enum Kind { kInt, kInts, kFloat, kFlag, kText, kF64, kShape } kind = kInt;
  std::string name;
  Dims ints;
  std::string text;
  double real = 0;
};

inline Setting set(const char* name, int64_t value) { return {Setting::kInt, name, {value}, "", 0}; }
inline Setting set_ints(const char* name, Dims values) { return {Setting::kInts, name, std::move(values), "", 0}; }
inline Setting set_shape(const char* name, Dims values) { return {Setting::kShape, name, std::move(values), "", 0}; }
inline Setting set_flag(const char* name, bool value = true) { return {Setting::kFlag, name, {value ? 1 : 0}, "", 0}; }
inline Setting set_off(const char* name) { return set_flag(name, false); }
inline Setting set_text(const char* name, const char* text) { return {Setting::kText, name, {}, text, 0}; }
inline Setting set_real(const char* name, double value) { return {Setting::kFloat, name, {}, "", value}; }
inline Setting set_f64(const char* name) { return {Setting::kF64, name, {}, "", 0}; }

struct Recipe {
  std::string op;
  std::vector<Input> inputs;
  std::vector<Setting> settings = {};
  int outputs = -1;                  // how many outputs are weighted; -1: all that are real
  std::vector<size_t> unmoved = {};  // inputs that stay where they are: a small step would leave what the op accepts
  bool single = false;               // for ops without float64: in float32, with larger steps and less to expect
  std::vector<size_t> only = {};     // outputs that are weighted; none: see `outputs`
  bool needs_shapes = false;         // the gradient wants to know them when it is built
};

const std::vector<Recipe>& recipes();
// Those of other files.
void add_image_recipes(std::vector<Recipe>& list);

}  // namespace dtg::grads
