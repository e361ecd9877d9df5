// Values in and out of one run.
#include "cluster/step_edges.h"

#include <algorithm>
#include <cstring>

#include "net/parting.h"

namespace dtg {
namespace {

// Smaller values travel as a copy, so that the run need not wait until the socket took them.
constexpr uint64_t kCopyBytes = 32 << 10;
// So long a run whose time is over hears from the others what they waited for.
constexpr int64_t kLastWordsNs = 40'000'000;

// What a part's end says beyond that its time was over; empty: nothing.
std::string_view words_of(std::string_view end, std::string_view cause) {
  for (const std::string_view known : {cause, std::string_view(kTimePassed)}) {
    const size_t at = end.find(known);
    if (at != std::string_view::npos && end.substr(at + known.size()).starts_with("; ")) return end.substr(at + known.size() + 2);
  }
  return {};
}

}  // namespace

Result<Ref<EdgeTable>> EdgeTable::make(const Graph& graph, const PeerOf& peer_of) {
  auto table = make_ref<EdgeTable>();
  for (NodeId id = 0; id < graph.node_count(); ++id) {
    const Node& node = graph.node(id);
    Row row;
    row.incoming = node.op->role() == Role::receive;
    if (!row.incoming && node.op->role() != Role::send) continue;
    const int64_t edge = node.attr<int64_t>("edge");
    if (edge < 0 || edge >= UINT32_MAX)
      return invalid_argument("edge number %lld is impossible", static_cast<long long>(edge)).at_node(node.name);
    row.edge = static_cast<uint32_t>(edge);
    DTG_ASSIGN(row.peer, peer_of(node.attr<std::string>("peer"), row.incoming));
    row.dtype = row.incoming ? node.attr<DType>("dtype") : node.attr<DType>("T");
    if (row.incoming) {
      const auto& shape = node.attr<PartialShape>("shape");
      row.dynamic = !shape.complete();
      if (!row.dynamic) {
        DTG_ASSIGN(row.shape, shape.to_shape());
      }
    }
    table->rows_.push_back(std::move(row));
  }
  uint64_t known = 0;
  for (const Row& row : table->rows_) {
    if (!row.incoming) continue;
    if (row.peer != 0) table->sources_.push_back(row.peer);
    else if (row.dynamic) table->needs_credit_ = true;
    else known += static_cast<uint64_t>(row.shape.count() * dtype_size(row.dtype));
  }
  table->needs_credit_ |= known > wire::kEagerBytes;
  std::ranges::sort(table->sources_);
  table->sources_.erase(std::unique(table->sources_.begin(), table->sources_.end()), table->sources_.end());
  std::ranges::sort(table->rows_, {}, &Row::edge);
  const auto twice = std::ranges::adjacent_find(table->rows_, {}, &Row::edge);
  if (twice != table->rows_.end()) return invalid_argument("edge %u has two ends in one part", twice->edge);
  return table;
}

int EdgeTable::find(uint32_t edge) const {
  const auto at = std::ranges::lower_bound(rows_, edge, {}, &Row::edge);
  return at != rows_.end() && at->edge == edge ? static_cast<int>(at - rows_.begin()) : -1;
}

// A value on its way out, in one or more frames; the instruction ends when all of them are off our hands.
class StepEdges::Sending final : public RefCounted {
 public:
  Sending(Ref<StepEdges> edges, Completion done) : edges_(std::move(edges)), done_(std::move(done)) {}
  ~Sending() override { done_.done({}); }

