// Streams, channels over two of them, and the loop of a process.
#include "net.h"

#include <algorithm>
#include <cstring>
#include <deque>

namespace dtg::sim {

// Bytes from one process to another, at most so many under way.
class Stream final : public std::enable_shared_from_this<Stream> {
 public:
  Stream(Net& net, Process& from, Process& to) : net_(net), from_(&from), to_(&to), from_name_(from.name()), to_name_(to.name()) {}

  size_t write(const iovec* from, int count) {
    std::string bytes;
    for (int i = 0; i < count; ++i) {
      const size_t room = kRoom - std::min(kRoom, under_way_ + bytes.size());
      bytes.append(static_cast<const char*>(from[i].iov_base), std::min(room, from[i].iov_len));
    }
    if (bytes.empty()) return 0;
    const size_t taken = bytes.size();
    under_way_ += taken;
    send(std::move(bytes));
    return taken;
  }
  size_t read(const iovec* into, int count) {
    size_t given = 0;
    for (int i = 0; i < count; ++i) {
      const size_t now = std::min(into[i].iov_len, arrived_.size() - given);
      if (now > 0) std::memcpy(into[i].iov_base, arrived_.data() + given, now);
      given += now;
    }
    arrived_.erase(0, given);
    if (given > 0 && from_) {
      under_way_ -= given;
      tell(from_, &Stream::writable);
    }
    return given;
  }
  // The writer has nothing more to say.
  void finish() {
    if (!finished_) send({});
    finished_ = true;
  }
  // Both ends will find it broken, whoever is still there; `told`: soon, otherwise when they use it.
  void break_off(bool told) {
    broken_ = true;
    if (!told) return;
    tell(to_, &Stream::readable);
    tell(from_, &Stream::writable);
  }
  void forget(const Process& process) {
    if (from_ == &process) from_ = nullptr;
    if (to_ == &process) to_ = nullptr;
  }
  bool is_broken() const { return broken_; }
  bool is_over() const { return over_ && arrived_.empty(); }
  bool has_bytes() const { return !arrived_.empty(); }
  bool is_between_two() const { return from_ && to_ && !broken_ && !over_; }
  bool joins(const Process& process) const { return from_ == &process || to_ == &process; }
  void deliver() {
    while (!held_.empty()) {
      if (!to_ || !from_) return;
      if (held_.front().first > net_.world().now_ns())
        return net_.world().at(held_.front().first, [self = shared_from_this()] { self->deliver(); });
      if (net_.is_blocked(from_name_, to_name_)) return;  // heal() comes back
      if (held_.front().second.empty()) over_ = true;
      arrived_ += held_.front().second;
      held_.pop_front();
      tell(to_, &Stream::readable);
    }
  }

  std::function<void()> on_readable, on_writable;

 private:
  static constexpr size_t kRoom = size_t{256} << 10;
  void send(std::string bytes) {
    last_ns_ = std::max(last_ns_, net_.world().now_ns() + net_.latency());
    held_.emplace_back(last_ns_, std::move(bytes));
    if (held_.size() == 1) net_.world().at(last_ns_, [self = shared_from_this()] { self->deliver(); });
  }
  // Whoever is told may end, and what he is told by with him.
  void readable() {
    const std::function<void()> fn = on_readable;
    if (fn) fn();
  }
  void writable() {
    const std::function<void()> fn = on_writable;
    if (fn) fn();
  }
  void tell(Process* process, void (Stream::*what)()) {
    if (process) process->happens_at(net_.world().now_ns(), [self = shared_from_this(), what] { (self.get()->*what)(); });
  }

  Net& net_;
  Process* from_;
  Process* to_;
  const std::string from_name_, to_name_;
  std::deque<std::pair<int64_t, std::string>> held_;  // on their way, and when they are there; none: the end
  std::string arrived_;
  size_t under_way_ = 0;
  int64_t last_ns_ = 0;
  bool finished_ = false, over_ = false, broken_ = false;
};

namespace {

class SimChannel final : public Channel {
 public:
  SimChannel(Loop& loop, const wire::Limits& limits, std::shared_ptr<Stream> in, std::shared_ptr<Stream> out)
      : Channel(loop, limits), in_(std::move(in)), out_(std::move(out)) {}
  ~SimChannel() override { shut(); }
  const char* security() const override { return "memory"; }

