// dtg/dlpack.h: tensors made around memory of other libraries, and lent to them, by DLPack's structs. Whoever takes
// such a struct over calls its deleter once. Any thread.
#include "dtg/dlpack.h"

#include <memory>
#include <new>

#include "capi/guard.h"
#include "capi/objects.h"
#include "dtg/tensor.h"

// DLPack's structs, by its version 1.1; plain types where it has enumerations, which are 32 bits there.
struct DLPackTensor {
  void* data;
  int32_t device_type, device_id;
  int32_t ndim;
  uint8_t code, bits;
  uint16_t lanes;
  int64_t* shape;
  int64_t* strides;  // in elements; may be null before 1.2: row-major
  uint64_t byte_offset;
};

struct DLManagedTensor {
  DLPackTensor tensor;
  void* context;
  void (*deleter)(DLManagedTensor* self);
};

// All versions agree on what stands before `flags`.
struct DLManagedTensorVersioned {
  uint32_t major, minor;
  void* context;
  void (*deleter)(DLManagedTensorVersioned* self);
  uint64_t flags;
  DLPackTensor tensor;
};

static_assert(sizeof(void*) == 8 && sizeof(DLPackTensor) == 48 && sizeof(DLManagedTensor) == 64 && sizeof(DLManagedTensorVersioned) == 80);

namespace dtg::capi {
namespace {

constexpr uint32_t kMajor = 1, kMinor = 1;
constexpr int32_t kCpu = 1, kCudaHost = 3, kRocmHost = 11;  // the latter two are pinned memory of the host
constexpr uint64_t kReadOnly = 1;

struct ElementRow {
  DType dtype;
  uint8_t code, bits;
};
constexpr ElementRow kElements[] = {
    {DType::i8, 0, 8},         {DType::i16, 0, 16},     {DType::i32, 0, 32}, {DType::i64, 0, 64},   {DType::u8, 1, 8},
    {DType::u16, 1, 16},       {DType::u32, 1, 32},     {DType::u64, 1, 64}, {DType::f16, 2, 16},   {DType::f32, 2, 32},
    {DType::f64, 2, 64},       {DType::bf16, 4, 16},    {DType::c64, 5, 64}, {DType::c128, 5, 128}, {DType::boolean, 6, 8},
    {DType::f8_e4m3fn, 10, 8}, {DType::f8_e5m2, 12, 8},
};

Result<DType> element_of(const DLPackTensor& given) {
  for (const ElementRow& row : kElements) {
    if (row.code == given.code && row.bits == given.bits && given.lanes == 1) return row.dtype;
  }
  return unimplemented("a DLPack tensor with elements of code %d, %d bits, %d lanes: there is no such element type here; convert it first",
                       given.code, given.bits, given.lanes);
}

Result<Shape> shape_of(const DLPackTensor& given) {
  if (given.ndim < 0 || given.ndim > kRankMax) {
    return invalid_argument("a DLPack tensor of rank %d: at most %d is supported", given.ndim, kRankMax);
  }
  const size_t rank = static_cast<size_t>(given.ndim);
  DTG_TRY(require_array(given.shape, rank, "the shape of the DLPack tensor"));
  return Shape::make({given.shape, rank});
}

// The stride of a dimension with one element or of an empty tensor leads nowhere and may be anything.
Status check_row_major(const DLPackTensor& given, DType dtype, const Shape& shape) {
  if (!given.strides || shape.count() <= 1) return {};
  int64_t wanted = 1;
  for (int i = shape.rank(); i-- > 0;) {
    if (shape.dim(i) != 1 && given.strides[i] != wanted) {
      return invalid_argument(
          "a DLPack tensor %s%s with stride %lld in dimension %d, where row-major memory without gaps has %lld: copy it "
          "into that order first (numpy.ascontiguousarray)",
          dtype_name(dtype), shape.text().c_str(), static_cast<long long>(given.strides[i]), i, static_cast<long long>(wanted));
    }
    wanted *= shape.dim(i);
  }
  return {};
}

template <class Managed>
void delete_managed(void*, size_t, void* user) {
  Managed* const managed = static_cast<Managed*>(user);
  if (managed->deleter) managed->deleter(managed);
}

template <class Managed>
Status take(Managed* managed, bool read_only, dtg_tensor** out) {
  const DLPackTensor& given = managed->tensor;
  if (given.device_type != kCpu && given.device_type != kCudaHost && given.device_type != kRocmHost) {
    return unimplemented(
        "a DLPack tensor on a device of type %d: only memory of the CPU (1, or pinned: 3, 11) can be read here; copy it there "
        "first",
        given.device_type);
  }
  DTG_ASSIGN(const DType dtype, element_of(given));
  DTG_ASSIGN(const Shape shape, shape_of(given));
  DTG_TRY(check_row_major(given, dtype, shape));
  if (shape.count() > 0) DTG_TRY(require(given.data, "the data of the DLPack tensor"));
  void* const data = given.data ? static_cast<char*>(given.data) + given.byte_offset : nullptr;
  return lend({dtype, shape, data, delete_managed<Managed>, managed, read_only}, out);
}

// What the receiver holds, in one piece; the managed struct comes first, so that it stands for all of it.
template <class Managed>
struct Export {
  Managed managed{};
  int64_t dims[kRankMax]{}, strides[kRankMax]{};
};

template <class Managed>
void end_export(Managed* managed) {
  // In a forked child nothing can be released; the memory goes with the process.
  if (!managed || in_forked_child()) return;
  dtg_tensor_release(static_cast<dtg_tensor*>(managed->context));
  delete reinterpret_cast<Export<Managed>*>(managed);
}

template <class Managed>
Status hand_out(dtg_tensor* handle, bool writable, Managed** out) {
  const Held<TensorObject> held(handle, HandleType::tensor);
  if (!held) return held.status();
  DTG_TRY(require(out, "out"));
  const Tensor& tensor = held->tensor;
  if (writable && held->read_only) {
    return failed_precondition("hand out the tensor %s to be written: its memory came in read-only; ask for the read-only form",
                               tensor.text().c_str());
  }
  const ElementRow* row = nullptr;
  for (const ElementRow& each : kElements) {
    if (each.dtype == tensor.dtype()) row = &each;
  }
  if (!row) return unimplemented("hand out the tensor %s: DLPack has no code for its elements; cast it first", tensor.text().c_str());
  auto made = std::make_unique<Export<Managed>>();
  int64_t stride = 1;
  for (int i = tensor.shape().rank(); i-- > 0;) {
    made->dims[i] = tensor.shape().dim(i);
    made->strides[i] = stride;
    stride *= made->dims[i];
  }
  made->managed.tensor = {
      tensor.count() > 0 ? tensor.data() : nullptr, kCpu, 0, tensor.shape().rank(), row->code, row->bits, 1, made->dims, made->strides, 0};
  made->managed.context = dtg_tensor_retain(handle);
  made->managed.deleter = end_export<Managed>;
  *out = &made.release()->managed;
  return {};
}

}  // namespace
}  // namespace dtg::capi

