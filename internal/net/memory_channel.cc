// Streams and channels whose bytes stay in this process's memory. On the loop's thread.
#include "net/memory_channel.h"

#include <algorithm>
#include <cstring>

namespace dtg {

size_t MemoryStream::write(const iovec* from, int count) {
  size_t taken = 0;
  for (int i = 0; i < count && !closed_; ++i) {
    const size_t now = std::min(from[i].iov_len, room_ - std::min(room_, bytes_.size()));
    bytes_.append(static_cast<const char*>(from[i].iov_base), now);
    taken += now;
  }
  if (taken > 0 && readable_) readable_();
  return taken;
}

size_t MemoryStream::read(const iovec* into, int count) {
  size_t given = 0;
  for (int i = 0; i < count; ++i) {
    const size_t now = std::min(into[i].iov_len, bytes_.size() - given);
    if (now > 0) std::memcpy(into[i].iov_base, bytes_.data() + given, now);
    given += now;
  }
  bytes_.erase(0, given);
  if (given > 0 && writable_) writable_();
  return given;
}

size_t MemoryStream::write(std::string_view bytes) {
  const iovec from{const_cast<char*>(bytes.data()), bytes.size()};
  return write(&from, 1);
}

std::string MemoryStream::read_all() { return std::exchange(bytes_, {}); }

void MemoryStream::close() {
  closed_ = true;
  if (readable_) readable_();
  if (writable_) writable_();
}

bool MemoryStream::at_end() const { return closed_ && bytes_.empty(); }

bool MemoryStream::is_closed() const { return closed_; }

bool MemoryStream::readable() const { return !bytes_.empty(); }

void MemoryStream::watch_reader(std::function<void()> readable) { readable_ = std::move(readable); }

void MemoryStream::watch_writer(std::function<void()> writable) { writable_ = std::move(writable); }

namespace {

class MemoryChannel final : public Channel {
 public:
  MemoryChannel(Loop& loop, const wire::Limits& limits, Ref<MemoryStream> in, Ref<MemoryStream> out)
      : Channel(loop, limits), in_(std::move(in)), out_(std::move(out)) {}
  ~MemoryChannel() override { shut(); }
  const char* security() const override { return "memory"; }

 private:
  Result<size_t> read_bytes(const iovec* into, int count) override {
    const size_t bytes = in_->read(into, count);
    if (bytes == 0 && in_->at_end()) return unavailable("the other end closed the connection");
    return bytes;
  }
  Result<size_t> write_bytes(const iovec* from, int count) override {
    if (out_->is_closed()) return unavailable("the other end closed the connection");
    return out_->write(from, count);
  }
  void want_write(bool want) override { wants_write_ = want; }
  void start() override {
    in_->watch_reader([this] { wake(&MemoryChannel::read_on); });
    out_->watch_writer([this] { wake(&MemoryChannel::write_on); });
    wake(&MemoryChannel::read_on);
  }
  void shut() override {
    in_->watch_reader(nullptr);
    out_->watch_writer(nullptr);
    out_->close();
    in_->close();
  }
  void wake(void (MemoryChannel::*what)()) {
    loop().post([self = Ref<MemoryChannel>::share(this), what] { self->contain([&] { (self.get()->*what)(); }); });
  }
  void read_on() {
    if (is_open()) on_readable();
    // Others had their turn.
    if (is_open() && in_->readable()) wake(&MemoryChannel::read_on);
  }
  void write_on() {
    if (is_open() && wants_write_) on_writable();
  }

  const Ref<MemoryStream> in_, out_;
  bool wants_write_ = false;
};

}  // namespace

Ref<Channel> memory_channel(Loop& loop, const wire::Limits& limits, Ref<MemoryStream> in, Ref<MemoryStream> out) {
  return make_ref<MemoryChannel>(loop, limits, std::move(in), std::move(out));
}

std::pair<Ref<Channel>, Ref<Channel>> memory_channels(Loop& loop, const wire::Limits& limits) {
  auto there = make_ref<MemoryStream>(), back = make_ref<MemoryStream>();
  return {memory_channel(loop, limits, back, there), memory_channel(loop, limits, there, back)};
}

}  // namespace dtg
