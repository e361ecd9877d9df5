// dtg/tensor.h: tensors from copied, borrowed or new memory, and reading them. Any thread.
#include "dtg/tensor.h"

#include "base/spin_lock.h"
#include "capi/guard.h"
#include "capi/objects.h"
#include "tensor/text.h"

namespace dtg::capi {

// A few spare objects under a spin word.
struct TensorPool {
  static constexpr int kSpare = 64;
  SpinLock word;
  TensorObject* first = nullptr;
  int count = 0;
  void lock() { word.lock(); }
  void unlock() { word.unlock(); }

  TensorObject* take() {
    lock();
    TensorObject* const object = first;
    if (object) {
      first = object->next_;
      --count;
    }
    unlock();
    return object;
  }
  bool give(TensorObject* object) {
    lock();
    const bool room = count < kSpare;
    if (room) {
      object->next_ = first;
      first = object;
      ++count;
    }
    unlock();
    return room;
  }
};

namespace {
TensorPool pool;
}  // namespace

TensorObject* TensorObject::make(Tensor tensor) {
  TensorObject* const spare = pool.take();
  if (!spare) return new TensorObject(std::move(tensor));
  spare->tensor = std::move(tensor);
  spare->revive();
  return spare;
}

void TensorObject::last_release() {
  tensor = Tensor();
  read_only = false;
  if (!pool.give(this)) delete this;
}

namespace {

Result<Shape> shape_of(const int64_t* dims, size_t rank) {
  DTG_TRY(require_array(dims, rank, "dims"));
  if (rank > kRankMax) return invalid_argument("a tensor of rank %zu: at most %d is supported", rank, kRankMax);
  return Shape::make({dims, rank});
}

Result<DType> dtype_of_number(dtg_dtype number) {
  if (!dtype_is_known(number)) return invalid_argument("%d is not an element type; use the DTG_ constants", number);
  return static_cast<DType>(number);
}

Status create(dtg_dtype number, const int64_t* dims, size_t rank, void* data, size_t nbytes, dtg_free_fn free_fn, void* user,
              dtg_tensor** out) {
  DTG_TRY(require(out, "out"));
  DTG_ASSIGN(const DType dtype, dtype_of_number(number));
  DTG_ASSIGN(const Shape shape, shape_of(dims, rank));
  const int64_t size = dtype_size(dtype);
  if (dtype == DType::string) return unimplemented("a tensor of strings from plain memory: use dtg_tensor_create_strings");
  if (size == 0) return unimplemented("a tensor of %s: elements of this type have no plain memory", dtype_name(dtype));
  if (shape.count() > INT64_MAX / size || static_cast<uint64_t>(shape.count() * size) != nbytes) {
    return invalid_argument("a tensor %s%s has %lld elements of %lld bytes, but nbytes is %zu", dtype_name(dtype), shape.text().c_str(),
                            static_cast<long long>(shape.count()), static_cast<long long>(size), nbytes);
  }
  if (nbytes > 0) DTG_TRY(require(data, "data"));
  if (free_fn) return lend({dtype, shape, data, free_fn, user, false}, out);
  DTG_ASSIGN(Tensor tensor, Tensor::allocate(dtype, shape));
  if (nbytes > 0) std::memcpy(tensor.data(), data, nbytes);
  return give(HandleType::tensor, Ref<TensorObject>::adopt(TensorObject::make(std::move(tensor))), out);
}

// Is `length` the way of saying "up to the NUL"?
constexpr size_t kToNul = SIZE_MAX;

Status create_strings(const int64_t* dims, size_t rank, const char* const* strings, const size_t* lengths, dtg_tensor** out) {
  DTG_TRY(require(out, "out"));
  DTG_ASSIGN(const Shape shape, shape_of(dims, rank));
  const auto count = static_cast<size_t>(shape.count());
  DTG_TRY(require_array(strings, count, "strings"));
  std::vector<Text> texts(count);
  for (size_t i = 0; i < count; ++i) {
    const size_t length = lengths ? lengths[i] : kToNul;
    if (!strings[i] && length != 0) return invalid_argument("a tensor of strings: strings[%zu] is NULL", i);
    if (length == kToNul) texts[i] = std::string_view(strings[i]);
    else texts[i] = std::string_view(strings[i] ? strings[i] : "", length);
  }
  DTG_ASSIGN(Tensor tensor, make_texts(shape, texts));
  return give(HandleType::tensor, Ref<TensorObject>::adopt(TensorObject::make(std::move(tensor))), out);
}

Status create_packed(const int64_t* dims, size_t rank, const void* bytes, size_t nbytes, const size_t* lengths, dtg_tensor** out) {
  DTG_TRY(require(out, "out"));
  DTG_ASSIGN(const Shape shape, shape_of(dims, rank));
  const auto count = static_cast<size_t>(shape.count());
  DTG_TRY(require_array(lengths, count, "lengths"));
  if (nbytes > 0) DTG_TRY(require(bytes, "bytes"));
  std::string_view rest(static_cast<const char*>(bytes), nbytes);
  std::vector<Text> texts(count);
  for (size_t i = 0; i < count; ++i) {
    if (lengths[i] > rest.size()) {
      return invalid_argument("a tensor of strings: string %zu has %zu bytes, but only %zu of the %zu are left", i, lengths[i], rest.size(),
                              nbytes);
    }
    texts[i] = rest.substr(0, lengths[i]);
    rest.remove_prefix(lengths[i]);
  }
  if (!rest.empty()) return invalid_argument("a tensor of strings: the lengths add up to %zu bytes less than there are", rest.size());
  DTG_ASSIGN(Tensor tensor, make_texts(shape, texts));
  return give(HandleType::tensor, Ref<TensorObject>::adopt(TensorObject::make(std::move(tensor))), out);
}

// What ends a loan; without a function while the tensor is being made, so that a failure does not call the host's.
struct Loan {
  dtg_free_fn free_fn;
  void* user;
};
void end_loan(void* data, size_t bytes, void* context) {
  const std::unique_ptr<Loan> loan(static_cast<Loan*>(context));
  if (loan->free_fn) loan->free_fn(data, bytes, loan->user);
}

}  // namespace

Status lend(const Lent& lent, dtg_tensor** out) {
  const int64_t size = dtype_size(lent.dtype);
  if (reinterpret_cast<uintptr_t>(lent.data) % static_cast<uintptr_t>(size > 8 ? 8 : size) != 0) {
    return invalid_argument("borrowed memory for %s must be aligned to its element size", dtype_name(lent.dtype));
  }
  if (lent.shape.count() > INT64_MAX / 2 / size) {
    return invalid_argument("a tensor %s%s: its size in bytes does not fit", dtype_name(lent.dtype), lent.shape.text().c_str());
  }
  auto owned = std::make_unique<Loan>(Loan{nullptr, lent.user});
  Ref<Buffer> buffer = Buffer::borrow(lent.data, lent.shape.count() * size, end_loan, owned.get());
  Loan* const loan = owned.release();  // the buffer's from here on
  DTG_ASSIGN(Tensor tensor, Tensor::wrap(std::move(buffer), 0, lent.dtype, lent.shape));
  auto object = Ref<TensorObject>::adopt(TensorObject::make(std::move(tensor)));
  object->read_only = lent.read_only;
  DTG_TRY(give(HandleType::tensor, std::move(object), out));
  loan->free_fn = lent.free_fn;
  return {};
}

}  // namespace dtg::capi

