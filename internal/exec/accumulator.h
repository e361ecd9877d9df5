// Accumulators: where workers leave gradients and the chief takes their mean. TensorFlow's rules: a gradient whose
// local step lies behind the accumulator's is dropped without a word; a take waits, in order, for its number of
// gradients, gets the mean (or sum) of all that are there, and moves the accumulator's step on by one. One that is for a single
// worker holds its last gradient only: what it computed for an older step, or once more after a loss, is not added to that.
//
// Any thread. Owner: the resource store and the plans bound to it.
#pragma once

#include <span>
#include <unordered_map>
#include <vector>

#include "exec/pending_op.h"
#include "tensor/tensor.h"

namespace dtg {

// What dense and sparse accumulators share: steps, counts, and who waits.
class Accumulator : public WaitingResource {
 public:
  enum class Reduction : uint8_t { mean, sum, last };
  struct Spec {
    DType dtype = DType::f32;  // a floating type
    PartialShape shape;
    Reduction reduction = Reduction::mean;
  };

  struct Taken {
    Tensor sum;  // not divided yet; sparse: rows in the order of their arrival
    // Sparse: one entry per row, by rising index.
    struct Row {
      int64_t index;
      int64_t place;  // in `sum`
      int64_t count;  // gradients that had it
    };
    std::vector<Row> rows;
  };
  class Take : public PendingOp, public Taken {
   public:
    // More than 0; how many gradients were there when it succeeds.
    int64_t count = 1;
  };

  Accumulator(std::string name, Spec spec) : WaitingResource(std::move(name)), spec_(std::move(spec)) {}
  const Spec& spec() const { return spec_; }
  void destroy(const Status& reason) override;
  void set_global_step(int64_t step);
  // The end of a step: what was computed for just that one, where it is `wanted`, into `taken`; nothing for that step or an older one is
  // accepted any more. Waits for nobody; false: it is wanted and not there.
  bool close_step(int64_t step, bool wanted, Taken& taken);
  int64_t count() const;
  int64_t global_step() const;

 protected:
  // Locked.
  bool stale(int64_t local_step) const {
    return local_step < global_step_ || (spec_.reduction == Reduction::last && count_ > 0 && local_step < newest_);
  }
  // Before a gradient is added that is not stale and fits.
  void make_room(int64_t local_step);
  void added(PendingOpList& ended);
  // The contents go to the take; the accumulator is empty then.
  virtual void hand_over(Taken& taken) = 0;
  virtual void clear() = 0;

  const Spec spec_;
  int64_t count_ = 0;
  int64_t global_step_ = 0;
  int64_t newest_ = 0;  // local step of what was added last

 private:
  void enter(PendingOp& pending, PendingOpList& ended) override;
  void withdraw(PendingOp& pending, PendingOpList& ended) override;
  void serve(PendingOpList& ended);
  void drop();

  PendingOpList takers_;
};

class DenseAccumulator final : public Accumulator {
 public:
  static constexpr std::string_view kKind = "accumulator";
  using Accumulator::Accumulator;
  const char* kind() const override { return kKind.data(); }
  Status apply(int64_t local_step, const Shape& shape, const void* gradient);
  // Memory of a take that is through, for the next round.
  void recycle(Tensor sum);

 private:
  void hand_over(Taken& taken) override;
  void clear() override { sum_ = Tensor(); }

  Tensor sum_;  // meaningful while count_ > 0
  Tensor spare_;
};

// Rows by index; a mean divides each row by the number of gradients that had it, not by all of them.
class SparseAccumulator final : public Accumulator {
 public:
  static constexpr std::string_view kKind = "sparse accumulator";
  using Accumulator::Accumulator;
  const char* kind() const override { return kKind.data(); }
  // `dense_shape` may be empty: not known. Indices need no order; equal ones add up and count once.
  Status apply(int64_t local_step, std::span<const int64_t> indices, const Shape& values_shape, const void* values,
               std::span<const int64_t> dense_shape);
  // The answers of a take: values [rows, ...] divided where a mean is wanted, and the shape of the whole.
  Result<Tensor> values_of(const Taken& taken) const;
  std::vector<int64_t> dense_shape_of(const Taken& taken) const;

 private:
  Status check(std::span<const int64_t> indices, const Shape& values_shape, std::span<const int64_t> dense_shape) const;
  Status reserve(const Shape& values_shape);
  void hand_over(Taken& taken) override;
  void clear() override;

  struct Row {
    int64_t place = 0;    // in values_
    int64_t touched = 0;  // gradients that had it
    int64_t last = -1;    // number of the last gradient that had it
  };
  std::unordered_map<int64_t, Row> rows_;
  Tensor values_;  // [capacity, ...]; shape of a row from the first gradient
};

// sum / divisor into `out`, which may be the sum itself.
void divide_elements(DType dtype, const void* sum, void* out, int64_t count, int64_t divisor);

}  // namespace dtg