 private:
  const Ref<StepEdges> edges_;
  Completion done_;
};

StepEdges::StepEdges(Loop& loop, MemoryBudget& budget, Ref<EdgeTable> table, std::vector<Ref<Link>> peers, uint64_t sequence, bool is_home)
    : loop_(loop),
      budget_(budget),
      table_(std::move(table)),
      peers_(std::move(peers)),
      sequence_(sequence),
      is_home_(is_home),
      in_(table_->rows().size()),
      joins_(is_home ? peers_.size() : 0) {
  credits_.reserve(peers_.size());
  for (size_t i = 0; i < peers_.size(); ++i) {
    credits_.push_back(is_home ? CreditWindow(wire::kEagerBytes) : i == 0 ? CreditWindow(CreditWindow::kUnlimited) : CreditWindow::none());
  }
}

StepEdges::~StepEdges() { budget_.release(reserved_); }

Status StepEdges::enter() {
  for (const Ref<Link>& peer : peers_) DTG_TRY(peer->add_step(sequence_, Ref<StepEdges>::share(this)));
  return {};
}

void StepEdges::begin(Step& step) {
  Status cause;
  {
    const std::lock_guard lock(mutex_);
    step_ = &step;
    cause = cause_;
  }
  step.set_edges(this);
  if (!step.add(this)) return aborted(step.cause());
  if (!cause.ok()) return step.abort(cause);
  grant();
}

// The parts that a home has begun need no asking: its own memory was there before.
void StepEdges::grant() {
  if (is_home_) return;
  const wire::Credit everything{.sequence = sequence_};
  if (table_->needs_credit()) peers_[0]->send(everything);
  for (uint32_t source : table_->sources()) peers_[source]->send(everything);
}

Status StepEdges::start(const std::function<void()>& send) {
  const std::lock_guard lock(mutex_);
  if (aborted_) return cause_;
  started_ = true;
  send();
  return {};
}

void StepEdges::end() {
  Step* step = nullptr;
  std::vector<CreditWindow::Frames> unsent;  // they hold this
  {
    const std::lock_guard lock(mutex_);
    ended_ = true;
    unsent = drop_unsent();
    step = std::exchange(step_, nullptr);
  }
  // Somebody who aborts right now is still inside; neither the step nor this may go before he is out.
  const bool calm = !step || step->remove(this);
  {
    std::unique_lock lock(mutex_);
    calm_.wait(lock, [&] { return aborting_ == 0 && (calm || left_); });
  }
  for (const Ref<Link>& peer : peers_) peer->remove_step(sequence_, this);
}

void StepEdges::give_up(const Status& cause) {
  Step* step = nullptr;
  {
    const std::lock_guard lock(mutex_);
    if (cause_.ok()) cause_ = cause;
    step = ended_ ? nullptr : step_;
    aborting_ += step != nullptr;
  }
  // The step stays: end() waits while somebody is inside.
  if (!step) return;
  step->abort(cause);
  const std::lock_guard lock(mutex_);
  --aborting_;
  calm_.notify_all();
}

void StepEdges::aborted(const Status& cause) {
  {
    const std::lock_guard lock(mutex_);
    if (cause_.ok()) cause_ = cause;
    aborted_ = true;
  }
  // The loop may be in the middle of reading into the run's memory, so the loop ends what waits.
  post_parting(loop_, this, [](StepEdges& self) { self.settle(); });
  const std::lock_guard lock(mutex_);
  left_ = true;
  calm_.notify_all();
}

// One after the other, and without lists: the lack of memory may be why.
void StepEdges::settle() {
  for (const Ref<Link>& peer : peers_) peer->channel().let_go(this);
  Status cause;
  bool late = false;
  {
    const std::lock_guard lock(mutex_);
    cause = cause_;
    late = is_home_ && cause.code() == Code::deadline_exceeded;
  }
  late = tell_others(cause) && late && listen(kLastWordsNs);
  for (In& in : in_) {
    Completion waiting;
    {
      const std::lock_guard lock(mutex_);
      waiting = std::move(in.waiting);
    }
    if (waiting) waiting.done(cause);
  }
  for (Join& join : joins_) {
    Completion waiting;
    {
      const std::lock_guard lock(mutex_);
      if (!(started_ && !join.replied && late)) waiting = std::move(join.waiting);
    }
    if (waiting) waiting.done(cause);
  }
}

// Those that have said nothing yet hear that the step is over. True: there were some. Without memory to tell them, the end of their
// deadline or of the session does.
bool StepEdges::tell_others(const Status& cause) {
  bool any = false;
  for (uint32_t k = 0; k < joins_.size(); ++k) {
    try {
      std::unique_lock lock(mutex_);
      const bool is_untold = started_ && !joins_[k].replied;
      lock.unlock();
      any |= is_untold;
      if (is_untold && is_home_) peers_[k]->send(wire::Abort{sequence_, cause});
    } catch (const std::bad_alloc&) {
    }
  }
  for (CreditWindow& credit : credits_) {
    CreditWindow::Frames unsent;  // they hold this
    const std::lock_guard lock(mutex_);
    unsent = credit.drop();
  }
  return any;
}

// What the others still say of their lateness is waited for. False: there is no memory for that.
bool StepEdges::listen(int64_t time_ns) {
  try {
    listening_ = std::make_unique<AlarmCall>([this] { loop_.post([self = Ref<StepEdges>::share(this)] { self->stop_listening(); }); });
    self_ = Ref<StepEdges>::share(this);
    loop_.set(*listening_, loop_.clock().monotonic_ns() + time_ns);
    return true;
  } catch (const std::bad_alloc&) {
    listening_ = nullptr;
    self_ = {};
    return false;
  }
}

// Whoever has not said anything by now is not waited for.
void StepEdges::stop_listening() {
  if (!listening_) return;
  loop_.cancel(*listening_);
  listening_ = nullptr;
  const Ref<StepEdges> self = std::move(self_);
  std::vector<Completion> waiting;
  Status cause;
  {
    const std::lock_guard lock(mutex_);
    cause = cause_;
    std::string silent;
    const Link* first = nullptr;
    for (size_t k = 0; k < joins_.size(); ++k) {
      if (!joins_[k].replied) silent += (silent.empty() ? "" : ", ") + peers_[k]->peer();
      if (!joins_[k].replied && !first) first = peers_[k].get();
      if (joins_[k].waiting) waiting.push_back(std::move(joins_[k].waiting));
    }
    if (step_ && first)
      step_->explain_lateness(deadline_exceeded("nothing has come from %s", silent.c_str()).at_peer(first->peer()).at_task(first->home()));
  }
  for (Completion& each : waiting) each.done(cause);
}

void StepEdges::hear_last_words(const Status& status) {
  const std::lock_guard lock(mutex_);
  if (!step_ || status.code() != Code::deadline_exceeded) return;
  const std::string_view words = words_of(status.message(), cause_.message());
  if (!words.empty()) step_->explain_lateness(Status(Code::deadline_exceeded, std::string(words), status.origin()));
}

size_t StepEdges::peer_at(const Link& link) const {
  return static_cast<size_t>(std::ranges::find(peers_, &link, &Ref<Link>::get) - peers_.begin());
}

// With the lock held; what it answers is to be destroyed without.
std::vector<CreditWindow::Frames> StepEdges::drop_unsent() {
  std::vector<CreditWindow::Frames> unsent;
  for (CreditWindow& credit : credits_) unsent.push_back(credit.drop());
  return unsent;
}

void StepEdges::credited(const Link& link) {
  const size_t peer = peer_at(link);
  if (peer >= peers_.size()) return;
  {
    const std::lock_guard lock(mutex_);
    if (aborted_ || ended_) return;
    for (std::unique_ptr<OutFrame>& frame : credits_[peer].grant()) peers_[peer]->channel().queue(std::move(frame));
  }
  peers_[peer]->kick();
}

bool StepEdges::send_range(uint32_t peer, const wire::Data& data, const void* from, uint64_t bytes, const Ref<Sending>& sending) {
  auto frame = std::make_unique<OutFrame>();
  frame->head = wire::make_head(wire::Kind::data, 0, wire::encode(data), bytes);
  frame->data = true;
  const char* const payload = static_cast<const char*>(from) + data.offset;
  if (!sending) {
    if (bytes > 0) frame->head.append(payload, static_cast<size_t>(bytes));
  } else {
    frame->payload = payload;
    frame->payload_bytes = static_cast<size_t>(bytes);
    frame->owner = this;
    frame->taken = [sending] {};
  }
  if (!credits_[peer].admit(frame, bytes)) return false;
  peers_[peer]->channel().queue(std::move(frame));
  return true;
}

void StepEdges::put(uint32_t edge, DType dtype, const Shape& shape, const void* data, Completion done) {
  const int row = table_->find(edge);
  if (row < 0) return done.done(internal_error("send on edge %u: the part has no such edge", edge));
  const uint32_t peer = table_->rows()[static_cast<size_t>(row)].peer;
  // Under the lock, so that an abort either keeps this from being sent or finds all of it in the queue.
  std::unique_lock lock(mutex_);
  if (aborted_) {
    const Status cause = cause_;
    lock.unlock();
    return done.done(cause);
  }
  wire::Data range;
  range.sequence = sequence_;
  range.edge = edge;
  range.dtype = dtype;
  range.shape = shape;
  const auto total = static_cast<uint64_t>(shape.count() * dtype_size(dtype));
  bool sent = false;
  Ref<Sending> sending;
  // What has to wait is not copied: the run would end, and what waits with it.
  if (total > kCopyBytes || !credits_[peer].covers(total)) sending = make_ref<Sending>(Ref<StepEdges>::share(this), std::move(done));
  do {
    const uint64_t bytes = std::min(total - range.offset, wire::kChunkBytes);
    sent |= send_range(peer, range, data, bytes, sending);
    range.offset += bytes;
  } while (range.offset < total);
  lock.unlock();
  if (sent) peers_[peer]->kick();
  if (!sending) done.done({});
}

void StepEdges::take(uint32_t edge, void* into, Completion done) {
  const int row = table_->find(edge);
  if (row < 0) return done.done(internal_error("receive on edge %u: the part has no such edge", edge));
  std::unique_lock lock(mutex_);
  if (aborted_) {
    const Status cause = cause_;
    lock.unlock();
    return done.done(cause);
  }
  In& in = in_[static_cast<size_t>(row)];
  in.into = into;
  in.waiting = std::move(done);
  if (!in.complete) return;
  Status status = deliver(in, table_->rows()[static_cast<size_t>(row)]);
  Completion ready = std::move(in.waiting);
  lock.unlock();
  ready.done(std::move(status));
}

void StepEdges::join(uint32_t peer, Completion done) {
  std::unique_lock lock(mutex_);
  if (peer >= joins_.size()) {
    lock.unlock();
    return done.done(internal_error("wait for part %u: there is no such part", peer));
  }
  if (!aborted_ && !joins_[peer].replied) {
    joins_[peer].waiting = std::move(done);
    return;
  }
  const Status status = joins_[peer].replied ? joins_[peer].status : cause_;
  lock.unlock();
  done.done(status);
}

bool StepEdges::refused() const {
  const std::lock_guard lock(mutex_);
  return !joins_.empty() && std::ranges::all_of(joins_, &Join::refused);
}

bool StepEdges::any_refused() const {
  const std::lock_guard lock(mutex_);
  return std::ranges::any_of(joins_, &Join::refused);
}

void StepEdges::replied(const Link& link, const Status& status, bool refused) {
  const size_t peer = peer_at(link);
  Completion waiting;
  if (peer < joins_.size()) {
    const std::lock_guard lock(mutex_);
    if (joins_[peer].replied) {
      // It is lost after its part was done. Who still works for the run may wait for what came of that (a token for a gradient that is
      // gone with the task), so the run ends; if all are done, it no longer matters.
      if (std::ranges::all_of(joins_, &Join::replied)) return;
    } else {
      joins_[peer].replied = true;
      joins_[peer].refused = refused;
      joins_[peer].status = status;
      waiting = std::move(joins_[peer].waiting);
    }
  }
  // The first cause is the other task's own words, not that we waited for it. Where the run's time is over as well, it tells both.
  if (!status.ok()) {
    give_up(status);
    hear_last_words(status);
  }
  if (listening_) {
    const std::unique_lock lock(mutex_);
    if (std::ranges::all_of(joins_, &Join::replied)) loop_.post([self = Ref<StepEdges>::share(this)] { self->stop_listening(); });
  }
  if (waiting) waiting.done(status);
}

// What a range says about itself, against what the part expects on that edge.
Status StepEdges::check(const Link& link, const wire::Data& data, int* row) const {
  *row = table_->find(data.edge);
  if (*row < 0) return invalid_argument("a value came on edge %u, which this part does not have", data.edge);
  const EdgeTable::Row& expected = table_->rows()[static_cast<size_t>(*row)];
  if (peers_[expected.peer].get() != &link) {
    return permission_denied("edge %u: its value came from %s, but %s has to send it", data.edge, link.peer().c_str(),
                             peers_[expected.peer]->peer().c_str());
  }
  const bool same = expected.incoming && expected.dtype == data.dtype && (expected.dynamic || expected.shape == data.shape);
  if (same) return {};
  return invalid_argument("edge %u brought %s%s, but %s%s was expected", data.edge, dtype_name(data.dtype), data.shape.text().c_str(),
                          dtype_name(expected.dtype), expected.dynamic ? "" : expected.shape.text().c_str());
}

// With the lock held: memory for the value up to `end`, as much as it takes and not before it is there. A claim of many
// bytes costs nothing until they come.
Status StepEdges::make_room(In& in, uint64_t end, uint64_t total) {
  if (in.buffer && end <= in.room) return {};
  const uint64_t room = std::min(total, std::max(end, 2 * in.room));
  DTG_TRY(budget_.reserve(static_cast<int64_t>(room), "a value from another task"));
  reserved_ += static_cast<int64_t>(room);
  DTG_ASSIGN(Ref<Buffer> larger, Buffer::allocate(static_cast<int64_t>(room)));
  if (in.received > 0) std::memcpy(larger->data(), in.buffer->data(), in.received);
  budget_.release(static_cast<int64_t>(in.room));
  reserved_ -= static_cast<int64_t>(in.room);
  in.buffer = std::move(larger);
  in.room = room;
  return {};
}

Result<Channel::Landing> StepEdges::place(const Link& link, const wire::Data& data, uint64_t bytes) {
  int row = -1;
  DTG_TRY(check(link, data, &row));
  const std::lock_guard lock(mutex_);
  if (aborted_ || ended_) return Channel::Landing{};
  In& in = in_[static_cast<size_t>(row)];
  if (in.complete || data.offset != in.received || (in.begun && !(in.shape == data.shape))) {
    return invalid_argument("edge %u: byte %llu came where byte %llu was due", data.edge, static_cast<unsigned long long>(data.offset),
                            static_cast<unsigned long long>(in.received));
  }
  in.begun = true;
  in.shape = data.shape;
  if (!in.direct && in.into) {
    // The run has come to wait for it meanwhile: what there is moves over, and the rest goes straight there.
    if (in.received > 0) std::memcpy(in.into, in.buffer->data(), in.received);
    in.direct = true;
    in.buffer = nullptr;
  }
  if (!in.direct) DTG_TRY(make_room(in, data.offset + bytes, static_cast<uint64_t>(data.shape.count() * dtype_size(data.dtype))));
  char* const base = static_cast<char*>(in.direct ? in.into : in.buffer->data());
  return Channel::Landing{base + data.offset, this};
}

Channel::Landing StepEdges::landing(const Link& link, const wire::Data& data, uint64_t bytes) {
  const auto total = static_cast<uint64_t>(data.shape.count() * dtype_size(data.dtype));
  if (bytes > total - data.offset) {
    give_up(invalid_argument("edge %u: a range goes beyond the end of its value", data.edge));
    return {};
  }
  auto placed = place(link, data, bytes);
  if (placed.ok()) return placed.value();
  give_up(placed.status());
  return {};
}

// With the lock held: the complete value becomes what the instruction sees.
Status StepEdges::deliver(In& in, const EdgeTable::Row& row) {
  const int64_t bytes = in.shape.count() * dtype_size(row.dtype);
  const void* const data = in.direct ? in.into : in.buffer ? in.buffer->data() : nullptr;
  if (row.dtype == DType::boolean) {
    const auto* const flags = static_cast<const uint8_t*>(data);
    if (std::any_of(flags, flags + bytes, [](uint8_t flag) { return flag > 1; })) {
      return data_loss("edge %u: a bool came that is neither 0 nor 1", row.edge);
    }
  }
  if (in.into) {
    if (!in.direct && bytes > 0) std::memcpy(in.into, data, static_cast<size_t>(bytes));
    return {};
  }
  if (!in.buffer) {
    DTG_ASSIGN(in.buffer, Buffer::allocate(0));
  }
  RunContext context = in.waiting.context();
  context.set_output(0, in.buffer->data(), in.shape, in.buffer);
  return {};
}

void StepEdges::arrived(const Link& link, const wire::Data& data, uint64_t bytes) {
  int row = -1;
  if (Status status = check(link, data, &row); !status.ok()) return give_up(status);
  const auto total = static_cast<uint64_t>(data.shape.count() * dtype_size(data.dtype));
  std::unique_lock lock(mutex_);
  In& in = in_[static_cast<size_t>(row)];
  if (aborted_ || ended_ || in.complete) return;
  in.shape = data.shape;
  in.received += bytes;
  if (in.received < total) return;
  in.complete = true;
  if (!in.waiting) return;
  Status status = deliver(in, table_->rows()[static_cast<size_t>(row)]);
  Completion ready = std::move(in.waiting);
  lock.unlock();
  ready.done(std::move(status));
}

}  // namespace dtg
