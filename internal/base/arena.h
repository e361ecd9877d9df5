// Arena: memory that is given out in order and freed all at once, for things that live as long as their
// owner (a graph's names, a plan's argument blocks). Objects keep their addresses. Not thread-safe.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <memory>
#include <new>
#include <span>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace dtg {

class Arena {
 public:
  Arena() = default;
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;
  ~Arena() {
    for (auto it = owned_.rbegin(); it != owned_.rend(); ++it) it->destroy(it->object);
  }

  void* allocate(size_t bytes, size_t align) {
    size_t at = (used_ + align - 1) / align * align;
    if (at + bytes > size_) {
      grow(bytes + align);
      at = (reinterpret_cast<uintptr_t>(block_) + align - 1) / align * align - reinterpret_cast<uintptr_t>(block_);
    }
    used_ = at + bytes;
    return block_ + at;
  }

  // How much an owner expects to need in all, before it takes anything: the first block is of that size, and not of a page.
  void expect(size_t bytes) {
    if (blocks_.empty()) next_ = std::min(bytes, kLargest);
  }
  // What it has taken from the system.
  size_t bytes() const { return total_; }

  // An object that dies with the arena.
  template <class T, class... Args>
  T* make(Args&&... args) {
    T* object = new (allocate(sizeof(T), alignof(T))) T(std::forward<Args>(args)...);
    if constexpr (!std::is_trivially_destructible_v<T>) {
      owned_.push_back({object, [](void* p) { static_cast<T*>(p)->~T(); }});
    }
    return object;
  }

  // Followed by a NUL, because names go out to C.
  std::string_view copy(std::string_view text) {
    if (text.empty()) return {};
    char* at = static_cast<char*>(allocate(text.size() + 1, 1));
    std::memcpy(at, text.data(), text.size());
    at[text.size()] = '\0';
    return {at, text.size()};
  }

  template <class T>
  std::span<T> copy(std::span<const T> items) {
    static_assert(std::is_trivially_copyable_v<T>);
    if (items.empty()) return {};
    T* at = static_cast<T*>(allocate(items.size_bytes(), alignof(T)));
    std::memcpy(static_cast<void*>(at), items.data(), items.size_bytes());
    return {at, items.size()};
  }

 private:
  struct Owned {
    void* object;
    void (*destroy)(void*);
  };
  void grow(size_t need) {
    // Nothing changes before the memory is there: a failed growth leaves the arena as it was.
    const size_t size = next_ > need ? next_ : need;
    blocks_.emplace_back(new char[size]);
    block_ = blocks_.back().get();
    size_ = size;
    total_ += size;
    // A third of all at most is there in vain.
    next_ = std::clamp(total_ / 2, kLeast, kLargest);
    used_ = 0;
  }
  static constexpr size_t kLeast = 512, kLargest = size_t{1} << 18;
  std::vector<std::unique_ptr<char[]>> blocks_;
  std::vector<Owned> owned_;
  char* block_ = nullptr;
  size_t used_ = 0;
  size_t size_ = 0;
  size_t total_ = 0;
  size_t next_ = 4096;
};

}  // namespace dtg
