// Doorman: the server's side of a conversation up to hello and a little beyond, on a loop and a clock that the test moves;
// the test or the fuzzer plays the other end byte by byte. Like a server's connection it takes nothing before hello, and
// reserves what a graph needs before it lands.
#pragma once

#include <memory>

#include "base/budget.h"
#include "cluster/link.h"
#include "manual_loop.h"
#include "net/memory_channel.h"

namespace dtg {

class Doorman final : public Link::Listener {
 public:
  explicit Doorman(int64_t budget_bytes = int64_t{80} << 20) : budget(budget_bytes) {
    link = make_ref<Link>(loop, memory_channel(loop, limits, in, out), timing, this);
    link->open();
    loop.run();
  }
  ~Doorman() override {
    link->close({});
    loop.run();
    drop();
  }
  void hear(std::string_view bytes) {
    in->write(bytes);
    loop.run();
  }

  Result<Channel::Landing> payload(const wire::Prefix& prefix, std::string_view) override {
    if (!known) return unauthenticated("a payload came before hello");
    if (prefix.kind != wire::Kind::register_part) return data_loss("no payload belongs there");
    drop();
    DTG_TRY(budget.reserve(static_cast<int64_t>(prefix.payload_bytes), "a graph"));
    reserved_ = static_cast<int64_t>(prefix.payload_bytes);
    graph_.reset(new char[prefix.payload_bytes]);
    return Channel::Landing{graph_.get(), nullptr};
  }
  Status message(const wire::Prefix& prefix, std::string_view header) override {
    if (prefix.kind != wire::Kind::hello) {
      if (!known) return unauthenticated("a frame came before hello");
      drop();
      ++frames;
      return wire::check_message(prefix.kind, header);
    }
    if (known) return data_loss("hello came twice");
    wire::Hello hello;
    DTG_TRY(wire::decode(header, hello));
    link->send(wire::HelloReply{}, prefix.call);
    known = true;
    link->trust("session " + std::to_string(hello.session), Timing{}.heartbeat_ns);
    return {};
  }
  void lost(const Status& why) override {
    ++losses;
    reason = why;
    drop();
  }

  SteppedClock clock;
  ManualLoop loop{clock};
  wire::Limits limits;
  Timing timing;
  MemoryBudget budget;
  Ref<MemoryStream> in = make_ref<MemoryStream>(), out = make_ref<MemoryStream>();
  Ref<Link> link;
  bool known = false;
  int frames = 0;
  int losses = 0;
  Status reason;

 private:
  void drop() {
    graph_.reset();
    budget.release(std::exchange(reserved_, 0));
  }
  std::unique_ptr<char[]> graph_;
  int64_t reserved_ = 0;
};

}  // namespace dtg
