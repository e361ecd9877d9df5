// TensorArray: what the files of the family share. Definitions, shapes and gradients are in tensor_array.cc, which
// array gradients meet in is found in array_gradients.cc; kernels are in tensor_array_run.cc, the object in tensor_array_state.cc. An array
// lives in one run: each run that comes to TensorArrayV3 has its own, which goes when the run ends, so no other run, session or task ever
// reaches it.
#pragma once

#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "exec/kernel.h"
#include "exec/resource.h"
#include "graph/gradient.h"

namespace dtg::ops {

struct ArrayKernel {
  const char* op;
  PrepareFn prepare;
};
std::span<const ArrayKernel> array_kernels();
// What gradients in functions are made of.
inline constexpr const char kOutlineOp[] = "_TensorArrayOutline", kOfOutlineOp[] = "_TensorArrayOfOutline";

// The array of an array's gradients, for the reverse pass in the making, and a flow to go on from. `done`: the flow in which everything has
// been done to the array. `arrived`: the gradient of a flow, which what is done next to the gradients follows; invalid: there is none.
//
// Where a function is taken apart and the array is an argument, they are those of whoever calls. Gradients that are asked for inside a
// function live no longer than a call of it: each call makes an array for them, after an outline of the array whose gradients they are.
struct ArrayGradients {
  Value handle, flow;
};
Result<ArrayGradients> gradients_of_array(GradContext& c, Value array, Value done, Value arrived = {});
// In a function that is being taken apart: is it a caller's array of gradients?
bool is_callers_gradients(const Node& node);

// One more array on the way from an array to those of its gradients: which op gives it, under which name, wider by what.
struct ArrayStep {
  std::string op, source;
  Tensor before;  // invalid: nothing
  bool operator==(const ArrayStep& other) const {
    return op == other.op && source == other.source && before.valid() == other.before.valid() &&
           (!before.valid() || same_value(before, other.before));
  }
};
// What made an array, or the argument that it is, and the steps from there to what the handle names.
struct NamedArray {
  Value maker;
  std::vector<ArrayStep> steps;
};
Result<NamedArray> named_array(const Graph& graph, Value handle);
// From an array to what named_array() found, in another graph.
Value follow_steps(Build& b, Value array, std::span<const ArrayStep> steps);

// Owner: the slots of a run, by count. Any thread, one call at a time: its lock. The order of calls is the plan's.
class TensorArray final : public Resource {
 public:
  static constexpr std::string_view kKind = "tensor array";
  // Elements that a run asks for beyond these would be a mistake.
  static constexpr int64_t kMost = int64_t{1} << 24;
  struct Options {
    DType dtype = DType::invalid;
    PartialShape element_shape;
    int64_t size = 0;
    bool dynamic_size = false;
    bool clear_after_read = true;
    bool identical_shapes = false;
    bool adds_up = false;     // an array of gradients: what is written to an element again is added
    Shape before;             // of such: what stands before the dimensions of the elements it has gradients of
    int64_t rows_known = -1;  // of such: how many elements are put one behind the other; -1: all
  };
  TensorArray(std::string name, Options options);
  const char* kind() const override { return kKind.data(); }
  void destroy(const Status&) override { close(); }

  DType dtype() const { return options_.dtype; }
  // The array keeps the tensor.
  // Room for so many elements.
  static Status check_growth(const RunContext& c, int64_t count);
  Status write(const RunContext& c, int64_t index, Tensor value);
  // An invalid tensor stands for zeros of the shape.
  struct Element {
    Tensor value;
    Shape shape;
  };
  Result<Element> read(const RunContext& c, int64_t index);
  Result<int64_t> size(const RunContext& c) const;
  // How many elements there are to be put one behind the other.
  Result<int64_t> rows(const RunContext& c) const;
  // Room for so many, where the array may grow; then `exactly` so many, or as many at least, is what it has. They are its rows.
  Status make_room(const RunContext& c, int64_t count, bool exactly);
  // What an op says of its elements.
  Status narrow(const RunContext& c, const PartialShape& shape);
  // Its array of gradients under that name, made when first asked for; `before` stands before the dimensions of each element. The array
  // itself grows no more.
  Result<Ref<TensorArray>> gradients(const RunContext& c, const std::string& source, const Shape& before);
  // What an array of its gradients must know of it, as numbers; and such an array, which nothing ties to this one.
  Result<std::vector<int64_t>> outline(const RunContext& c) const;
  static Result<Ref<TensorArray>> of_outline(const RunContext& c, std::string name, DType dtype, std::span<const int64_t> outline);
  void close();

 private:
  struct State {
    Tensor value;
    Shape shape;
    bool written = false, was_read = false, cleared = false;
  };
  Status check_open(const RunContext& c) const;
  Result<Options> gradient_options(const Shape& before) const;

  mutable std::mutex mutex_;
  Options options_;
  std::vector<State> elements_;
  std::map<std::string, Ref<TensorArray>> gradients_;
  bool closed_ = false;
};

}  // namespace dtg::ops
