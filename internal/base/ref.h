// Ref: shared ownership by an intrusive count, for the few things that truly have many owners (buffers,
// plans, prepared parts). One word, no control block. Any thread may copy or drop its own Ref.
#pragma once

#include <atomic>
#include <cstdint>
#include <utility>

namespace dtg {

class RefCounted {
 public:
  RefCounted() = default;
  RefCounted(const RefCounted&) = delete;
  RefCounted& operator=(const RefCounted&) = delete;
  virtual ~RefCounted() = default;

  void retain() const { refs_.fetch_add(1, std::memory_order_relaxed); }
  // Where nobody else has one, nobody can come by one meanwhile, so the count needs no change.
  void release() const {
    if (refs_.load(std::memory_order_acquire) == 1 || refs_.fetch_sub(1, std::memory_order_acq_rel) == 1)
      const_cast<RefCounted*>(this)->last_release();
  }
  int64_t ref_count() const { return refs_.load(std::memory_order_acquire); }

 protected:
  // What happens when the last owner lets go; recycled objects override it.
  virtual void last_release() { delete this; }
  // For recycled objects: starts a new life with one owner.
  void revive() { refs_.store(1, std::memory_order_relaxed); }

 private:
  mutable std::atomic<int64_t> refs_{1};
};

template <class T>
class Ref {
 public:
  Ref() = default;
  Ref(std::nullptr_t) {}  // NOLINT: implicit on purpose
  // Takes over the reference that a fresh object is born with.
  static Ref adopt(T* object) {
    Ref ref;
    ref.object_ = object;
    return ref;
  }
  static Ref share(T* object) {
    if (object) object->retain();
    return adopt(object);
  }
  Ref(const Ref& other) : object_(other.object_) {
    if (object_) object_->retain();
  }
  template <class U>
  Ref(const Ref<U>& other) : object_(other.get()) {  // NOLINT: implicit upcast
    if (object_) object_->retain();
  }
  Ref(Ref&& other) noexcept : object_(std::exchange(other.object_, nullptr)) {}
  template <class U>
  Ref(Ref<U>&& other) noexcept : object_(other.leak()) {}  // NOLINT: implicit upcast
  Ref& operator=(Ref other) noexcept {
    std::swap(object_, other.object_);
    return *this;
  }
  ~Ref() {
    if (object_) object_->release();
  }

  T* get() const { return object_; }
  T* operator->() const { return object_; }
  T& operator*() const { return *object_; }
  explicit operator bool() const { return object_ != nullptr; }
  bool operator==(const Ref& other) const { return object_ == other.object_; }
  // Gives the reference away without dropping it.
  T* leak() { return std::exchange(object_, nullptr); }

 private:
  T* object_ = nullptr;
};

template <class T, class... Args>
Ref<T> make_ref(Args&&... args) {
  return Ref<T>::adopt(new T(std::forward<Args>(args)...));
}

}  // namespace dtg
