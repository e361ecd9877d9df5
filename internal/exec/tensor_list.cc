// The newest list has the elements. See tensor_list.h.
#include "exec/tensor_list.h"

#include <mutex>

#include "base/size.h"
#include "exec/memory_pool.h"

namespace dtg {
namespace {
constexpr int64_t kBlockBytes = int64_t{60} << 10;  // below what blocks of middling size begin with
constexpr int64_t kBlockGrowth = 4;
}  // namespace

TensorList::TensorList(DType dtype, PartialShape element_shape, std::vector<Item> items)
    : family_(make_ref<Family>(dtype, std::move(element_shape))), size_(static_cast<int64_t>(items.size())), items_(std::move(items)) {}

TensorList::TensorList(const TensorList& like, int64_t size) : family_(like.family_), size_(size) {}

// One after the other: of a long loop each list may be all that holds the next.
TensorList::~TensorList() {
  Ref<TensorList> next = std::move(newer_);
  while (next && next->ref_count() == 1) {
    Ref<TensorList> after = std::move(next->newer_);
    next = std::move(after);
  }
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
  auto made = Ref<TensorList>::adopt(new TensorList(*this, size_));
  Ref<TensorList> dropped;
  const std::lock_guard lock(family_->lock);
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
  auto made = Ref<TensorList>::adopt(new TensorList(*this, size_ + 1));
  Ref<TensorList> dropped;
  const std::lock_guard lock(family_->lock);
  own(dropped).push_back(std::move(item));
  made->items_ = std::move(items_);
  difference_ = Difference::shorter;
  newer_ = made;
  return made;
}

Result<Tensor> TensorList::room(MemoryPool& memory, const Shape& shape) const {
  const Bytes asked = Bytes::of(shape.count(), dtype_size(dtype()));
  if (asked.is_overflow()) return resource_exhausted("an element of shape %s", shape.text().c_str());
  const int64_t bytes = align_up(asked.value());
  Family& family = *family_;
  Ref<Buffer> block;
  int64_t at = 0, last = 0;
  {
    const std::lock_guard lock(family.lock);
    if (family.block) last = family.block->bytes();
    if (last - family.used >= bytes && last > 0) {
      block = family.block;
      at = std::exchange(family.used, family.used + bytes);
    }
  }
  if (block) return Tensor::wrap(std::move(block), at, dtype(), shape);
  // The first is as large as its element, the next ones four times as large as the one before: a short list holds little that is idle.
  DTG_ASSIGN(block, memory.take_buffer(std::max(bytes, std::min(kBlockBytes, kBlockGrowth * last))));
  Tensor tensor = Tensor::over(block, dtype(), shape);
  const std::lock_guard lock(family.lock);
  std::swap(family.block, block);  // to be let go of without the lock
  family.used = bytes;
  return tensor;
}

Ref<TensorList> TensorList::popped(Item* last) const {
  auto made = Ref<TensorList>::adopt(new TensorList(*this, size_ - 1));
  Ref<TensorList> dropped;
  const std::lock_guard lock(family_->lock);
  own(dropped);
  *last = old_ = std::move(items_.back());
  items_.pop_back();
  made->items_ = std::move(items_);
  difference_ = Difference::longer;
  newer_ = made;
  return made;
}

// Seldom done, so it is a list of its own.
Ref<TensorList> TensorList::resized(int64_t size) const {
  std::vector<Item> all = items();
  all.resize(static_cast<size_t>(size));
  return make_ref<TensorList>(dtype(), element_shape(), std::move(all));
}

}  // namespace dtg
