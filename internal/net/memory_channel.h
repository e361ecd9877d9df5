// Channels between two ends in one process: for tasks that share it, and for tests, which play one of the ends byte
// by byte. Streams and channels belong to the loop's thread.
#pragma once

#include <string>
#include <utility>

#include "net/channel.h"

namespace dtg {

// Bytes in one direction, at most so many under way.
class MemoryStream final : public RefCounted {
 public:
  explicit MemoryStream(size_t room = size_t{4} << 20) : room_(room) {}

  // How much was taken or given; 0 when there is no room or nothing there.
  size_t write(const iovec* from, int count);
  size_t read(const iovec* into, int count);
  size_t write(std::string_view bytes);
  std::string read_all();
  // What was written before can still be read.
  void close();
  // No more bytes will come.
  bool at_end() const;
  bool is_closed() const;
  bool readable() const;

  // Called when there is something to read (or the end), or room again.
  void watch_reader(std::function<void()> readable);
  void watch_writer(std::function<void()> writable);

 private:
  const size_t room_;
  std::string bytes_;
  bool closed_ = false;
  std::function<void()> readable_, writable_;
};

Ref<Channel> memory_channel(Loop& loop, const wire::Limits& limits, Ref<MemoryStream> in, Ref<MemoryStream> out);
// Two ends on one loop that talk to each other.
std::pair<Ref<Channel>, Ref<Channel>> memory_channels(Loop& loop, const wire::Limits& limits);

}  // namespace dtg
