// TensorList: a list of tensors as a value of type variant. Immutable to whoever holds one: an op that changes a list makes another. It
// still costs no copy: the newest of the lists that come from one another has the elements, the older ones know in what they differ from
// the next newer one. So pushing, popping and setting take constant time as long as the newest is used, and using an older one
// copies the elements once. What a list stood in is used again by a later one of its family, so that a loop which pushes allocates nothing.
//
// Owner: the slots of a run and the variables of a loop, by count. Any thread; the lists of one family share a lock.
#pragma once

#include <memory>
#include <mutex>
#include <vector>

#include "base/ref.h"
#include "base/spin_lock.h"
#include "exec/value_room.h"
#include "tensor/tensor.h"

namespace dtg {

class MemoryPool;

class TensorList final : public RefCounted {
 public:
  // An element: a tensor, or another list (where dtype() is variant); neither where it was never set.
  struct Item {
    Tensor tensor;
    Ref<TensorList> list;
    bool is_set() const { return tensor.valid() || static_cast<bool>(list); }
  };

  TensorList(DType dtype, PartialShape element_shape, std::vector<Item> items);

  DType dtype() const { return family_->dtype; }
  // What every element's shape is within.
  const PartialShape& element_shape() const { return family_->element_shape; }
  int64_t size() const { return size_; }

  // What follows asks for indices below size().
  Item at(int64_t index) const;
  std::vector<Item> items() const;
  Ref<TensorList> with(int64_t index, Item item) const;
  Ref<TensorList> pushed(Item item) const;
  // With that element this list would come to hold itself: it knows the newer one, which has the element, which leads back. Then with()
  // and pushed() have to be made apart(), a copy of a family of its own. As far as a search of limited length finds.
  bool leads_back(const Item& item) const;
  Ref<TensorList> apart() const;
  // Memory for an element that is about to be pushed, from a block that the elements of a growing list share: in a loop there is one in
  // each round, and its memory would cost as much as what is done with it. Contents undefined; nothing for strings.
  Result<Tensor> room(MemoryPool& memory, const Shape& shape) const;
  // Without the last element, which is `last`.
  Ref<TensorList> popped(Item* last) const;
  Ref<TensorList> resized(int64_t size) const;

 private:
  // What sets this list apart from `newer_`.
  enum class Difference : uint8_t { none, item, shorter, longer };
  struct Family final : RefCounted {
    Family(DType of, PartialShape within) : dtype(of), element_shape(std::move(within)) {}
    ~Family() override { delete spare; }
    const DType dtype;
    const PartialShape element_shape;
    SpinLock lock;
    ValueRoom room;               // guarded; of the elements that were pushed last
    TensorList* spare = nullptr;  // guarded; of no family and without elements
  };
  TensorList(Ref<Family> family, int64_t size);
  ~TensorList() override = default;
  void last_release() override;
  // One of the family, still without elements, and the family's lock held.
  Ref<TensorList> next(int64_t size, std::unique_lock<SpinLock>& lock) const;
  void leave(Ref<TensorList>& going);
  void add_held(std::vector<Ref<TensorList>>& to) const;
  static void append(Ref<TensorList> list, Ref<TensorList>& going);
  // With the lock held: the elements are here. What is not needed any more goes to `dropped`, to be let go of without the lock.
  std::vector<Item>& own(Ref<TensorList>& dropped) const;

  Ref<Family> family_;
  int64_t size_;
  // Guarded by the family's lock.
  mutable std::vector<Item> items_;
  mutable Ref<TensorList> newer_;
  mutable Difference difference_ = Difference::none;
  mutable int64_t index_ = 0;
  mutable Item old_;
};

}  // namespace dtg
