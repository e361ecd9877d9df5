// Copies tensors of several elements into one, row by row where shapes differ; see stack.h.
#include "data/stack.h"

#include <algorithm>
#include <cmath>

namespace dtg {
namespace {

// The bytes of `padding` as an element of that type; false where it has no such.
template <class T>
bool to_bytes(double padding, char* bytes) {
  if constexpr (std::is_integral_v<T>) {
    const double low = static_cast<double>(std::numeric_limits<T>::min()), high = std::ldexp(1.0, std::numeric_limits<T>::digits);
    if (!(padding >= low && padding < high) || padding != std::trunc(padding)) return false;
  }
  const T value = static_cast<T>(padding);
  std::memcpy(bytes, &value, sizeof value);
  return true;
}

bool padding_bytes(DType dtype, double padding, char (&bytes)[16]) {
  std::fill(std::begin(bytes), std::end(bytes), '\0');
  switch (dtype) {
    case DType::f32: return to_bytes<float>(padding, bytes);
    case DType::f64: return to_bytes<double>(padding, bytes);
    case DType::i8: return to_bytes<int8_t>(padding, bytes);
    case DType::i16: return to_bytes<int16_t>(padding, bytes);
    case DType::i32: return to_bytes<int32_t>(padding, bytes);
    case DType::i64: return to_bytes<int64_t>(padding, bytes);
    case DType::u8: return to_bytes<uint8_t>(padding, bytes);
    case DType::u16: return to_bytes<uint16_t>(padding, bytes);
    case DType::u32: return to_bytes<uint32_t>(padding, bytes);
    case DType::u64: return to_bytes<uint64_t>(padding, bytes);
    case DType::boolean: bytes[0] = padding != 0; return padding == 0 || padding == 1;
    default: return padding == 0 && dtype_size(dtype) > 0;
  }
}

// `from` lies in the corner of a block of `dims`, whose rest is padding already.
void copy_into_corner(const Tensor& from, char* to, std::span<const int64_t> dims) {
  const int rank = from.shape().rank();
  const auto size = static_cast<size_t>(dtype_size(from.dtype()));
  if (from.count() == 0) return;
  const int64_t row = rank == 0 ? 1 : from.shape().dim(rank - 1);
  std::vector<int64_t> at(static_cast<size_t>(std::max(rank, 1)));
  for (int64_t done = 0; done < from.count(); done += row) {
    int64_t place = 0;
    for (int d = 0; d < rank; ++d) place = place * dims[static_cast<size_t>(d)] + (d + 1 < rank ? at[static_cast<size_t>(d)] : 0);
    std::memcpy(to + static_cast<size_t>(place) * size, from.as<char>() + static_cast<size_t>(done) * size,
                static_cast<size_t>(row) * size);
    for (int d = rank - 2; d >= 0; --d) {
      if (++at[static_cast<size_t>(d)] < from.shape().dim(d)) break;
      at[static_cast<size_t>(d)] = 0;
    }
  }
}

Result<Tensor> stack_component(std::span<const Element> elements, size_t i, std::optional<double> padding, const char* what) {
  const Tensor& first = elements[0][i];
  std::vector<int64_t> dims(first.shape().dims().begin(), first.shape().dims().end());
  for (size_t e = 1; e < elements.size(); ++e) {
    const Tensor& here = elements[e][i];
    const bool alike = here.dtype() == first.dtype() && here.shape().rank() == first.shape().rank();
    if (!alike || (!padding && here.shape() != first.shape())) {
      return invalid_argument("%s: component %zu of element %zu is %s, that of the first is %s; %s", what, i, e, here.text().c_str(),
                              first.text().c_str(), padding ? "they must be of one type and rank" : "they must be alike");
    }
    for (size_t d = 0; d < dims.size(); ++d) dims[d] = std::max(dims[d], here.shape().dim(static_cast<int>(d)));
  }
  std::vector<int64_t> all{static_cast<int64_t>(elements.size())};
  all.insert(all.end(), dims.begin(), dims.end());
  DTG_ASSIGN(const Shape shape, Shape::make(all));
  DTG_ASSIGN(Tensor made, Tensor::allocate(first.dtype(), shape));
  const auto size = static_cast<size_t>(dtype_size(first.dtype()));
  const size_t each = static_cast<size_t>(made.bytes()) / elements.size();
  char bytes[16];
  if (padding && !padding_bytes(first.dtype(), *padding, bytes)) {
    return invalid_argument("%s: component %zu is %s, which cannot be padded with %g", what, i, first.text().c_str(), *padding);
  }
  for (size_t e = 0; e < elements.size(); ++e) {
    const Tensor& here = elements[e][i];
    char* const to = made.as<char>() + e * each;
    if (static_cast<size_t>(here.bytes()) == each) {
      if (each != 0) std::memcpy(to, here.data(), each);
      continue;
    }
    for (size_t at = 0; at < each; at += size) std::memcpy(to + at, bytes, size);
    copy_into_corner(here, to, dims);
  }
  return made;
}

}  // namespace

Result<Element> stack_elements(std::span<const Element> elements, std::optional<double> padding, const char* what) {
  Element stacked;
  for (size_t e = 1; e < elements.size(); ++e) {
    if (elements[e].size() == elements[0].size()) continue;
    return invalid_argument("%s: element %zu has %zu components, the first has %zu", what, e, elements[e].size(), elements[0].size());
  }
  for (size_t i = 0; i < elements[0].size(); ++i) {
    DTG_ASSIGN(Tensor made, stack_component(elements, i, padding, what));
    stacked.push_back(std::move(made));
  }
  return stacked;
}

Status check_padding(std::span<const ComponentSpec> spec, double padding, const char* what) {
  char bytes[16];
  for (size_t i = 0; i < spec.size(); ++i) {
    if (padding_bytes(spec[i].dtype, padding, bytes)) continue;
    return invalid_argument("%s: component %zu is %s, which cannot be padded with %g", what, i, dtype_name(spec[i].dtype), padding);
  }
  return {};
}

Result<std::vector<ComponentSpec>> stacked_spec(std::span<const ComponentSpec> spec, int64_t size, const char* what) {
  std::vector<ComponentSpec> stacked;
  for (const ComponentSpec& component : spec) {
    if (component.shape.has_rank() && component.shape.rank() == kRankMax) {
      return invalid_argument("%s: its elements have rank %d already, the highest there is", what, kRankMax);
    }
    ComponentSpec& mine = stacked.emplace_back();
    mine.dtype = component.dtype;
    if (!component.shape.has_rank()) continue;
    mine.shape = PartialShape::of_rank(component.shape.rank() + 1);
    mine.shape.set_dim(0, size);
    for (int i = 0; i < component.shape.rank(); ++i) mine.shape.set_dim(i + 1, component.shape.dim(i));
  }
  return stacked;
}

int64_t batches_of(int64_t elements, int64_t size, bool drop_remainder) {
  if (elements < 0) return elements;
  return elements / size + (!drop_remainder && elements % size != 0 ? 1 : 0);
}

}  // namespace dtg
