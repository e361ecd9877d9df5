// Who meets whom, and what the last to come does for all of them.
#include "collective/rounds.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace dtg {
namespace {

constexpr int64_t kShardBytes = int64_t{64} << 10;

using Parts = std::vector<Rounds::Part*>;

const char* bytes_of(const Tensor& tensor) { return static_cast<const char*>(tensor.data()); }
char* room_of(const Tensor& tensor) { return static_cast<char*>(tensor.data()); }

void copy(void* to, const void* from, int64_t bytes) {
  if (bytes > 0) std::memcpy(to, from, static_cast<size_t>(bytes));
}

Status make_out(Rounds::Part& part, DType dtype, const Shape& shape) {
  Tensor& out = part.call.out;
  if (!out.valid()) {
    DTG_ASSIGN(out, Tensor::allocate(dtype, shape));
    return {};
  }
  if (out.dtype() == dtype && out.shape() == shape) return {};
  return invalid_argument("%s: the result for %s is %s%s, and %s is what it was planned for", part.call.terms.text().c_str(),
                          part.who.c_str(), dtype_name(dtype), shape.text().c_str(), out.text().c_str());
}

Result<Shape> with_rows(const Shape& shape, int64_t rows) {
  PartialShape changed(shape);
  changed.set_dim(0, rows);
  return changed.to_shape();
}

// Shards are cut by bytes, so that what is added is in the cache when it is copied to the others.
Status all_reduce(const Parts& parts) {
  const CallTerms& terms = parts[0]->call.terms;
  DTG_ASSIGN(const Combine combine, Combine::make(terms.reduction, terms.dtype, static_cast<int>(parts.size())));
  for (Rounds::Part* part : parts) DTG_TRY(make_out(*part, terms.dtype, terms.shape));
  const int64_t count = terms.shape.count(), each = kShardBytes / combine.element_bytes();
  parts[0]->pool->parallel_for((count + each - 1) / each, [&](int64_t shard) {
    const int64_t from = shard * each, now = std::min(each, count - from), at = from * combine.element_bytes();
    std::vector<const void*> in;
    for (const Rounds::Part* part : parts) in.push_back(bytes_of(part->call.in) + at);
    char* const sum = room_of(parts[0]->call.out) + at;
    combine.fold(in, sum, now);
    combine.finish(sum, now);
    for (size_t i = 1; i < parts.size(); ++i) copy(room_of(parts[i]->call.out) + at, sum, now * combine.element_bytes());
  });
  return {};
}

Status reduce_scatter(const Parts& parts) {
  const CallTerms& terms = parts[0]->call.terms;
  const auto size = static_cast<int64_t>(parts.size());
  DTG_ASSIGN(const Combine combine, Combine::make(terms.reduction, terms.dtype, static_cast<int>(size)));
  const int64_t rows = terms.shape.rank() > 0 ? terms.shape.dim(0) : 0;
  if (terms.shape.rank() == 0 || rows % size != 0)
    return invalid_argument("%s: its rows cannot be cut into %lld equal shares", terms.text().c_str(), static_cast<long long>(size));
  DTG_ASSIGN(const Shape share, with_rows(terms.shape, rows / size));
  for (Rounds::Part* part : parts) DTG_TRY(make_out(*part, terms.dtype, share));
  const int64_t bytes = share.count() * combine.element_bytes();
  parts[0]->pool->parallel_for(size, [&](int64_t rank) {
    std::vector<const void*> in;
    for (const Rounds::Part* part : parts) in.push_back(bytes_of(part->call.in) + rank * bytes);
    char* const sum = room_of(parts[static_cast<size_t>(rank)]->call.out);
    combine.fold(in, sum, share.count());
    combine.finish(sum, share.count());
  });
  return {};
}

Status all_gather(const Parts& parts) {
  const CallTerms& terms = parts[0]->call.terms;
  if (terms.shape.rank() == 0) return invalid_argument("%s: a scalar has no rows", terms.text().c_str());
  int64_t rows = 0;
  for (const Rounds::Part* part : parts) {
    if (__builtin_add_overflow(rows, part->call.in.shape().dim(0), &rows))
      return invalid_argument("%s: the devices bring more rows together than a tensor can have", terms.text().c_str());
  }
  DTG_ASSIGN(const Shape whole, with_rows(terms.shape, rows));
  for (Rounds::Part* part : parts) DTG_TRY(make_out(*part, terms.dtype, whole));
  parts[0]->pool->parallel_for(static_cast<int64_t>(parts.size()), [&](int64_t rank) {
    char* to = room_of(parts[static_cast<size_t>(rank)]->call.out);
    for (const Rounds::Part* part : parts) {
      copy(to, part->call.in.data(), part->call.in.bytes());
      to += part->call.in.bytes();
    }
  });
  return {};
}

Status all_to_all(const Parts& parts) {
  const auto size = static_cast<int64_t>(parts.size());
  for (Rounds::Part* part : parts) {
    const CallTerms& terms = part->call.terms;
    if (!(terms.shape == parts[0]->call.terms.shape) || terms.shape.rank() == 0 || terms.shape.dim(0) % size != 0)
      return invalid_argument("%s of %s: all members need the same number of rows, a multiple of %lld", terms.text().c_str(),
                              part->who.c_str(), static_cast<long long>(size));
    DTG_TRY(make_out(*part, terms.dtype, terms.shape));
  }
  const int64_t share = parts[0]->call.in.bytes() / size;
  for (int64_t to = 0; to < size; ++to) {
    for (int64_t from = 0; from < size; ++from) {
      copy(room_of(parts[static_cast<size_t>(to)]->call.out) + from * share,
           bytes_of(parts[static_cast<size_t>(from)]->call.in) + to * share, share);
    }
  }
  return {};
}

Status broadcast(const Parts& parts) {
  const Rounds::Part* root = nullptr;
  for (const Rounds::Part* part : parts) {
    if (part->call.terms.open) continue;
    if (root) return invalid_argument("a broadcast has two senders: %s and %s", root->who.c_str(), part->who.c_str());
    root = part;
  }
  if (!root) return invalid_argument("a broadcast has no sender: %s and the others all receive", parts[0]->who.c_str());
  for (Rounds::Part* part : parts) {
    DTG_TRY(make_out(*part, root->call.in.dtype(), root->call.in.shape()));
    copy(part->call.out.data(), root->call.in.data(), root->call.in.bytes());
  }
  return {};
}

Status work(const Parts& parts) {
  for (const Rounds::Part* part : parts) {
    if (part->call.terms.agrees(parts[0]->call.terms)) continue;
    return invalid_argument("instance %d of group %d is not the same on all devices: %s called %s, %s called %s",
                            static_cast<int>(part->instance), static_cast<int>(part->group), parts[0]->who.c_str(),
                            parts[0]->call.terms.text().c_str(), part->who.c_str(), part->call.terms.text().c_str());
  }
  switch (parts[0]->call.terms.kind) {
    case Collective::all_reduce: return all_reduce(parts);
    case Collective::all_gather: return all_gather(parts);
    case Collective::reduce_scatter: return reduce_scatter(parts);
    case Collective::broadcast: return broadcast(parts);
    case Collective::all_to_all: return all_to_all(parts);
    case Collective::barrier: return {};
  }
  return internal_error("a collective that nobody knows");
}

}  // namespace

