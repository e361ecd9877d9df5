// grpc_peer.cc: gRPC C++ without protobuf, as TensorFlow drives it: borrowed slices go out, what arrives is copied once into
// its place. "bench_grpc serve PORT", "bench_grpc client PORT" (see turns.h); methods are /echo, /pull and /push. The server has
// one thread at one completion queue.
#include <grpc/grpc.h>
#include <grpc/slice.h>
#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "../turns.h"

namespace {

constexpr size_t kMessage = 64, kMost = size_t{64} << 20;

std::vector<char> &variable() {
  static std::vector<char> all(kMost, 1);
  return all;
}

grpc::ByteBuffer borrowed(const char *at, size_t bytes) {
  const grpc::Slice slice(at, bytes, grpc::Slice::STATIC_SLICE);
  return grpc::ByteBuffer(&slice, 1);
}

// Requests and answers may arrive cut into many slices.
size_t copy_out(const grpc::ByteBuffer &from, char *to, size_t room) {
  std::vector<grpc::Slice> slices;
  if (!from.Dump(&slices).ok()) return 0;
  size_t done = 0;
  for (const grpc::Slice &slice : slices) {
    if (slice.size() > room - done) return done;
    std::memcpy(to + done, slice.begin(), slice.size());
    done += slice.size();
  }
  return done;
}

// ---- the server ----

// One call: asked for, then read, then answered; then it is gone.
class Call {
 public:
  Call(grpc::AsyncGenericService *service, grpc::ServerCompletionQueue *queue) : service_(service), queue_(queue), stream_(&context_) {
    service_->RequestCall(&context_, &stream_, queue_, queue_, this);
  }

  void go_on(bool well) {
    if (state_ == kAnswered || !well) {
      delete this;
    } else if (state_ == kAsked) {
      new Call(service_, queue_);
      state_ = kRead;
      stream_.Read(&message_, this);
    } else {
      state_ = kAnswered;
      stream_.WriteAndFinish(answer(), grpc::WriteOptions(), grpc::Status::OK, this);
    }
  }

 private:
  // A pull says in its first eight bytes how much it wants.
  grpc::ByteBuffer answer() {
    size_t wanted = kMessage;
    if (context_.method() == "/push") {
      copy_out(message_, variable().data(), kMost);
    } else {
      char request[kMessage] = {};
      copy_out(message_, request, sizeof request);
      if (context_.method() == "/pull") std::memcpy(&wanted, request, sizeof wanted);
    }
    return borrowed(variable().data(), wanted <= kMost ? wanted : kMessage);
  }

  enum { kAsked, kRead, kAnswered } state_ = kAsked;
  grpc::AsyncGenericService *service_;
  grpc::ServerCompletionQueue *queue_;
  grpc::GenericServerContext context_;
  grpc::GenericServerAsyncReaderWriter stream_;
  grpc::ByteBuffer message_;
};

int serve(const std::string &address) {
  grpc::AsyncGenericService service;
  grpc::ServerBuilder builder;
  builder.AddListeningPort(address, grpc::InsecureServerCredentials());
  builder.SetMaxReceiveMessageSize(-1);
  builder.RegisterAsyncGenericService(&service);
  const std::unique_ptr<grpc::ServerCompletionQueue> queue = builder.AddCompletionQueue();
  const std::unique_ptr<grpc::Server> server = builder.BuildAndStart();
  if (!server) return 1;
  for (int i = 0; i < 16; ++i) new Call(&service, queue.get());
  std::puts("ready");
  std::fflush(stdout);
  std::thread([] {
    while (std::getchar() != EOF) {
    }
    std::_Exit(0);
  }).detach();
  void *call = nullptr;
  bool well = false;
  while (queue->Next(&call, &well)) static_cast<Call *>(call)->go_on(well);
  return 0;
}

// ---- a client ----

std::string to_address;

struct Client {
  explicit Client(const turns_workload &workload) {
    grpc::ChannelArguments arguments;
    arguments.SetMaxReceiveMessageSize(-1);
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    stub = std::make_unique<grpc::GenericStub>(grpc::CreateCustomChannel(to_address, grpc::InsecureChannelCredentials(), arguments));
    const std::string name = workload.name;
    method = name == "null" ? "/echo" : "/" + name;
    back = name == "pull" ? workload.bytes : kMessage;
    std::memcpy(request, &workload.bytes, sizeof workload.bytes);
    body = name == "push" ? borrowed(variable().data(), workload.bytes) : borrowed(request, sizeof request);
  }

  void step() {
    grpc::ClientContext context;
    grpc::Status status;
    grpc::ByteBuffer answer;
    void *tag = nullptr;
    bool well = false;
    const auto call = stub->PrepareUnaryCall(&context, method, body, &queue);
    call->StartCall();
    call->Finish(&answer, &status, this);
    queue.Next(&tag, &well);
    if (well && status.ok() && copy_out(answer, variable().data(), kMost) == back) return;
    std::fprintf(stderr, "bench_grpc: %s: %s\n", method.c_str(), status.error_message().c_str());
    std::exit(1);
  }

  std::unique_ptr<grpc::GenericStub> stub;
  grpc::CompletionQueue queue;
  grpc::ByteBuffer body;
  std::string method;
  size_t back = 0;
  char request[kMessage] = {};
};

}  // namespace

int main(int argc, char **argv) {
  if (argc != 3) return 2;
  to_address = std::string("127.0.0.1:") + argv[2];
  if (!std::strcmp(argv[1], "serve")) return serve(to_address);
  const turns client = {[](const turns_workload *workload) -> void * { return new Client(*workload); },
                        [](void *made) { static_cast<Client *>(made)->step(); }};
  return turns_serve(&client);
}
