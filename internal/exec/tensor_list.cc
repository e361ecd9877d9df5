// The newest list has the elements. See tensor_list.h.
#include "exec/tensor_list.h"

#include <algorithm>
#include <mutex>

#include "base/size.h"
#include "exec/memory_pool.h"

namespace dtg {

TensorList::TensorList(DType dtype, PartialShape element_shape, std::vector<Item> items)
    : family_(make_ref<Family>(dtype, std::move(element_shape))), size_(static_cast<int64_t>(items.size())), items_(std::move(items)) {}

TensorList::TensorList(Ref<Family> family, int64_t size) : family_(std::move(family)), size_(size) {}

Ref<TensorList> TensorList::next(int64_t size, std::unique_lock<SpinLock>& lock) const {
  Family& family = *family_;
  lock = std::unique_lock(family.lock);
  if (family.spare) {
    auto made = Ref<TensorList>::adopt(std::exchange(family.spare, nullptr));
    made->revive();
    made->family_ = family_;
    made->size_ = size;
    return made;
  }
  lock.unlock();
  auto made = Ref<TensorList>::adopt(new TensorList(family_, size));
  lock.lock();
  return made;
}

// One after the other: of a long loop each list may be all that holds the next, or an element that is a list the one before. Those that
// are to go stand in a row by their newer_, so that it takes neither stack nor memory.
void TensorList::last_release() {
  Ref<TensorList> going;
  leave(going);
  while (going) {
    const Ref<TensorList> list = std::move(going);
    going = std::move(list->newer_);
    list->leave(going);
  }
  std::vector<Item>().swap(items_);  // with its memory
  old_ = {};
  difference_ = Difference::none;
  // The family goes with its last list, and the spare with it.
  const Ref<Family> family = std::move(family_);
  {
    const std::lock_guard lock(family->lock);
    if (!family->spare) {
      family->spare = this;
      return;
    }
  }
  delete this;
}

// All lists that this one holds, and nobody else, go into the row.
void TensorList::leave(Ref<TensorList>& going) {
  append(std::move(newer_), going);
  append(std::move(old_.list), going);
  for (Item& item : items_) append(std::move(item.list), going);
}

void TensorList::append(Ref<TensorList> list, Ref<TensorList>& going) {
  if (!list || list->ref_count() != 1) return;
  TensorList* last = list.get();
  while (last->newer_ && last->newer_->ref_count() == 1) last = last->newer_.get();
  last->newer_ = std::move(going);
  going = std::move(list);
}

std::vector<TensorList::Item>& TensorList::own(Ref<TensorList>& dropped) const {
  if (difference_ == Difference::none) return items_;
  // From here to the newest, and back.
  std::vector<const TensorList*> way;
  const TensorList* newest = this;
  for (; newest->difference_ != Difference::none; newest = newest->newer_.get()) way.push_back(newest);
  std::vector<Item> items = newest->items_;
  for (size_t k = way.size(); k-- > 0;) {
    const TensorList& list = *way[k];
    switch (list.difference_) {
      case Difference::item: items[static_cast<size_t>(list.index_)] = list.old_; break;
      case Difference::shorter: items.pop_back(); break;
      case Difference::longer: items.push_back(list.old_); break;
      case Difference::none: break;
    }
  }
  items_ = std::move(items);
  dropped = std::move(newer_);
  difference_ = Difference::none;
  old_ = {};
  return items_;
}

TensorList::Item TensorList::at(int64_t index) const {
  Ref<TensorList> dropped;
  const std::lock_guard lock(family_->lock);
  return own(dropped)[static_cast<size_t>(index)];
}

std::vector<TensorList::Item> TensorList::items() const {
  Ref<TensorList> dropped;
  const std::lock_guard lock(family_->lock);
  return own(dropped);
}

Ref<TensorList> TensorList::with(int64_t index, Item item) const {
  Ref<TensorList> dropped, made;  // to be let go of without the lock
  std::unique_lock<SpinLock> lock;
  made = next(size_, lock);
  own(dropped);
  made->items_ = std::move(items_);
  std::swap(made->items_[static_cast<size_t>(index)], item);
  difference_ = Difference::item;
  index_ = index;
  old_ = std::move(item);
  newer_ = made;
  return made;
}

Ref<TensorList> TensorList::pushed(Item item) const {
  Ref<TensorList> dropped, made;  // to be let go of without the lock
  std::unique_lock<SpinLock> lock;
  made = next(size_ + 1, lock);
  own(dropped).push_back(std::move(item));
  made->items_ = std::move(items_);
  difference_ = Difference::shorter;
  newer_ = made;
  return made;
}

Result<Tensor> TensorList::room(MemoryPool& memory, const Shape& shape) const {
  const Bytes bytes = Bytes::of(shape.count(), dtype_size(dtype()));
  if (bytes.is_overflow()) return resource_exhausted("an element of shape %s", shape.text().c_str());
  Family& family = *family_;
  ValueRoom::Piece piece;
  int64_t next = 0;
  {
    const std::lock_guard lock(family.lock);
    piece = family.room.take(bytes.value());
    next = family.room.next_block(bytes.value());
  }
  if (!piece.block) {
    DTG_TRY(memory.check_growth(next, "elements of lists"));
    DTG_ASSIGN(Ref<Buffer> block, memory.take_buffer(next));
    const std::lock_guard lock(family.lock);
    piece = family.room.take_from(block, bytes.value());
  }
  return Tensor::wrap(std::move(piece.block), piece.offset, dtype(), shape);
}

Ref<TensorList> TensorList::popped(Item* last) const {
  Ref<TensorList> dropped, made;  // to be let go of without the lock
  std::unique_lock<SpinLock> lock;
  made = next(size_ - 1, lock);
  own(dropped);
  *last = old_ = std::move(items_.back());
  items_.pop_back();
  made->items_ = std::move(items_);
  difference_ = Difference::longer;
  newer_ = made;
  return made;
}

// The lists that it holds, as far as those hold lists in turn.
void TensorList::add_held(std::vector<Ref<TensorList>>& to) const {
  constexpr size_t kLooked = 1024;
  const auto add = [&](const Ref<TensorList>& list) {
    if (list && list->dtype() == DType::variant) to.push_back(list);
  };
  const std::lock_guard lock(family_->lock);
  add(newer_);
  add(old_.list);
  for (size_t i = 0; i < std::min(items_.size(), kLooked); ++i) add(items_[i].list);
}

bool TensorList::leads_back(const Item& item) const {
  constexpr size_t kVisited = 256;
  if (!item.list || item.list->dtype() != DType::variant) return false;
  std::vector<Ref<TensorList>> found = {item.list};
  for (size_t i = 0; i < found.size() && i < kVisited; ++i) {
    const Ref<TensorList> list = found[i];
    if (list->family_ == family_) return true;
    std::vector<Ref<TensorList>> held;
    list->add_held(held);
    for (Ref<TensorList>& each : held) {
      if (std::ranges::find(found, each) == found.end()) found.push_back(std::move(each));
    }
  }
  return false;
}

Ref<TensorList> TensorList::apart() const { return make_ref<TensorList>(dtype(), element_shape(), items()); }

// Seldom done, so it is a list of its own.
Ref<TensorList> TensorList::resized(int64_t size) const {
  std::vector<Item> all = items();
  all.resize(static_cast<size_t>(size));
  return make_ref<TensorList>(dtype(), element_shape(), std::move(all));
}

}  // namespace dtg
