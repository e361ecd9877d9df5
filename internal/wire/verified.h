// Verified: foreign bytes that are known to be a whole FlatBuffers message of one type, with nothing pointing out
// of them. The only way in this rung to get at a root. Private to wire; one thread.
#pragma once

#include <flatbuffers/flatbuffers.h>

#include <cstring>
#include <memory>
#include <string_view>

#include "base/status.h"

namespace dtg::wire {

template <class T>
class Verified {
 public:
  // The bytes must live as long as this object, unless they are badly aligned: then it keeps a copy.
  static Result<Verified> make(std::string_view bytes, const char* identifier, size_t bytes_max, const char* what) {
    if (bytes.size() > bytes_max) {
      return resource_exhausted("read a %s of %zu bytes: at most %zu are accepted", what, bytes.size(), bytes_max);
    }
    if (bytes.size() < 8) return data_loss("read a %s: %zu bytes are too few to be one", what, bytes.size());
    Verified verified;
    const auto* data = reinterpret_cast<const uint8_t*>(bytes.data());
    if (reinterpret_cast<uintptr_t>(data) % 16 != 0) {
      verified.copy_.reset(new uint64_t[bytes.size() / 8 + 3]);
      auto* to = reinterpret_cast<uint8_t*>(verified.copy_.get());
      to += (16 - reinterpret_cast<uintptr_t>(to) % 16) % 16;
      std::memcpy(to, data, bytes.size());
      data = to;
    }
    flatbuffers::Verifier::Options options;
    options.max_depth = 8;
    // An honest table takes 8 bytes and more; a table that is pointed at again and again runs into this.
    options.max_tables = static_cast<flatbuffers::uoffset_t>(bytes.size() / 8 + 16);
    flatbuffers::Verifier verifier(data, bytes.size(), options);
    if (!verifier.VerifyBuffer<T>(identifier)) {
      return data_loss("read a %s: the %zu bytes are not one, or they are cut or damaged", what, bytes.size());
    }
    verified.data_ = data;
    verified.root_ = flatbuffers::GetRoot<T>(data);
    return verified;
  }

  const T* operator->() const { return root_; }
  const T& operator*() const { return *root_; }
  // For places of fields: the root without its type, and the first of the bytes it is read from.
  const flatbuffers::Table& table() const { return *reinterpret_cast<const flatbuffers::Table*>(root_); }
  const uint8_t* data() const { return data_; }

 private:
  std::unique_ptr<uint64_t[]> copy_;
  const uint8_t* data_ = nullptr;
  const T* root_ = nullptr;
};

inline std::string_view text_of(const flatbuffers::String* text) {
  return text ? std::string_view(text->c_str(), text->size()) : std::string_view();
}
// A number of a vector. Verified means that it is inside, not that it is aligned.
template <class T>
T element(const flatbuffers::Vector<T>* vector, uint32_t i) {
  T value;
  std::memcpy(&value, vector->Data() + size_t{i} * sizeof(T), sizeof(T));
  return flatbuffers::EndianScalar(value);
}
template <class V>
uint32_t size_of(const V* vector) {
  return vector ? vector->size() : 0;
}

}  // namespace dtg::wire