using namespace dtg;
using namespace dtg::capi;

extern "C" {

dtg_error* dtg_tensor_from_dlpack(DLManagedTensorVersioned* managed, dtg_tensor** out) noexcept {
  return guard([&]() -> Status {
    DTG_TRY(require(managed, "managed"));
    DTG_TRY(require(out, "out"));
    if (managed->major != kMajor) {
      return unimplemented("a DLPack tensor of version %u.%u: this library knows version %u; ask its producer for that one", managed->major,
                           managed->minor, kMajor);
    }
    return take(managed, (managed->flags & kReadOnly) != 0, out);
  });
}

dtg_error* dtg_tensor_from_dlpack_unversioned(DLManagedTensor* managed, dtg_tensor** out) noexcept {
  return guard([&]() -> Status {
    DTG_TRY(require(managed, "managed"));
    DTG_TRY(require(out, "out"));
    return take(managed, false, out);
  });
}

dtg_error* dtg_tensor_to_dlpack(dtg_tensor* tensor, int32_t writable, DLManagedTensorVersioned** out) noexcept {
  return guard([&]() -> Status {
    DLManagedTensorVersioned* made = nullptr;
    DTG_TRY(hand_out(tensor, writable != 0, out ? &made : nullptr));
    made->major = kMajor;
    made->minor = kMinor;
    made->flags = writable ? 0 : kReadOnly;
    *out = made;
    return {};
  });
}

dtg_error* dtg_tensor_to_dlpack_unversioned(dtg_tensor* tensor, DLManagedTensor** out) noexcept {
  return guard([&] { return hand_out(tensor, true, out); });
}

}  // extern "C"
