// Initializers: where the first value of a variable comes from. Random ones are functions of (seed, number of
// the variable in its model, shape) alone, so equal seeds give equal weights on every machine, whatever
// runs beside them. Names and formulas are those of tf.keras.initializers. Pure functions over a graph.
#pragma once

#include <cstdint>

#include "graph/build.h"

namespace dtg {

struct Initializer {
  enum class Kind : uint8_t {
    zeros,
    ones,
    constant,          // `a` everywhere
    uniform,           // in [a, b)
    normal,            // mean a, deviation b
    truncated_normal,  // mean a, deviation b before cutting at two deviations
    glorot_uniform,    // in +-sqrt(6 / (fan_in + fan_out))
    glorot_normal,     // truncated, deviation sqrt(2 / (fan_in + fan_out)) after cutting
    he_uniform,        // in +-sqrt(6 / fan_in)
    he_normal,         // truncated, deviation sqrt(2 / fan_in) after cutting
    orthogonal,        // rows, or columns where there are fewer, of length 1 and at right angles; all dimensions but the last are rows
  };
  Kind kind = Kind::zeros;
  double a = 0;
  double b = 0;
  // Of a vector, elements [ones_from, ones_end) are 1 whatever the kind: the bias of a forget gate.
  int64_t ones_from = 0;
  int64_t ones_end = 0;

  static Initializer zeros() { return {}; }
  static Initializer ones() { return {Kind::ones, 0, 0, 0, 0}; }
  static Initializer constant(double value) { return {Kind::constant, value, 0, 0, 0}; }
  static Initializer uniform(double low, double high) { return {Kind::uniform, low, high, 0, 0}; }
  static Initializer normal(double mean, double deviation) { return {Kind::normal, mean, deviation, 0, 0}; }
  static Initializer truncated_normal(double mean, double deviation) { return {Kind::truncated_normal, mean, deviation, 0, 0}; }
  static Initializer glorot_uniform() { return {Kind::glorot_uniform, 0, 0, 0, 0}; }
  static Initializer glorot_normal() { return {Kind::glorot_normal, 0, 0, 0, 0}; }
  static Initializer he_uniform() { return {Kind::he_uniform, 0, 0, 0, 0}; }
  static Initializer he_normal() { return {Kind::he_normal, 0, 0, 0, 0}; }
  static Initializer orthogonal() { return {Kind::orthogonal, 0, 0, 0, 0}; }
};

// How many inputs feed one output of a layer with such a kernel, and how many outputs one input feeds. The
// last two dimensions are channels in and out, what stands before them is the window.
struct Fans {
  double in = 1;
  double out = 1;
};
Fans fans_of(const Shape& kernel);

// One stream of random numbers. Streams of different numbers do not overlap.
struct RandomStream {
  uint64_t seed = 0;
  uint64_t number = 0;
  uint64_t block = 0;  // where in the stream to begin
};

// The node that makes the value. Random kinds need a floating-point type.
Value initial_value(Build& build, const Initializer& initializer, DType dtype, const Shape& shape, RandomStream stream);

// A part of such a value: from `first` on along an axis, of that shape.
struct InitialPart {
  int32_t axis = 0;
  int64_t first = 0;
  Shape shape = {};
};
// To the bit what `whole` would have there. Along axis 0 only what is asked for is drawn, so that a large table is never in one place;
// along others, and of an orthogonal matrix, the whole is.
Value initial_part(Build& build, const Initializer& initializer, DType dtype, const Shape& whole, const InitialPart& part,
                   RandomStream stream);

}  // namespace dtg