 private:
  Result<size_t> read_bytes(const iovec* into, int count) override {
    if (in_->is_broken()) return unavailable("Connection reset by peer");
    const size_t bytes = in_->read(into, count);
    if (bytes == 0 && in_->is_over()) return unavailable("the other end closed the connection");
    return bytes;
  }
  Result<size_t> write_bytes(const iovec* from, int count) override {
    if (out_->is_broken()) return unavailable("Broken pipe");
    return out_->write(from, count);
  }
  void want_write(bool want) override { wants_write_ = want; }
  void start() override {
    in_->on_readable = [this] {
      const Ref<SimChannel> self = Ref<SimChannel>::share(this);
      read_on();
    };
    out_->on_writable = [this] {
      const Ref<SimChannel> self = Ref<SimChannel>::share(this);
      if (is_open() && (wants_write_ || out_->is_broken())) on_writable();
    };
    loop().post([self = Ref<SimChannel>::share(this)] { self->read_on(); });
  }
  void shut() override {
    in_->on_readable = nullptr;
    out_->on_writable = nullptr;
    out_->finish();
  }
  void read_on() {
    if (is_open()) on_readable();
    if (is_open() && in_->has_bytes()) loop().post([self = Ref<SimChannel>::share(this)] { self->read_on(); });
  }

  const std::shared_ptr<Stream> in_, out_;
  bool wants_write_ = false;
};

}  // namespace

// The loop of a process: what is posted happens at once, but not now.
class ProcessLoop final : public Loop {
 public:
  ProcessLoop(Process& process, const Clock& clock) : Loop(clock), process_(process) {}
  // What is posted goes with it.
  ~ProcessLoop() override {
    *exists_ = false;
    while (!posted_.empty()) posted_.extract(posted_.begin());
  }
  void post(std::function<void()> fn) override {
    if (!*exists_) return;
    const uint64_t number = ++last_;
    posted_[number] = std::move(fn);
    process_.happens_at(process_.world().now_ns(), [this, exists = exists_, number] {
      if (!*exists) return;
      if (auto node = posted_.extract(number)) node.mapped()();
    });
  }
  bool is_current() const override { return process_.in_loop() || ending_; }
  // What was posted before the end happens before it, as on a real loop.
  void finish() {
    ending_ = true;
    while (!posted_.empty()) posted_.extract(posted_.begin()).mapped()();
  }

 private:
  void rearm() override {
    const int64_t left = next_due() - clock().monotonic_ns();
    const uint64_t number = ++armed_;
    // Clocks drift, and an alarm that rings early would ring in vain.
    const int64_t slack = left / 1000 + kMicrosecond;
    process_.happens_at(process_.world().now_ns() + std::max<int64_t>(left, 0) + slack, [this, exists = exists_, number] {
      if (!*exists || number != armed_) return;
      ring_due();
      if (next_due() != INT64_MAX) rearm();
    });
  }
  Process& process_;
  bool ending_ = false;
  uint64_t armed_ = 0;
  uint64_t last_ = 0;
  std::map<uint64_t, std::function<void()>> posted_;
  const std::shared_ptr<bool> exists_ = std::make_shared<bool>(true);
};

class SimListener final : public Listener {
 public:
  SimListener(Net& net, Process& process, Loop& loop, Address address, const wire::Limits& limits, Network::Accepted accepted)
      : net_(net), process_(process), loop_(loop), address_(std::move(address)), limits_(limits), accepted_(std::move(accepted)) {
    net_.listeners_[address_.text()] = this;
  }
  ~SimListener() override { leave(); }
  const Address& address() const override { return address_; }
  void leave() {
    const auto at = net_.listeners_.find(address_.text());
    if (at != net_.listeners_.end() && at->second == this) net_.listeners_.erase(at);
  }
  Process& process() { return process_; }
  void accept(std::shared_ptr<Stream> in, std::shared_ptr<Stream> out) {
    accepted_(make_ref<SimChannel>(loop_, limits_, std::move(in), std::move(out)));
  }

 private:
  Net& net_;
  Process& process_;
  Loop& loop_;
  const Address address_;
  const wire::Limits limits_;
  const Network::Accepted accepted_;
};

class SimNetwork final : public Network {
 public:
  SimNetwork(Net& net, Process& process, const Clock& clock) : net_(net), process_(process), loop_(process, clock) {}
  ~SimNetwork() override {
    loop_.finish();
    *exists_ = false;
    while (!dials_.empty()) dials_.extract(dials_.begin()).mapped()(unavailable("the network loop has stopped"));
  }
  Loop& loop() override { return loop_; }

