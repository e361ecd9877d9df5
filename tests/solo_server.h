// SoloServer: a real server with its connections, links and runs in one thread: no sockets, a clock that moves when the owner says
// so, and peers whose bytes the owner makes. For fuzzing what a server does with what it is told.
#pragma once

#include <memory>
#include <vector>

#include "cluster/server.h"
#include "manual_loop.h"
#include "net/memory_channel.h"
#include "session/runtime.h"

namespace dtg {

// Whoever waits in it turns the world meanwhile; where nothing is left to do, time passes.
class SoloClock final : public Clock {
 public:
  int64_t monotonic_ns() const override { return stepped.now_ns; }
  double wall_seconds() const override { return stepped.wall_seconds(); }
  void wait(std::condition_variable&, std::unique_lock<std::mutex>& lock, int64_t) const override {
    lock.unlock();
    pass();
    lock.lock();
  }
  mutable SteppedClock stepped;
  std::function<void()> pass;
};

class SoloRandom final : public Random {
 public:
  void fill(void* bytes, size_t count) const override {
    for (size_t i = 0; i < count; ++i) static_cast<unsigned char*>(bytes)[i] = static_cast<unsigned char>(last_ = last_ * 167 + 13);
  }

 private:
  mutable unsigned last_ = 1;
};

class Silence final : public LogSink {
 public:
  void write(LogLevel, std::string_view, std::string_view) override {}
};

// Listens for whom the owner brings; nobody else is there.
class SoloNetwork final : public Network {
 public:
  explicit SoloNetwork(SteppedClock& clock) : loop_(clock) {}
  ManualLoop& loop() override { return loop_; }
  void connect(const Address& address, const Credentials&, const EndpointLimits&, Deadline, Connected connected) override {
    connected(unavailable("connect to %s: Connection refused", address.text().c_str()));
  }
  Result<std::unique_ptr<Listener>> listen(const Address& address, const Credentials&, const EndpointLimits& limits,
                                           Accepted accepted) override {
    limits_ = limits.wire;
    accepted_ = std::move(accepted);
    return std::unique_ptr<Listener>(new SoloListener(*this, address));
  }
  void bring(Ref<MemoryStream> in, Ref<MemoryStream> out) {
    if (accepted_) accepted_(memory_channel(loop_, limits_, std::move(in), std::move(out)));
  }

 private:
  class SoloListener final : public Listener {
   public:
    SoloListener(SoloNetwork& network, Address address) : network_(network), address_(std::move(address)) {}
    ~SoloListener() override { network_.accepted_ = nullptr; }
    const Address& address() const override { return address_; }

   private:
    SoloNetwork& network_;
    const Address address_;
  };
  ManualLoop loop_;
  wire::Limits limits_;
  Accepted accepted_;
};

// What such servers live in, one after the other: making it takes longer than what most peers have to say.
class SoloHost final {
 public:
  SoloHost() {
    clock_.pass = [this] {
      if (!settle()) pass(10'000'000);
    };
    Runtime::Options options;
    options.compute_threads = 1;
    options.memory_limit_bytes = int64_t{128} << 20;
    options.log = &silence_;
    options.clock = &clock_;
    options.random = &random_;
    options.own_threads = false;
    options.network = [this](const Clock&) {
      auto made = std::make_unique<SoloNetwork>(clock_.stepped);
      network_ = made.get();
      return Result<std::unique_ptr<Network>>(std::move(made));
    };
    runtime = Runtime::create(std::move(options)).take();
    host = runtime->host().take();
  }
  SoloNetwork& network() { return *network_; }
  // The loop's part of what can happen now.
  void turn_loop() { network_->loop().run(); }
  // All that can happen now. False: there was nothing for the pool.
  bool settle() {
    bool did = false;
    turn_loop();
    while (runtime->turn()) {
      did = true;
      turn_loop();
    }
    return did;
  }
  void pass(int64_t ns) {
    for (int i = 0; i < 4; ++i) {
      network_->loop().run_for(ns / 4);
      settle();
    }
  }
  int64_t reserved_bytes() const { return host.seams.budget->used(); }

 private:
  SoloClock clock_;
  SoloRandom random_;
  Silence silence_;
  SoloNetwork* network_ = nullptr;

 public:
  Ref<Runtime> runtime;
  Host host;
};

class SoloServer final {
 public:
  struct Peer {
    Ref<MemoryStream> in = make_ref<MemoryStream>(size_t{64} << 20), out = make_ref<MemoryStream>(size_t{64} << 20);
    bool reads = true;
  };

  SoloServer(SoloHost& host, const char* cluster, const char* job) : host_(host), reserved_before_(host.reserved_bytes()) {
    Server::Options options;
    options.cluster = ClusterSpec::parse(cluster).take();
    options.job = job;
    Host own = host_.host;
    own.memory = memory_;
    server_ = Server::start(own, options, host_.runtime).take();
  }
  void bring(Peer& peer) {
    host_.network().bring(peer.in, peer.out);
    host_.turn_loop();
  }
  // Stops it and lets go of it; what it still has reserved then.
  Status stop(int64_t* left_bytes) {
    const Status status = server_->stop(int64_t{20} * 1'000'000'000);
    host_.settle();
    server_ = nullptr;
    host_.settle();
    memory_->close();
    *left_bytes = host_.reserved_bytes() - reserved_before_;
    return status;
  }

 private:
  SoloHost& host_;
  const int64_t reserved_before_;
  const Ref<MemoryPool> memory_ = make_ref<MemoryPool>(host_.host.seams.budget);  // its runs work in it
  Ref<Server> server_;
};

}  // namespace dtg
