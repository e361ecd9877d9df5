// TensorArray ops: kernels. Elements are copies in memory that is used again. Called on the threads of a run; the array's lock is the
// array's own business.
#include "ops/tensor_array.h"

#include <cstring>

#include "ops/integers.h"
#include "ops/list.h"

namespace dtg::ops {
namespace {

struct ArrayArgs {
  TensorArray::Options made;  // of TensorArrayV3
  DType dtype = DType::invalid;
  Shape value;            // of what is written
  PartialShape declared;  // element_shape of gathers; behind the rows, of Concat
  int64_t count = 0;      // of indices or lengths
  int flow = -1;          // the input that is handed on
  OutputSpec out, lengths;
  const std::string* source = nullptr;
};

ArrayArgs* start(PrepareContext& c, const char* type) {
  auto* const a = c.args<ArrayArgs>();
  if (type) a->dtype = c.attr<DType>(type);
  return a;
}

void give_array(RunContext& c, Ref<TensorArray> array) {
  RefCounted* const address = array.get();
  c.set_output(0, address, Shape(), std::move(array));
}

Result<TensorArray*> array_at(const RunContext& c) {
  DTG_TRY(c.permitted(0));
  auto* const array = resource_cast<TensorArray>(c.in<void>(0));
  if (!array) return c.error("input 0 is not the handle of a TensorArray");
  const DType wanted = c.args<ArrayArgs>().dtype;
  if (wanted == DType::invalid || wanted == array->dtype()) return array;
  return c.error("the array \"%s\" holds %s, the op is for %s", array->name().c_str(), dtype_name(array->dtype()), dtype_name(wanted));
}

// The flow orders the ops of an array, and is handed on as it came.
void pass_flow(RunContext& c, int output) { *c.out<float>(output) = *c.in<float>(c.args<ArrayArgs>().flow); }

// --- making ---

Status make_run(RunContext& c) {
  TensorArray::Options options = c.args<ArrayArgs>().made;
  options.size = *c.in<int32_t>(0);
  if (options.size < 0) return c.error("an array of %lld elements", static_cast<long long>(options.size));
  if (options.size > TensorArray::kMost) {
    return resource_exhausted("an array of %lld elements: at most %lld are possible", static_cast<long long>(options.size),
                              static_cast<long long>(TensorArray::kMost));
  }
  DTG_TRY(TensorArray::check_growth(c, options.size));
  const auto& given = *c.args<ArrayArgs>().source;
  give_array(c, make_ref<TensorArray>(given.empty() ? std::string(c.node().name) : given, std::move(options)));
  *c.out<float>(1) = 0;
  return {};
}

Status make_prepare(PrepareContext& c) {
  auto* const a = start(c, nullptr);
  a->made.dtype = c.attr<DType>("dtype");
  a->made.element_shape = c.attr<PartialShape>("element_shape");
  a->made.dynamic_size = c.boolean("dynamic_size");
  a->made.clear_after_read = c.boolean("clear_after_read");
  a->made.identical_shapes = c.boolean("identical_element_shapes");
  a->source = &c.attr<std::string>("tensor_array_name");
  return c.sync(make_run);
}

Status grad_run(RunContext& c) {
  DTG_ASSIGN(TensorArray * array, array_at(c));
  const auto& a = c.args<ArrayArgs>();
  std::vector<int64_t> before(static_cast<size_t>(a.count));
  for (size_t i = 0; i < before.size(); ++i) before[i] = c.in<int32_t>(2)[i];
  auto wide = Shape::make(before);
  if (!wide.ok()) return c.error("shape_to_prepend: %s", wide.status().message().c_str());
  DTG_ASSIGN(Ref<TensorArray> gradients, array->gradients(c, *a.source, wide.take()));
  give_array(c, std::move(gradients));
  pass_flow(c, 1);
  return {};
}

Status grad_prepare(PrepareContext& c) {
  auto* const a = start(c, nullptr);
  a->source = &c.attr<std::string>("source");
  a->flow = 1;
  return c.sync(grad_run);
}

Status wide_grad_prepare(PrepareContext& c) {
  DTG_TRY(grad_prepare(c));
  c.args<ArrayArgs>()->count = c.input(2).shape.count();
  return {};
}

// --- gradients that live as long as a call ---

Status outline_run(RunContext& c) {
  const auto& a = c.args<ArrayArgs>();
  DTG_ASSIGN(TensorArray * array, array_at(c));
  DTG_ASSIGN(const std::vector<int64_t> numbers, array->outline(c));
  DTG_ASSIGN(const Shape shape, Shape::make(std::array{static_cast<int64_t>(numbers.size())}));
  DTG_ASSIGN(char* const memory, a.out.memory(c, shape));
  std::memcpy(memory, numbers.data(), numbers.size() * sizeof(int64_t));
  return {};
}

Status outline_prepare(PrepareContext& c) {
  start(c, nullptr)->out.prepare(c, 0);
  return c.sync(outline_run);
}

Status of_outline_run(RunContext& c) {
  const auto& a = c.args<ArrayArgs>();
  const std::span<const int64_t> outline(c.in<int64_t>(0), static_cast<size_t>(a.count));
  DTG_ASSIGN(Ref<TensorArray> made, TensorArray::of_outline(c, std::string(c.node().name), a.dtype, outline));
  give_array(c, std::move(made));
  *c.out<float>(1) = 0;
  return {};
}

Status of_outline_prepare(PrepareContext& c) {
  start(c, "dtype")->count = c.input(0).shape.count();
  return c.sync(of_outline_run);
}

// --- writing ---

Status write_run(RunContext& c) {
  const auto& a = c.args<ArrayArgs>();
  DTG_ASSIGN(TensorArray * array, array_at(c));
  DTG_ASSIGN(Tensor copy, copy_of(c, a.dtype, a.value, c.in<void>(2)));
  DTG_TRY(array->write(c, *c.in<int32_t>(1), std::move(copy)));
  pass_flow(c, 0);
  return {};
}

Status write_prepare(PrepareContext& c) {
  auto* const a = start(c, "T");
  a->value = c.input(2).shape;
  a->flow = 3;
  return c.sync(write_run);
}

Status scatter_run(RunContext& c) {
  const auto& a = c.args<ArrayArgs>();
  DTG_ASSIGN(TensorArray * array, array_at(c));
  const auto* const indices = c.in<int32_t>(1);
  int64_t most = 0;
  for (int64_t i = 0; i < a.count; ++i) {
    if (indices[i] < 0) return c.error("indices[%lld] is %d", static_cast<long long>(i), indices[i]);
    most = std::max<int64_t>(most, int64_t{indices[i]} + 1);
  }
  DTG_TRY(array->make_room(c, most, /*exactly=*/false));
  const int64_t bytes = a.value.count() * cell_bytes(a.dtype);
  for (int64_t i = 0; i < a.count; ++i) {
    DTG_ASSIGN(Tensor copy, copy_of(c, a.dtype, a.value, c.in<char>(2) + i * bytes));
    DTG_TRY(array->write(c, indices[i], std::move(copy)));
  }
  pass_flow(c, 0);
  return {};
}

Status scatter_prepare(PrepareContext& c) {
  auto* const a = start(c, "T");
  DTG_ASSIGN(a->value, row_of(c, c.input(2).shape));
  a->count = c.input(1).shape.count();
  if (a->count != c.input(2).shape.dim(0)) {
    return c.error("%lld indices for %lld rows", static_cast<long long>(a->count), static_cast<long long>(c.input(2).shape.dim(0)));
  }
  a->flow = 3;
  return c.sync(scatter_run);
}

Status split_run(RunContext& c) {
  const auto& a = c.args<ArrayArgs>();
  DTG_ASSIGN(TensorArray * array, array_at(c));
  const auto* const lengths = c.in<int64_t>(2);
  const int64_t rows = a.value.dim(0), row = rows > 0 ? a.value.count() / rows * cell_bytes(a.dtype) : 0;
  int64_t at = 0;
  for (int64_t i = 0; i < a.count; ++i) {
    if (lengths[i] < 0 || lengths[i] > rows - at) {
      return c.error("lengths[%lld] is %lld, and %lld of %lld rows are left", static_cast<long long>(i), static_cast<long long>(lengths[i]),
                     static_cast<long long>(rows - at), static_cast<long long>(rows));
    }
    at += lengths[i];
  }
  if (at != rows) return c.error("the value has %lld rows, and lengths say %lld", static_cast<long long>(rows), static_cast<long long>(at));
  DTG_TRY(array->make_room(c, a.count, /*exactly=*/true));
  at = 0;
  for (int64_t i = 0; i < a.count; ++i) {
    std::vector<int64_t> dims(a.value.dims().begin(), a.value.dims().end());
    dims[0] = lengths[i];
    DTG_ASSIGN(const Shape shape, Shape::make(dims));
    DTG_ASSIGN(Tensor copy, copy_of(c, a.dtype, shape, c.in<char>(1) + at * row));
    DTG_TRY(array->write(c, i, std::move(copy)));
    at += lengths[i];
  }
  pass_flow(c, 0);
  return {};
}

Status split_prepare(PrepareContext& c) {
  auto* const a = start(c, "T");
  a->value = c.input(1).shape;
  if (a->value.rank() == 0) return c.error("a scalar has no rows");
  a->count = c.input(2).shape.count();
  a->flow = 3;
  return c.sync(split_run);
}

// --- reading ---

void put(const RunContext& c, const TensorArray::Element& element, DType dtype, char* memory) {
  const auto bytes = static_cast<size_t>(element.shape.count() * cell_bytes(dtype));
  if (bytes > 0 && element.value.valid()) std::memcpy(memory, element.value.data(), bytes);
  else if (bytes > 0) std::memset(memory, 0, bytes);
  keep_bytes(c, element.value);
}

Status read_run(RunContext& c) {
  const auto& a = c.args<ArrayArgs>();
  DTG_ASSIGN(TensorArray * array, array_at(c));
  DTG_ASSIGN(const TensorArray::Element element, array->read(c, *c.in<int32_t>(1)));
  DTG_TRY(a.out.check(c, element.shape));
  if (element.value.valid()) {
    c.set_output(0, element.value.data(), element.shape, element.value.buffer());
    return {};
  }
  DTG_ASSIGN(void* const memory, c.lease_output(0, a.dtype, element.shape));
  put(c, element, a.dtype, static_cast<char*>(memory));
  return {};
}

// The element's own memory comes out, which nobody writes to.
Status read_prepare(PrepareContext& c) {
  start(c, "dtype")->out.prepare(c, 0);
  c.brings(0);
  return c.sync(read_run);
}

Result<Shape> with_rows(const RunContext& c, int64_t rows, const Shape& rest) {
  std::vector<int64_t> dims = {rows};
  dims.insert(dims.end(), rest.dims().begin(), rest.dims().end());
  auto shape = Shape::make(dims);
  if (!shape.ok()) return c.error("%s", shape.status().message().c_str());
  return shape;
}

Status gather_run(RunContext& c) {
  const auto& a = c.args<ArrayArgs>();
  DTG_ASSIGN(TensorArray * array, array_at(c));
  DTG_TRY(array->narrow(c, a.declared));
  if (a.count == 0) {
    if (!a.declared.complete())
      return unimplemented("%s: none of an array's elements, whose shape is not known", c.node().op->name().c_str());
    DTG_ASSIGN(const Shape row, a.declared.to_shape());
    DTG_ASSIGN(const Shape shape, with_rows(c, 0, row));
    return a.out.memory(c, shape).status();
  }
  const auto* const indices = c.in<int32_t>(1);
  char* memory = nullptr;
  Shape row;
  for (int64_t i = 0; i < a.count; ++i) {
    DTG_ASSIGN(const TensorArray::Element element, array->read(c, indices[i]));
    if (!memory) {
      row = element.shape;
      DTG_ASSIGN(const Shape shape, with_rows(c, a.count, row));
      DTG_ASSIGN(memory, a.out.memory(c, shape));
    }
    if (!(element.shape == row)) {
      return c.error("element %d has shape %s, element %d has %s", indices[i], element.shape.text().c_str(), indices[0],
                     row.text().c_str());
    }
    put(c, element, a.dtype, memory + i * row.count() * cell_bytes(a.dtype));
  }
  return {};
}

Status gather_prepare(PrepareContext& c) {
  auto* const a = start(c, "dtype");
  a->declared = c.attr<PartialShape>("element_shape");
  a->count = c.input(1).shape.count();
  a->out.prepare(c, 0);
  return c.sync(gather_run);
}

// The elements to be put one behind the other, and what they share behind their rows.
Result<std::vector<TensorArray::Element>> pieces_of(const RunContext& c, TensorArray& array, Shape* rest) {
  const auto& a = c.args<ArrayArgs>();
  DTG_ASSIGN(const int64_t count, array.rows(c));
  if (count == 0) {
    if (!a.declared.complete())
      return unimplemented("%s: an empty array of elements whose shape is not known", c.node().op->name().c_str());
    DTG_ASSIGN(*rest, a.declared.to_shape());
  }
  std::vector<TensorArray::Element> pieces;
  for (int64_t i = 0; i < count; ++i) {
    DTG_ASSIGN(TensorArray::Element piece, array.read(c, i));
    if (piece.shape.rank() == 0)
      return c.error("element %lld is a scalar; those with rows can be put one behind the other", static_cast<long long>(i));
    DTG_ASSIGN(const Shape behind, Shape::make(piece.shape.dims().subspan(1)));
    if (i == 0) *rest = behind;
    if (!(behind == *rest) || !a.declared.admits(behind)) {
      return c.error("element %lld has shape %s; behind the rows the first has %s, and element_shape_except0 says %s",
                     static_cast<long long>(i), piece.shape.text().c_str(), rest->text().c_str(), a.declared.text().c_str());
    }
    pieces.push_back(std::move(piece));
  }
  return pieces;
}

Status concat_run(RunContext& c) {
  const auto& a = c.args<ArrayArgs>();
  DTG_ASSIGN(TensorArray * array, array_at(c));
  Shape rest;
  DTG_ASSIGN(const std::vector<TensorArray::Element> pieces, pieces_of(c, *array, &rest));
  DTG_ASSIGN(const Shape vector, Shape::make(std::array{static_cast<int64_t>(pieces.size())}));
  DTG_ASSIGN(char* const told, a.lengths.memory(c, vector));
  auto* const lengths = reinterpret_cast<int64_t*>(told);
  int64_t rows = 0;
  for (size_t i = 0; i < pieces.size(); ++i) rows += lengths[i] = pieces[i].shape.dim(0);
  DTG_ASSIGN(const Shape shape, with_rows(c, rows, rest));
  DTG_ASSIGN(char* memory, a.out.memory(c, shape));
  for (const TensorArray::Element& piece : pieces) {
    put(c, piece, a.dtype, memory);
    memory += piece.shape.count() * cell_bytes(a.dtype);
  }
  return {};
}

Status concat_prepare(PrepareContext& c) {
  auto* const a = start(c, "dtype");
  a->declared = c.attr<PartialShape>("element_shape_except0");
  a->out.prepare(c, 0);
  a->lengths.prepare(c, 1);
  return c.sync(concat_run);
}

// --- the rest ---

Status size_run(RunContext& c) {
  DTG_ASSIGN(TensorArray * array, array_at(c));
  DTG_ASSIGN(const int64_t size, array->size(c));
  *c.out<int32_t>(0) = static_cast<int32_t>(size);
  return {};
}

Status size_prepare(PrepareContext& c) {
  start(c, nullptr);
  return c.sync(size_run);
}

Status close_run(RunContext& c) {
  DTG_ASSIGN(TensorArray * array, array_at(c));
  array->close();
  return {};
}

Status close_prepare(PrepareContext& c) {
  start(c, nullptr);
  return c.sync(close_run);
}

}  // namespace

std::span<const ArrayKernel> array_kernels() {
  static constexpr ArrayKernel kKernels[] = {
      {"TensorArrayV3", make_prepare},       {"TensorArrayGradV3", grad_prepare},       {"TensorArrayGradWithShape", wide_grad_prepare},
      {"TensorArrayWriteV3", write_prepare}, {"TensorArrayScatterV3", scatter_prepare}, {"TensorArraySplitV3", split_prepare},
      {"TensorArrayReadV3", read_prepare},   {"TensorArrayGatherV3", gather_prepare},   {"TensorArrayConcatV3", concat_prepare},
      {"TensorArraySizeV3", size_prepare},   {"TensorArrayCloseV3", close_prepare},     {kOutlineOp, outline_prepare},
      {kOfOutlineOp, of_outline_prepare}};
  return kKernels;
}

}  // namespace dtg::ops
