// Streams, windows and credit.
#include "collective/exchange.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace dtg {
namespace {

constexpr uint64_t kWindowsBytes = uint64_t{2} << 20;  // of all streams that add

Status check_input(const CollectiveCall& call, int size) {
  const CallTerms& terms = call.terms;
  const std::string name = collective_name(terms.kind);
  if (terms.kind == Collective::barrier) return {};
  if (terms.kind == Collective::broadcast && terms.root != CallTerms::kAnyRoot && terms.root >= static_cast<uint32_t>(size))
    return invalid_argument("broadcast: the root is %u, ranks go from 0 to %d", terms.root, size - 1);
  if (terms.open) return {};
  if (!call.in.valid()) return invalid_argument("%s: it needs a tensor", name.c_str());
  if (dtype_size(terms.dtype) == 0) return invalid_argument("%s: elements of type %s cannot travel", name.c_str(), dtype_name(terms.dtype));
  const bool by_rows =
      terms.kind == Collective::all_gather || terms.kind == Collective::reduce_scatter || terms.kind == Collective::all_to_all;
  if (by_rows && terms.shape.rank() == 0)
    return invalid_argument("%s: a scalar has no rows; give a tensor with at least one dimension", name.c_str());
  if (terms.parts < 1 || terms.parts > CallTerms::kPartsMax || terms.parts != call.more.size() + 1)
    return invalid_argument("%s: %zu tensors of one rank; from 1 to %u are possible", name.c_str(), call.more.size() + 1,
                            CallTerms::kPartsMax);
  for (const Tensor& part : call.more) {
    if (part.dtype() != terms.dtype || !(part.shape() == terms.shape))
      return invalid_argument("%s: the parts of one rank differ: %s%s and %s", name.c_str(), dtype_name(terms.dtype),
                              terms.shape.text().c_str(), part.text().c_str());
  }
  return {};
}

}  // namespace

Result<Ref<Exchange>> Exchange::make(CollectiveCall call, int rank, int size, Carrier& carrier, MemoryBudget& budget) {
  DTG_TRY(check_input(call, size));
  const Collective kind = call.terms.kind;
  return kind == Collective::all_reduce || kind == Collective::reduce_scatter ? make_reducing(std::move(call), rank, size, carrier, budget)
                                                                              : make_moving(std::move(call), rank, size, carrier, budget);
}

Exchange::~Exchange() { budget_.release(reserved_); }

Exchange::In& Exchange::add_in(int rank, uint8_t lane, uint64_t total) {
  ins_.push_back(std::make_unique<In>());
  ins_.back()->rank = rank;
  ins_.back()->lane = lane;
  ins_.back()->total = total;
  return *ins_.back();
}

Exchange::Out& Exchange::add_out(int rank, uint8_t lane, const void* data, uint64_t total) {
  outs_.push_back(std::make_unique<Out>());
  outs_.back()->rank = rank;
  outs_.back()->lane = lane;
  outs_.back()->data = static_cast<const char*>(data);
  outs_.back()->total = total;
  return *outs_.back();
}

Exchange::In* Exchange::find_in(int rank, uint8_t lane) const {
  const auto at = std::ranges::find_if(ins_, [&](const auto& in) { return in->rank == rank && in->lane == lane; });
  return at == ins_.end() ? nullptr : at->get();
}

Exchange::Out* Exchange::find_out(int rank, uint8_t lane) const {
  const auto at = std::ranges::find_if(outs_, [&](const auto& out) { return out->rank == rank && out->lane == lane; });
  return at == outs_.end() ? nullptr : at->get();
}

void Exchange::place(In& in, void* direct) {
  in.direct = static_cast<char*>(direct);
  in.placed = true;
  if (in.early && in.arrived > 0) std::memcpy(direct, in.early->data(), in.arrived);
  if (begun_) grant(in);
}

// Of a stream whose size is known.
Status Exchange::place_window(In& in) {
  const uint64_t share = std::max(kWindowsBytes / static_cast<uint64_t>(std::max(size_ - 1, 1)) / kPieceBytes, uint64_t{2}) * kPieceBytes;
  in.window = in.total > share ? share : std::max((in.total + 63) / 64 * 64, uint64_t{64});
  DTG_TRY(reserve(in.window, "what other ranks send to be added"));
  DTG_ASSIGN(in.memory, Buffer::allocate(static_cast<int64_t>(in.window)));
  in.placed = true;
  return {};
}

// The other end hears of it when it is worth a word.
void Exchange::grant(In& in) {
  if (!in.placed || in.total == kUnknown || in.granted >= in.total) return;
  const uint64_t upto = in.direct ? in.total : std::min(in.total, in.consumed + in.window);
  if (upto <= in.granted || (upto < in.total && upto - in.granted < in.window / 2)) return;
  in.granted = upto;
  carrier_.grant(*this, in.rank, in.lane, upto);
}

void Exchange::consume(In& in, uint64_t upto) {
  in.consumed = upto;
  grant(in);
}

void Exchange::begin_streams() {
  begun_ = true;
  for (const auto& in : ins_) grant(*in);
  // By index: what is sent at once may add streams.
  for (size_t i = 0; i < outs_.size(); ++i) pump(*outs_[i]);
}

void Exchange::make_ready(Out& out, uint64_t upto) {
  out.ready = std::max(out.ready, upto);
  if (begun_) pump(out);
}

void Exchange::pump(Out& out) {
  while (!out.begun || out.put < std::min(out.ready, out.granted)) {
    const uint64_t limit = std::min({out.ready, out.granted, out.total, (out.put / kPieceBytes + 1) * kPieceBytes});
    const uint64_t bytes = limit - std::min(limit, out.put);
    const uint64_t from = std::exchange(out.put, out.put + bytes);
    out.begun = true;
    carrier_.send(*this, {out.rank, out.lane, from, out.total, out.data + from, bytes, out.rows});
  }
}