class Rounds::Round final : public RefCounted {
 public:
  explicit Round(Key k) : key(k) {}
  // All are there, and none goes before this was done for all: whoever is told first does it.
  const Status& settle() {
    if (!std::exchange(settled_, true)) status_ = work(parts);
    return status_;
  }
  const Key key;
  Parts parts;  // by rank

 private:
  bool settled_ = false;
  Status status_;
};

Rounds::Rounds() : WaitingResource("devices") {}
Rounds::~Rounds() = default;
Rounds::Part::Part() = default;
Rounds::Part::~Part() = default;

void Rounds::Part::finished(Status status) {
  if (status.ok() && round_) status = round_->settle();
  round_ = nullptr;
  ended(std::move(status));
}

void Rounds::enter(PendingOp& pending, PendingOpList& ended) {
  Part& part = static_cast<Part&>(pending);
  const Key key{part.run, part.group, part.instance};
  Ref<Round>& round = open_[key];
  if (!round) round = make_ref<Round>(key);
  Parts& parts = round->parts;
  const auto at = std::ranges::lower_bound(parts, part.rank, {}, &Part::rank);
  if (at != parts.end() && (*at)->rank == part.rank) {
    return end(part, ended,
               invalid_argument("instance %d of group %d has two members on one device: %s and %s", static_cast<int>(part.instance),
                                static_cast<int>(part.group), (*at)->who.c_str(), part.who.c_str()));
  }
  if (!parts.empty() && parts[0]->size != part.size) {
    return end(part, ended,
               invalid_argument("instance %d of group %d: group_size is %d for %s, but %d for %s; all members say the same",
                                static_cast<int>(part.instance), static_cast<int>(part.group), part.size, part.who.c_str(), parts[0]->size,
                                parts[0]->who.c_str()));
  }
  part.round_ = round;
  parts.insert(at, &part);
  wait(part, waiting_);
  if (parts.size() < static_cast<size_t>(part.size)) return;
  const Ref<Round> full = std::move(round);
  open_.erase(key);
  for (Part* each : full->parts) end(*each, waiting_, ended, {});
}

void Rounds::withdraw(PendingOp& pending, PendingOpList& ended) {
  Part& part = static_cast<Part&>(pending);
  const Ref<Round> round = std::move(part.round_);
  std::erase(round->parts, &part);
  if (round->parts.empty()) open_.erase(round->key);
  end(part, waiting_, ended, cancelled("a collective was given up"));
}

void Rounds::destroy(const Status& reason) {
  PendingOpList ended;
  {
    const std::lock_guard lock(mutex_);
    open_.clear();
    while (PendingOp* const pending = waiting_.first()) {
      static_cast<Part*>(pending)->round_ = nullptr;
      end(*pending, waiting_, ended, reason);
    }
  }
  settle(ended);
}

}  // namespace dtg
