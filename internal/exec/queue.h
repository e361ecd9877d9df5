// Queue: a store of tuples between steps, with TensorFlow's rules: a bounded queue makes enqueues wait, dequeues wait
// for elements, waiters are served in their order, dequeue-many collects elements while it waits, closing lets
// what is there be taken and fails the rest. Which element comes next is the order of the queue: the oldest, one
// at random, or the one with the smallest first component.
//
// Any thread. Owner: the resource store and the plans bound to it.
#pragma once

#include <deque>
#include <span>
#include <vector>

#include "device/cpu/philox.h"
#include "exec/pending_op.h"
#include "tensor/tensor.h"

namespace dtg {

using Tuple = std::vector<Tensor>;  // one tensor per component

class Queue final : public WaitingResource {
 public:
  static constexpr std::string_view kKind = "queue";

  enum class Order : uint8_t { arrival, shuffled, priority };
  struct Spec {
    std::vector<DType> dtypes;
    std::vector<PartialShape> shapes;  // empty, or one per component
    int64_t capacity = -1;             // negative: unbounded
    Order order = Order::arrival;
    bool padding = false;  // batches pad elements of open dimensions with zeros
    int64_t reserve = 0;   // shuffled: elements that must stay while the queue is open
    uint64_t seed = 0;     // shuffled
    bool operator==(const Spec&) const = default;
  };
  enum class Verb : uint8_t { enqueue, enqueue_many, dequeue, dequeue_many, dequeue_up_to, close, close_and_cancel };

  // An operation. Enqueues carry their tuple in (many: with a leading dimension), dequeues have it when they
  // finished with success.
  class Operation : public PendingOp {
   public:
    explicit Operation(Verb verb) : verb_(verb) {}
    Tuple tuple;
    int64_t count = 0;  // dequeue_many, dequeue_up_to

   protected:
    // Did it do something to the queue, whatever it ended with? A part of a batch may be in when the rest is withdrawn.
    bool has_changed(const Status& outcome) const {
      const bool many = verb_ == Verb::enqueue_many || verb_ == Verb::dequeue_many || verb_ == Verb::dequeue_up_to;
      return many ? moved_ > 0 : outcome.ok();
    }
    // Its run was ended while it waited; the queue is locked.
    virtual void withdrawn() {}

   private:
    friend class Queue;
    const Verb verb_;
    int64_t moved_ = 0;        // elements of a many that are through
    std::deque<Tuple> taken_;  // dequeue_many: collected so far
  };

  Queue(std::string name, Spec spec) : WaitingResource(std::move(name)), spec_(std::move(spec)), draw_(spec_.seed, 0, 0) {}
  const char* kind() const override { return kKind.data(); }
  void destroy(const Status& reason) override;

  const Spec& spec() const { return spec_; }
  int64_t size() const;
  bool closed() const;
  // What start() would refuse at once, for tuples that are not copied yet.
  Status check_tuple(std::span<const DType> dtypes, std::span<const Shape> shapes, bool many) const;
  Status check_count(int64_t count) const;

 private:
  enum class Progress : uint8_t { none, some, ended };

  void enter(PendingOp& pending, PendingOpList& ended) override;
  void withdraw(PendingOp& pending, PendingOpList& ended) override;
  void serve(PendingOpList& ended);
  bool serve_list(PendingOpList& list, PendingOpList& ended);
  Progress attempt_one(Operation& op, Status* status);
  Progress put(Operation& op, Status* status);
  Progress take(Operation& op, Status* status);
  Progress take_many(Operation& op, Status* status);
  Progress close(Status* status);
  void cancel_all(PendingOpList& list, const Status& cause, PendingOpList& ended);
  void give_back(Operation& op);
  void add(Tuple tuple);
  Tuple next();
  int64_t available() const;
  bool full() const { return spec_.capacity >= 0 && static_cast<int64_t>(elements_.size()) >= spec_.capacity; }
  Status exhausted(int64_t requested) const;

  const Spec spec_;
  std::deque<Tuple> elements_;  // by priority: sorted
  cpu::Philox draw_;
  PendingOpList putters_;  // enqueues, and closes that wait for those before them
  PendingOpList takers_;
  bool closed_ = false;
};

// The elements of a batch, row by row, without copying; and the other way round, into fresh memory, smaller
// elements padded with zeros.
Result<Tuple> tuple_row(const Tuple& batch, int64_t row);
Result<Tuple> stack_tuples(std::span<const DType> dtypes, std::span<const PartialShape> shapes, const std::deque<Tuple>& rows);

}  // namespace dtg
