// Tokens of strict steps as private ops, which training adds (strategy/replicas.h). The queues they come from are those of queue.cc.
//
//   _TokenRoll   names who has contributed, for whoever waits too long
//   _TakeToken   a worker's next token; waits for it
#include "ops/step_tokens.h"

#include <memory>

#include "exec/commits.h"
#include "exec/completion.h"
#include "exec/queue.h"
#include "exec/token_roll.h"
#include "graph/infer.h"

namespace dtg::ops {
namespace {

Status handle_prepare(PrepareContext& c) {
  const int64_t workers = c.integer("workers");
  if (workers < 1 || workers > TokenRoll::kWorkersMost)
    return c.error("%lld workers; give 1 to %lld", static_cast<long long>(workers), static_cast<long long>(TokenRoll::kWorkersMost));
  DTG_ASSIGN(Ref<Resource> found, c.named_resource(TokenRoll::kKind, [&](const std::string& name) {
    return Ref<Resource>(make_ref<TokenRoll>(name, workers));
  }));
  const int64_t there = static_cast<const TokenRoll&>(*found).workers();
  if (there != workers) {
    return c.error(
        "attach to the tokens of strict steps in \"%s\": they are of %lld workers there and of %lld here; all workers say the same "
        "`total`",
        found->name().c_str(), static_cast<long long>(there), static_cast<long long>(workers));
  }
  c.bind(0, std::move(found));
  return {};
}

struct TokenArgs {
  int64_t worker = 0;
};

class TakeOp final : public Queue::Operation {
 public:
  explicit TakeOp(TokenRoll& roll, int64_t worker) : Operation(Queue::Verb::dequeue), roll_(roll), worker_(worker) {}
  void expect(Completion done) { done_ = std::move(done); }

 private:
  void withdrawn() override { done_.step().explain_lateness(roll_.lateness(worker_)); }
  void finished(Status status) override {
    if (status.ok()) {
      note_change(done_.step());
      roll_.served(worker_);
      *done_.context().out<int64_t>(0) = *tuple[0].as<int64_t>();
    }
    done_.done(std::move(status));
  }

  TokenRoll& roll_;  // bound to the plan of the run, which waits for this
  const int64_t worker_;
  Completion done_;
};

Status look(const RunContext& c, Queue** queue, TokenRoll** roll) {
  DTG_TRY(c.permitted(0));
  DTG_TRY(c.permitted(1));
  *queue = resource_cast<Queue>(c.in<void>(0));
  if (!*queue) return c.error("input 0 is not the handle of a queue");
  *roll = resource_cast<TokenRoll>(c.in<void>(1));
  if (!*roll) return c.error("input 1 is not the handle of a roll of tokens");
  const int64_t worker = c.args<TokenArgs>().worker;
  if (worker >= (*roll)->workers())
    return c.error("worker %lld, where \"%s\" has %lld", static_cast<long long>(worker), (*roll)->name().c_str(),
                   static_cast<long long>((*roll)->workers()));
  const auto& types = (*queue)->spec().dtypes;
  const auto& shapes = (*queue)->spec().shapes;
  if (types.size() == 1 && types[0] == DType::i64 && shapes.size() == 1 && shapes[0].rank() == 0) return {};
  return c.error("the queue \"%s\" is not one of tokens", (*queue)->name().c_str());
}

bool take_run(RunContext& c, Completion done) {
  Queue* queue = nullptr;
  TokenRoll* roll = nullptr;
  if (Status status = look(c, &queue, &roll); !status.ok()) {
    c.set_status(std::move(status));
    done.dismiss();
    return true;
  }
  const int64_t worker = c.args<TokenArgs>().worker;
  auto op = std::make_unique<TakeOp>(*roll, worker);
  op->expect(std::move(done));
  roll->asks(worker);
  queue->start(op.release(), &c.step());
  return false;
}

Status take_prepare(PrepareContext& c) {
  auto* const a = c.args<TokenArgs>();
  a->worker = c.integer("worker");
  if (a->worker < 0) return c.error("worker %lld; they count from 0", static_cast<long long>(a->worker));
  return c.async_in_place(take_run);
}

Status scalar_shape(InferContext& c) {
  c.output(0, PartialShape::scalar());
  return {};
}

}  // namespace

void register_step_tokens(OpTable& ops, KernelTable& kernels) {
  ops.add(OpDef::make("_TokenRoll")
              .output("handle: resource")
              .attr("workers: int")
              .attr("container: string = ''")
              .attr("shared_name: string = ''")
              .shape(scalar_shape)
              .no_gradient()
              .stateful()
              .role(Role::handle)
              .transient()
              .doc("Private: names those who have contributed to a strict step."));
  kernels.add({.op = "_TokenRoll", .prepare = handle_prepare, .mode = KernelMode::host});
  ops.add(
      OpDef::make("_TakeToken")
          .input("handle: resource")
          .input("roll: resource")
          .output("token: int64")
          .attr("worker: int")
          .shape(scalar_shape)
          .no_gradient()
          .stateful()
          .access(Access::consume)
          .doc("Private: a worker's next token, from a queue of its own; waits while there is none, and says for whom the step waits where "
               "the run's time is over."));
  kernels.add({.op = "_TakeToken", .prepare = take_prepare, .mode = KernelMode::blocking});
}

}  // namespace dtg::ops