Result<void*> Exchange::landing(int rank, uint8_t lane, uint64_t offset, uint64_t bytes, uint64_t total) {
  if (broken_) return data_loss("a piece of %s came, which has failed", terms().text().c_str());
  auto to = find_place(rank, lane, offset, bytes, total);
  broken_ = !to.ok();
  return to;
}

Result<void*> Exchange::find_place(int rank, uint8_t lane, uint64_t offset, uint64_t bytes, uint64_t total) {
  In* const in = find_in(rank, lane);
  if (!in) return data_loss("a piece of %s came on lane %u, where none belongs", terms().text().c_str(), lane);
  if (!in->heard) {
    if (in->total != kUnknown && in->total != total) {
      return data_loss("rank %d sends %llu bytes for %s, %llu were expected", rank, static_cast<unsigned long long>(total),
                       terms().text().c_str(), static_cast<unsigned long long>(in->total));
    }
    in->heard = true;
    in->total = total;
    DTG_TRY(heard(*in));
  }
  if (total != in->total || offset != in->arrived || offset > total || bytes > total - offset || bytes > kPieceBytes ||
      offset % kPieceBytes + bytes > kPieceBytes || offset + bytes > in->granted)
    return data_loss("a piece of %s came that is out of place", terms().text().c_str());
  if (bytes == 0) return nullptr;
  if (in->placed) return in->place(offset);
  if (!in->early) {
    DTG_ASSIGN(in->early, Buffer::allocate(static_cast<int64_t>(std::min(total, kUnaskedBytes))));
  }
  in->lands_early = true;
  return static_cast<char*>(in->early->data()) + offset;
}

Status Exchange::arrived(int rank, uint8_t lane, uint64_t offset, uint64_t bytes, const void* lent) {
  In* const in = find_in(rank, lane);
  if (!in || offset != in->arrived) return data_loss("a piece of %s came that is out of place", terms().text().c_str());
  if (std::exchange(in->lands_early, false)) {
    char* const early = static_cast<char*>(in->early->data()) + offset;
    if (lent) std::memcpy(early, lent, bytes);
    // It may have got its place while the piece was on its way.
    if (in->placed) std::memcpy(in->direct + offset, early, bytes);
  } else if (lent && !in->direct && in->consumed == offset) {
    return arrived_lent(*in, offset, bytes, static_cast<const char*>(lent));
  } else if (lent) {
    std::memcpy(in->place(offset), lent, bytes);
  }
  in->arrived += bytes;
  return advance(*in);
}

// What is added at once need not be moved; the rest goes into the window.
Status Exchange::arrived_lent(In& in, uint64_t offset, uint64_t bytes, const char* lent) {
  in.lent = lent;
  in.lent_from = offset;
  in.arrived += bytes;
  const Status status = advance(in);
  in.lent = nullptr;
  if (in.consumed < in.arrived) std::memcpy(in.place(in.consumed), lent + (in.consumed - offset), in.arrived - in.consumed);
  return status;
}

Status Exchange::sent(int rank, uint8_t lane, uint64_t bytes) {
  Out* const out = find_out(rank, lane);
  if (!out) return {};
  out->sent += bytes;
  return left(*out);
}

Status Exchange::granted(int rank, uint8_t lane, uint64_t upto) {
  Out* const out = find_out(rank, lane);
  if (!out) return {};  // of a stream that begins when its size is known
  out->granted = std::max(out->granted, upto);
  if (begun_) pump(*out);
  return {};
}

bool Exchange::done() const {
  return begun_ && finished() && std::ranges::all_of(ins_, [](const auto& in) { return in->complete(); }) &&
         std::ranges::all_of(outs_, [](const auto& out) { return out->complete(); });
}

bool Exchange::needs(int rank) const {
  return std::ranges::any_of(ins_, [&](const auto& in) { return in->rank == rank && !in->complete(); }) ||
         std::ranges::any_of(outs_, [&](const auto& out) { return out->rank == rank && !out->complete(); });
}

std::vector<int> Exchange::missing(bool silent) const {
  std::vector<int> ranks;
  for (const auto& in : ins_) {
    if ((silent ? in->heard : in->complete()) || std::ranges::find(ranks, in->rank) != ranks.end()) continue;
    ranks.push_back(in->rank);
  }
  return ranks;
}

bool Exchange::hears_all() const {
  std::vector<int> ranks;
  for (const auto& in : ins_) {
    if (std::ranges::find(ranks, in->rank) == ranks.end()) ranks.push_back(in->rank);
  }
  return ranks.size() + 1 >= static_cast<size_t>(size_);
}

Status Exchange::reserve(uint64_t bytes, const char* what) {
  DTG_TRY(budget_.reserve(static_cast<int64_t>(bytes), what));
  reserved_ += static_cast<int64_t>(bytes);
  return {};
}

uint32_t Exchange::lanes() const {
  uint32_t lanes = terms().parts + 1;
  for (const auto& in : ins_) lanes = std::max<uint32_t>(lanes, in->lane + 1u);
  for (const auto& out : outs_) lanes = std::max<uint32_t>(lanes, out->lane + 1u);
  return lanes;
}

Status Exchange::make_out(DType dtype, const Shape& shape) {
  if (call_.out.valid()) {
    if (call_.out.dtype() == dtype && call_.out.shape() == shape) return {};
    return invalid_argument("%s: the result is %s%s, the tensor for it is %s", terms().text().c_str(), dtype_name(dtype),
                            shape.text().c_str(), call_.out.text().c_str());
  }
  DTG_ASSIGN(call_.out, Tensor::allocate(dtype, shape));
  return {};
}

}  // namespace dtg