using namespace dtg;
using namespace dtg::capi;

extern "C" {

dtg_error* dtg_tensor_create(dtg_dtype dtype, const int64_t* dims, size_t rank, void* data, size_t nbytes, dtg_free_fn free_fn, void* user,
                             dtg_tensor** out) noexcept {
  return guard([&] { return create(dtype, dims, rank, data, nbytes, free_fn, user, out); });
}

dtg_error* dtg_tensor_allocate(dtg_dtype dtype, const int64_t* dims, size_t rank, dtg_tensor** out) noexcept {
  return guard([&]() -> Status {
    DTG_TRY(require(out, "out"));
    DTG_ASSIGN(const DType known, dtype_of_number(dtype));
    DTG_ASSIGN(const Shape shape, shape_of(dims, rank));
    DTG_ASSIGN(Tensor tensor, Tensor::allocate(known, shape));
    std::memset(tensor.data(), 0, static_cast<size_t>(tensor.bytes()));
    return give(HandleType::tensor, Ref<TensorObject>::adopt(TensorObject::make(std::move(tensor))), out);
  });
}

dtg_error* dtg_tensor_create_strings(const int64_t* dims, size_t rank, const char* const* strings, const size_t* lengths,
                                     dtg_tensor** out) noexcept {
  return guard([&] { return create_strings(dims, rank, strings, lengths, out); });
}

dtg_error* dtg_tensor_create_packed_strings(const int64_t* dims, size_t rank, const void* bytes, size_t nbytes, const size_t* lengths,
                                            dtg_tensor** out) noexcept {
  return guard([&] { return create_packed(dims, rank, bytes, nbytes, lengths, out); });
}

const char* dtg_tensor_string(const dtg_tensor* tensor, size_t i, size_t* nbytes) noexcept {
  if (nbytes) *nbytes = 0;
  const Held<TensorObject> held(tensor, HandleType::tensor);
  if (!held || held->tensor.dtype() != DType::string || i >= static_cast<size_t>(held->tensor.count())) return nullptr;
  const std::string_view text = texts_of(held->tensor)[i].view();
  if (nbytes) *nbytes = text.size();
  return text.data();
}

const void* dtg_tensor_data(const dtg_tensor* tensor, size_t* nbytes) noexcept {
  if (nbytes) *nbytes = 0;
  const Held<TensorObject> held(tensor, HandleType::tensor);
  if (!held) return nullptr;
  if (held->tensor.dtype() == DType::string) return nullptr;
  if (nbytes) *nbytes = static_cast<size_t>(held->tensor.bytes());
  return held->tensor.data();
}

void* dtg_tensor_mutable_data(dtg_tensor* tensor) noexcept {
  const Held<TensorObject> held(tensor, HandleType::tensor);
  return held && !held->read_only && held->tensor.dtype() != DType::string ? held->tensor.data() : nullptr;
}

dtg_dtype dtg_tensor_dtype(const dtg_tensor* tensor) noexcept {
  const Held<TensorObject> held(tensor, HandleType::tensor);
  return held ? static_cast<dtg_dtype>(held->tensor.dtype()) : 0;
}
size_t dtg_tensor_rank(const dtg_tensor* tensor) noexcept {
  const Held<TensorObject> held(tensor, HandleType::tensor);
  return held ? static_cast<size_t>(held->tensor.shape().rank()) : 0;
}
int64_t dtg_tensor_dim(const dtg_tensor* tensor, size_t i) noexcept {
  const Held<TensorObject> held(tensor, HandleType::tensor);
  if (!held || i >= static_cast<size_t>(held->tensor.shape().rank())) return -1;
  return held->tensor.shape().dim(static_cast<int>(i));
}
int64_t dtg_tensor_count(const dtg_tensor* tensor) noexcept {
  const Held<TensorObject> held(tensor, HandleType::tensor);
  return held ? held->tensor.count() : 0;
}
dtg_tensor* dtg_tensor_retain(dtg_tensor* tensor) noexcept { return retain_handle(tensor, HandleType::tensor); }
void dtg_tensor_release(dtg_tensor* tensor) noexcept { release_handle(tensor, HandleType::tensor); }

}  // extern "C"