  void connect(const Address& address, const Credentials&, const EndpointLimits& limits, Deadline deadline, Connected connected) override {
    // There and back; who is not there says so, who cannot be reached says nothing.
    const int64_t back_ns = net_.world().now_ns() + net_.latency() + net_.latency();
    const int64_t late_ns = net_.world().now_ns() + std::max<int64_t>(deadline.left_ns(loop_.clock()), 0);
    const uint64_t number = ++last_;
    dials_[number] = std::move(connected);
    const auto answer = [this, exists = exists_, number](Result<Ref<Channel>> channel) {
      if (*exists) dials_.extract(number).mapped()(std::move(channel));
    };
    process_.happens_at(back_ns, [this, exists = exists_, address, limits, late_ns, answer] {
      if (!*exists) return;
      if (process_.is_cut_off()) return answer(unavailable("connect to %s: Network is unreachable", address.text().c_str()));
      const auto at = net_.listeners_.find(address.text());
      if (at == net_.listeners_.end()) return answer(unavailable("connect to %s: Connection refused", address.text().c_str()));
      Process& there = at->second->process();
      if (net_.is_blocked(process_.name(), there.name()) || net_.is_blocked(there.name(), process_.name())) {
        return process_.happens_at(
            late_ns, [answer, address] { answer(unavailable("connect to %s: nobody answered in time", address.text().c_str())); });
      }
      const auto out = std::make_shared<Stream>(net_, process_, there), in = std::make_shared<Stream>(net_, there, process_);
      net_.streams_.push_back(out);
      net_.streams_.push_back(in);
      there.happens_at(net_.world().now_ns(), [this_net = &net_, text = address.text(), listener = at->second, in, out] {
        const auto still = this_net->listeners_.find(text);
        if (still == this_net->listeners_.end() || still->second != listener) return in->break_off(true);
        listener->accept(out, in);
      });
      answer(Ref<Channel>(make_ref<SimChannel>(loop_, limits.wire, in, out)));
    });
  }
  Result<std::unique_ptr<Listener>> listen(const Address& address, const Credentials&, const EndpointLimits& limits,
                                           Accepted accepted) override {
    if (net_.listeners_.contains(address.text()))
      return already_exists("listen on %s: another process listens there", address.text().c_str());
    return std::unique_ptr<Listener>(new SimListener(net_, process_, loop_, address, limits.wire, std::move(accepted)));
  }

 private:
  Net& net_;
  Process& process_;
  ProcessLoop loop_;
  uint64_t last_ = 0;
  std::map<uint64_t, Connected> dials_;
  const std::shared_ptr<bool> exists_ = std::make_shared<bool>(true);
};

Result<std::unique_ptr<Network>> Net::of(Process& process, const Clock& clock) {
  return std::unique_ptr<Network>(new SimNetwork(*this, process, clock));
}

int64_t Net::latency() { return world_.between(20 * kMicrosecond, 200 * kMicrosecond) + (slow_ns_ > 0 ? world_.between(0, slow_ns_) : 0); }

void Net::cut_off(Process& process) {
  for (auto at = listeners_.begin(); at != listeners_.end();) {
    const auto listener = at++;
    if (&listener->second->process() == &process) listeners_.erase(listener);
  }
  // A process that dies is missed at once, as a rule; a machine that dies is not.
  const bool told = always_tells_ || !world_.one_in(4);
  for (const auto& weak : streams_) {
    const auto stream = weak.lock();
    if (!stream || !stream->joins(process)) continue;
    if (told) stream->break_off(true);
    stream->forget(process);
  }
}

void Net::heal() {
  blocked_.clear();
  for (const auto& weak : streams_) {
    if (const auto stream = weak.lock()) stream->deliver();
  }
}

bool Net::break_one() {
  std::erase_if(streams_, [](const auto& weak) { return weak.expired(); });
  std::vector<std::shared_ptr<Stream>> live;
  for (const auto& weak : streams_) {
    if (auto stream = weak.lock(); stream && stream->is_between_two()) live.push_back(std::move(stream));
  }
  if (live.empty()) return false;
  live[static_cast<size_t>(world_.between(0, static_cast<int64_t>(live.size()) - 1))]->break_off(true);
  return true;
}

}  // namespace dtg::sim
