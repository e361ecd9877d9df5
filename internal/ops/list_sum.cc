// Lists element by element: zeros like them, and their sum, which is what gradients of lists add up by. Called on the threads of a run.
#include <algorithm>
#include <map>
#include <utility>

#include "device/cpu/elementwise.h"
#include "ops/list.h"

namespace dtg::ops {

Result<Tensor> sum_of(const RunContext& c, const Tensor& a, const Tensor& b) {
  if (!(a.shape() == b.shape())) {
    return c.error("elements of shape %s and %s cannot be added", a.shape().text().c_str(), b.shape().text().c_str());
  }
  const cpu::ElementBlock* const block = cpu::find_block(cpu::ElementFn::add, a.dtype());
  if (!block) return c.error("no addition of %s", dtype_name(a.dtype()));
  DTG_ASSIGN(Tensor sum, copy_of(c, a.dtype(), a.shape(), a.data()));
  constexpr int64_t kBlock = 512;
  const int64_t size = dtype_size(a.dtype());
  for (int64_t from = 0; from < a.count(); from += kBlock) {
    char* const out = sum.as<char>() + from * size;
    const void* const operands[] = {out, b.as<char>() + from * size};
    block->block(operands, out, std::min(kBlock, a.count() - from));
  }
  return sum;
}

namespace {

// A walk through lists in lists, by recursion: a loop can make one as deep as it has rounds, and one that holds another twice, level by
// level, has more ways through it than anybody can go. So it has a limit, and what it has made of a list it makes once.
class ListWalk {
 public:
  explicit ListWalk(const RunContext& c) : c_(c) {}

  Result<Ref<TensorList>> zeros_like(const TensorList& list) {
    return once(list, list, [&]() -> Result<Ref<TensorList>> {
      std::vector<Item> items = list.items();
      for (Item& item : items) {
        if (item.list) {
          DTG_ASSIGN(item.list, zeros_like(*item.list));
        } else if (item.tensor.valid()) {
          DTG_ASSIGN(item.tensor, copy_of(c_, item.tensor.dtype(), item.tensor.shape(), nullptr));
        }
      }
      return make_ref<TensorList>(list.dtype(), list.element_shape(), std::move(items));
    });
  }

  Result<Ref<TensorList>> add(const TensorList& a, const TensorList& b) {
    if (a.dtype() != b.dtype() || a.size() != b.size()) {
      return c_.error("lists of %lld %s and of %lld %s cannot be added", static_cast<long long>(a.size()), dtype_name(a.dtype()),
                      static_cast<long long>(b.size()), dtype_name(b.dtype()));
    }
    return once(a, b, [&]() -> Result<Ref<TensorList>> {
      std::vector<Item> sum = a.items();
      const std::vector<Item> other = b.items();
      for (size_t i = 0; i < sum.size(); ++i) {
        DTG_ASSIGN(sum[i], add(sum[i], other[i]));
      }
      return make_ref<TensorList>(a.dtype(), a.element_shape(), std::move(sum));
    });
  }

 private:
  static constexpr int kDepthMost = 1000;

  // What was never set counts as zeros.
  Result<Item> add(const Item& a, const Item& b) {
    if (!b.is_set()) return a;
    if (!a.is_set()) return b;
    Item sum;
    if (a.list) {
      DTG_ASSIGN(sum.list, add(*a.list, *b.list));
    } else {
      DTG_ASSIGN(sum.tensor, sum_of(c_, a.tensor, b.tensor));
    }
    return sum;
  }

  template <class Make>
  Result<Ref<TensorList>> once(const TensorList& a, const TensorList& b, Make&& make) {
    const std::pair<const TensorList*, const TensorList*> key(&a, &b);
    if (const auto known = made_.find(key); known != made_.end()) return known->second;
    if (depth_ == kDepthMost) return c_.error("lists within lists are added up to %d levels deep", kDepthMost);
    ++depth_;
    auto made = make();
    --depth_;
    if (made.ok() && depth_ > 0) made_.emplace(key, made.value());
    return made;
  }

  const RunContext& c_;
  int depth_ = 0;
  std::map<std::pair<const TensorList*, const TensorList*>, Ref<TensorList>> made_;  // the operands hold the keys
};

Status zeros_like_list_run(RunContext& c) {
  DTG_ASSIGN(const TensorList* const list, list_at(c, 0));
  DTG_ASSIGN(Ref<TensorList> zeros, ListWalk(c).zeros_like(*list));
  give_list(c, 0, std::move(zeros));
  return {};
}

Status add_lists_run(RunContext& c) {
  const auto& a = c.args<ListArgs>();
  DTG_ASSIGN(const TensorList* const first, list_at(c, 0));
  Ref<TensorList> sum = Ref<TensorList>::share(const_cast<TensorList*>(first));
  for (int64_t i = 1; i < a.number; ++i) {
    DTG_ASSIGN(const TensorList* const next, list_at(c, static_cast<int>(i)));
    DTG_ASSIGN(sum, ListWalk(c).add(*sum, *next));
  }
  give_list(c, 0, std::move(sum));
  return {};
}

}  // namespace

Status zeros_like_list_prepare(PrepareContext& c) { return c.sync(zeros_like_list_run); }

Status add_lists_prepare(PrepareContext& c) {
  c.args<ListArgs>()->number = c.num_inputs();
  return c.sync(add_lists_run);
}

}  // namespace dtg::ops
