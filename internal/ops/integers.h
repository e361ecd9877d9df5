// Integers: the inputs that decide shapes (axes, sizes, paddings, permutations). The plan knows most of them;
// then a kernel works out its loops in prepare. The rest is read from the input in run, into memory on the
// stack. OutputSpec is the other half: an output whose memory is planned, or leased when the shape is known.
// Part of a kernel's argument block; read-only once prepared.
#pragma once

#include <array>
#include <span>

#include "exec/kernel.h"
#include "graph/infer.h"

namespace dtg::ops {

// Element i of a tensor of any integer type.
int64_t integer_at(const void* data, DType dtype, int64_t i);

class Integers {
 public:
  static constexpr int64_t kMax = 32;  // paddings of rank 8 are 16, a strided slice has at most 32 entries
  using Buffer = std::array<int64_t, kMax>;

  // Looks at input i; refuses more than kMax integers.
  Status prepare(PrepareContext& c, int i);
  bool known() const { return known_; }
  int count() const { return static_cast<int>(count_); }
  // The values: known, or read now into `buffer`.
  std::span<const int64_t> get(RunContext& c, Buffer& buffer) const;
  // Only when known.
  std::span<const int64_t> values() const { return {values_.data(), static_cast<size_t>(count_)}; }

 private:
  int input_ = 0;
  int64_t count_ = 0;
  DType dtype_ = DType::i32;
  bool known_ = false;
  Buffer values_{};
};

// The same at graph building: all values of input i, or nothing when they are not known.
struct KnownIntegers {
  bool known = false;
  std::array<int64_t, Integers::kMax> values{};
  int count = 0;
  std::span<const int64_t> span() const { return {values.data(), static_cast<size_t>(count)}; }
};
KnownIntegers known_integers(const InferContext& c, int i);

// Where an output's memory comes from.
struct OutputSpec {
  int index = 0;
  DType dtype = DType::invalid;
  Shape shape;  // when not dynamic
  bool dynamic = false;

  void prepare(const PrepareContext& c, int i);
  // Memory for a value of that shape; a planned output must have been planned with it.
  Result<char*> memory(RunContext& c, const Shape& shape) const;
  // Is it the shape that was planned, if one was?
  Status check(const RunContext& c, const Shape& shape) const;
};

// "op: message" with the node's op in front, for checks that shape functions, prepare and run share.
Status in_op(const Node& node, Status status);

// The axis counted from the front, for a rank; an error when it does not exist.
Result<int> resolve_axis(int64_t axis, int rank);

}  // namespace dtg::ops
