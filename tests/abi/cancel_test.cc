// Ending runs early, from outside: by a cancellation that another thread uses, and by a deadline in the midst of a long computation. What
// has an effect happens as a whole or not at all. No bound is a time that a loaded machine could miss: what is cut is expected to end in
// a fraction of what it would have taken, by work a thousand times smaller that was measured before.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <initializer_list>
#include <random>
#include <thread>

#include "world.h"

namespace outside {
namespace {

using Ms = std::chrono::duration<double, std::milli>;
using std::chrono::steady_clock;

dtg_tensor* filled(dtg_dtype dtype, std::vector<int64_t> dims) {
  dtg_tensor* tensor = nullptr;
  OK(dtg_tensor_allocate(dtype, dims.data(), dims.size(), &tensor));
  return tensor;
}

class Cancel : public testing::Test {
 protected:
  void SetUp() override {
    before_ = dtg_live_handles();
    OK(dtg_graph_create(nullptr, &graph));
    OK(dtg_cancellation_create(&cancellation));
  }
  void TearDown() override {
    dtg_cancellation_release(cancellation);
    dtg_session_release(session);
    dtg_model_release(model);
    dtg_graph_release(graph);
    EXPECT_EQ(dtg_live_handles(), before_) << "handles were leaked";
  }
  void connect() { OK(dtg_session_connect(nullptr, "local", DTG_STRLEN, graph, nullptr, &session)); }

  // A run of one fetch into a new tensor.
  dtg_error* run(dtg_value fetch, const std::vector<dtg_value>& feeds, const std::vector<dtg_tensor*>& tensors, int64_t timeout_ns,
                 dtg_cancellation* by, dtg_tensor** out) {
    dtg_run_args args = DTG_RUN_ARGS_INIT;
    args.feeds = feeds.data();
    args.feed_tensors = const_cast<const dtg_tensor* const*>(tensors.data());
    args.num_feeds = feeds.size();
    args.fetches = &fetch;
    args.fetched = out;
    args.num_fetches = 1;
    args.timeout_ns = timeout_ns;
    args.cancellation = by;
    return dtg_session_run(session, &args);
  }

  // The first output of a new node.
  dtg_value add(const char* type, std::initializer_list<dtg_value> inputs, std::initializer_list<dtg_attr> attrs) {
    dtg_op_spec spec = DTG_OP_SPEC_INIT;
    spec.type = type;
    spec.inputs = inputs.begin();
    spec.num_inputs = inputs.size();
    spec.attrs = attrs.begin();
    spec.num_attrs = attrs.size();
    dtg_value out{};
    OK(dtg_graph_add_op(graph, &spec, &out, 1));
    return out;
  }

  // The attribute "dtype", of a float.
  static dtg_attr of_floats() {
    dtg_attr attr = DTG_ATTR_INIT;
    attr.name = "dtype";
    attr.kind = DTG_ATTR_TYPE;
    attr.i = DTG_F32;
    return attr;
  }

  dtg_value dequeue() {
    const int64_t types[] = {DTG_F32};
    dtg_attr attr = DTG_ATTR_INIT;
    attr.name = "component_types";
    attr.kind = DTG_ATTR_LIST_TYPE;
    attr.ints = types;
    attr.count = 1;
    return add("QueueDequeueV2", {add("FIFOQueueV2", {}, {attr})}, {attr});
  }

  dtg_variable variable(const char* name, int64_t count) {
    if (!model) OK(dtg_model_create(graph, 1, &model));
    dtg_variable_spec spec = DTG_VARIABLE_SPEC_INIT;
    spec.name = name;
    spec.dims = &count;
    spec.rank = 1;
    dtg_variable made = DTG_VARIABLE_INIT;
    OK(dtg_model_add_variable(model, &spec, &made));
    return made;
  }
  void initialise() {
    dtg_value init{};
    OK(dtg_model_init(model, &init));
    connect();
    OK(dtg_run_target(session, init));
  }
  std::vector<float> read(dtg_value of) {
    dtg_tensor* out = nullptr;
    OK(run(of, {}, {}, 0, nullptr, &out));
    const auto* data = static_cast<const float*>(dtg_tensor_data(out, nullptr));
    std::vector<float> values(data, data + dtg_tensor_count(out));
    dtg_tensor_release(out);
    return values;
  }

  // A computation that a small and a large input measure: how long the small one takes, times how much more work the large one is.
  void is_cut(dtg_value fetch, const std::vector<dtg_value>& feeds, const std::vector<dtg_tensor*>& small,
              const std::vector<dtg_tensor*>& large, double ratio) {
    double least = 1e9;
    for (int i = 0; i < 6; ++i) {
      dtg_tensor* out = nullptr;
      const auto began = steady_clock::now();
      OK(run(fetch, feeds, small, 0, nullptr, &out));
      if (i > 0) least = std::min(least, Ms(steady_clock::now() - began).count());
      dtg_tensor_release(out);
    }
    const double whole = least * ratio;
    const auto early = static_cast<int64_t>(std::max(whole / 50, 1.0) * 1e6);
    for (const bool by_thread : {false, true}) {
      dtg_cancellation* by = nullptr;
      OK(dtg_cancellation_create(&by));
      dtg_tensor* out = nullptr;
      const auto began = steady_clock::now();
      std::thread other;
      if (by_thread) {
        other = std::thread([&] {
          std::this_thread::sleep_for(std::chrono::nanoseconds(early));
          dtg_cancellation_cancel(by);
        });
      }
      refused(run(fetch, feeds, large, by_thread ? 0 : early, by_thread ? by : nullptr, &out),
              by_thread ? DTG_CANCELLED : DTG_DEADLINE_EXCEEDED, "a long computation");
      EXPECT_LT(Ms(steady_clock::now() - began).count(), whole / 2) << "the whole would take " << whole << " ms";
      EXPECT_EQ(out, nullptr);
      if (other.joinable()) other.join();
      dtg_cancellation_release(by);
    }
    for (dtg_tensor* tensor : small) dtg_tensor_release(tensor);
    for (dtg_tensor* tensor : large) dtg_tensor_release(tensor);
  }

  void product_is_cut(dtg_dtype dtype, int64_t small, int64_t times) {
    const int64_t open[] = {-1, -1};
    dtg_value a{}, b{}, c{};
    OK(dtg_placeholder(graph, "a", dtype, open, 2, &a));
    OK(dtg_placeholder(graph, "b", dtype, open, 2, &b));
    OK(dtg_add2(graph, "MatMul", a, b, &c));
    connect();
    const int64_t large = small * times;
    is_cut(c, {a, b}, {filled(dtype, {small, small}), filled(dtype, {small, small})},
           {filled(dtype, {large, large}), filled(dtype, {large, large})}, static_cast<double>(times * times * times));
  }

  dtg_graph* graph = nullptr;
  dtg_model* model = nullptr;
  dtg_session* session = nullptr;
  dtg_cancellation* cancellation = nullptr;

 private:
  size_t before_ = 0;
};

TEST_F(Cancel, InTheMidstOfAProduct) { product_is_cut(DTG_F32, 512, 10); }

TEST_F(Cancel, InTheMidstOfAPlainProduct) { product_is_cut(DTG_F64, 256, 10); }

TEST_F(Cancel, InTheMidstOfAConvolution) {
  const int64_t image[] = {-1, 64, 64, -1}, window[] = {3, 3, -1, -1}, ones[] = {1, 1, 1, 1};
  dtg_value x{}, filter{};
  OK(dtg_placeholder(graph, "x", DTG_F32, image, 4, &x));
  OK(dtg_placeholder(graph, "filter", DTG_F32, window, 4, &filter));
  dtg_attr attrs[] = {DTG_ATTR_INIT, DTG_ATTR_INIT};
  attrs[0].name = "strides";
  attrs[0].kind = DTG_ATTR_LIST_INT;
  attrs[0].ints = ones;
  attrs[0].count = 4;
  attrs[1].name = "padding";
  attrs[1].kind = DTG_ATTR_STRING;
  attrs[1].s = "SAME";
  attrs[1].s_len = 4;
  const dtg_value y = add("Conv2D", {x, filter}, {attrs[0], attrs[1]});
  connect();
  is_cut(y, {x, filter}, {filled(DTG_F32, {1, 64, 64, 64}), filled(DTG_F32, {3, 3, 64, 64})},
         {filled(DTG_F32, {16, 64, 64, 512}), filled(DTG_F32, {3, 3, 512, 512})}, 1024);
}

// Draws change a stream of numbers and nothing else, so they may be left in their midst.
TEST_F(Cancel, InTheMidstOfADraw) {
  const int64_t one = 1;
  dtg_value shape{};
  OK(dtg_placeholder(graph, "shape", DTG_I32, &one, 1, &shape));
  const dtg_value y = add("RandomStandardNormal", {shape}, {of_floats()});
  connect();
  const auto count = [](int32_t n) {
    dtg_tensor* tensor = filled(DTG_I32, {1});
    *static_cast<int32_t*>(dtg_tensor_mutable_data(tensor)) = n;
    return tensor;
  };
  is_cut(y, {shape}, {count(100'000)}, {count(50'000'000)}, 500);
}

TEST_F(Cancel, InTheMidstOfAShuffle) {
  const int64_t open = -1;
  dtg_value x{}, y{};
  OK(dtg_placeholder(graph, "x", DTG_F32, &open, 1, &x));
  OK(dtg_add1(graph, "RandomShuffle", x, &y));
  connect();
  is_cut(y, {x}, {filled(DTG_F32, {1'000'000})}, {filled(DTG_F32, {30'000'000})}, 30);
}

// So may what only reads a variable.
TEST_F(Cancel, InTheMidstOfALookup) {
  const int64_t open = -1;
  dtg_value ids{};
  const dtg_variable table = variable("table", 1 << 20);
  OK(dtg_placeholder(graph, "ids", DTG_I32, &open, 1, &ids));
  const dtg_value y = add("ResourceGather", {table.handle, ids}, {of_floats()});
  initialise();
  const auto all_over = [](int64_t n) {
    dtg_tensor* tensor = filled(DTG_I32, {n});
    auto* const data = static_cast<int32_t*>(dtg_tensor_mutable_data(tensor));
    for (int64_t i = 0; i < n; ++i) data[i] = static_cast<int32_t>(i * 7919 & ((1 << 20) - 1));
    return tensor;
  };
  is_cut(y, {ids}, {all_over(1'000'000)}, {all_over(60'000'000)}, 60);
}

// All that wait on one cancellation, each on a thread.
TEST_F(Cancel, WaitsInAQueue) {
  const dtg_value value = dequeue();
  connect();
  std::vector<std::thread> waiting;
  std::atomic<int> begun{0};
  for (int i = 0; i < 4; ++i) {
    waiting.emplace_back([&] {
      dtg_tensor* out = nullptr;
      ++begun;
      refused(run(value, {}, {}, 0, cancellation, &out), DTG_CANCELLED, "a dequeue");
      EXPECT_EQ(out, nullptr);
    });
  }
  while (begun < 4) std::this_thread::yield();
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  dtg_cancellation_cancel(cancellation);
  dtg_cancellation_cancel(cancellation);
  for (std::thread& thread : waiting) thread.join();
}

TEST_F(Cancel, BeforeAndAfterTheCall) {
  const dtg_variable count = variable("count", 1);
  const dtg_value ones[] = {count.handle};
  dtg_value one{}, more{};
  const int64_t dims[] = {1};
  const float value = 1;
  OK(dtg_const_of(graph, DTG_F32, dims, 1, &value, sizeof value, &one));
  OK(dtg_add2(graph, "AssignAddVariableOp", ones[0], one, &more));
  initialise();
  dtg_run_args args = DTG_RUN_ARGS_INIT;
  args.targets = &more;
  args.num_targets = 1;
  dtg_callable* callable = nullptr;
  OK(dtg_session_prepare(session, &args, &callable));
  // One that nobody uses ends nothing, however often it is given.
  args.cancellation = cancellation;
  for (int i = 0; i < 3; ++i) OK(dtg_session_run(session, &args));
  for (int i = 0; i < 3; ++i) OK(dtg_callable_run_cancellable(callable, nullptr, 0, nullptr, 0, 0, cancellation));
  OK(dtg_callable_run_cancellable(callable, nullptr, 0, nullptr, 0, 0, nullptr));
  dtg_cancellation_cancel(nullptr);
  dtg_cancellation_cancel(cancellation);
  EXPECT_EQ(read(count.read)[0], 7) << "a cancel after the calls changes nothing";
  refused(dtg_session_run(session, &args), DTG_CANCELLED, "a run with a used cancellation");
  refused(dtg_callable_run_cancellable(callable, nullptr, 0, nullptr, 0, 0, cancellation), DTG_CANCELLED, "a call with one");
  int32_t ran = 5;
  refused(dtg_session_run_if_brief(session, &args, &ran), DTG_CANCELLED, "a brief run with one");
  EXPECT_EQ(ran, 0);
  EXPECT_EQ(read(count.read)[0], 7) << "nothing of a refused run happens";
  OK(dtg_callable_run(callable, nullptr, 0, nullptr, 0, 0));
  dtg_cq* queue = nullptr;
  dtg_run* started = nullptr;
  OK(dtg_cq_create(&queue));
  refused(dtg_session_run_async(session, &args, queue, 1, &started), DTG_INVALID_ARGUMENT, "an asynchronous run with one");
  dtg_cq_release(queue);
  dtg_callable_release(callable);
}

// Calls one after the other, each with a cancellation that another thread uses at any moment, also when the next call is under way.
TEST_F(Cancel, AtAnyMomentOfManyCalls) {
  dtg_value x{}, y{};
  const int64_t dims[] = {2000};
  OK(dtg_placeholder(graph, "x", DTG_F32, dims, 1, &x));
  OK(dtg_add1(graph, "Exp", x, &y));
  connect();
  dtg_run_args args = DTG_RUN_ARGS_INIT;
  args.feeds = &x;
  args.num_feeds = 1;
  args.fetches = &y;
  args.num_fetches = 1;
  dtg_callable* callable = nullptr;
  OK(dtg_session_prepare(session, &args, &callable));
  dtg_tensor* const in = filled(DTG_F32, {2000});
  std::atomic<dtg_cancellation*> given{nullptr};
  std::atomic<bool> over{false};
  std::thread other([&] {
    std::minstd_rand random(1);
    while (!over) {
      if (dtg_cancellation* const taken = given.exchange(nullptr)) {
        for (auto spins = random() % 3000; spins > 0; --spins) std::atomic_signal_fence(std::memory_order_seq_cst);
        dtg_cancellation_cancel(taken);
        dtg_cancellation_release(taken);
      }
    }
  });
  int whole = 0, cut = 0;
  for (int i = 0; i < 20000; ++i) {
    dtg_cancellation* mine = nullptr;
    OK(dtg_cancellation_create(&mine));
    dtg_cancellation* const old = given.exchange(dtg_cancellation_retain(mine));
    dtg_cancellation_release(old);
    dtg_tensor* out = nullptr;
    const dtg_tensor* const feeds[] = {in};
    dtg_error* const error = dtg_callable_run_cancellable(callable, feeds, 1, &out, 1, 0, mine);
    if (error) {
      EXPECT_EQ(dtg_error_code(error), DTG_CANCELLED);
      EXPECT_EQ(out, nullptr);
      dtg_error_release(error);
      ++cut;
    } else {
      EXPECT_EQ(static_cast<const float*>(dtg_tensor_data(out, nullptr))[1999], 1);
      ++whole;
    }
    dtg_tensor_release(out);
    dtg_cancellation_release(mine);
    // Without one that is used, nothing is left of it.
    if (i % 100 == 0) {
      out = nullptr;
      OK(dtg_callable_run(callable, feeds, 1, &out, 1, 0));
      dtg_tensor_release(out);
    }
  }
  over = true;
  other.join();
  dtg_cancellation_release(given.load());
  EXPECT_EQ(whole + cut, 20000);
  dtg_tensor_release(in);
  dtg_callable_release(callable);
}

// Runs that write, cut at moments all over their length. `changed` is whether what one of them writes is there, as a whole.
template <class Run, class Look>
void cut_at_all_moments(Run&& run, Look&& look) {
  double whole = 1e9;
  for (int i = 0; i < 4; ++i) {
    const auto began = steady_clock::now();
    OK(run(int64_t{0}, nullptr));
    if (i > 0) whole = std::min(whole, Ms(steady_clock::now() - began).count());
    look();
  }
  for (int i = 0; i < 60; ++i) {
    const auto at = static_cast<int64_t>(whole * 1e6 * (i % 20 + 1) / 20);
    dtg_cancellation* by = nullptr;
    OK(dtg_cancellation_create(&by));
    std::thread other;
    if (i % 2 == 1) {
      other = std::thread([&] {
        std::this_thread::sleep_for(std::chrono::nanoseconds(at));
        dtg_cancellation_cancel(by);
      });
    }
    dtg_error* const error = run(i % 2 == 1 ? 0 : at, by);
    if (error) {
      EXPECT_EQ(dtg_error_code(error), i % 2 == 1 ? DTG_CANCELLED : DTG_DEADLINE_EXCEEDED) << text_of(error);
    }
    dtg_error_release(error);
    if (other.joinable()) other.join();
    dtg_cancellation_release(by);
    look();
  }
}

TEST_F(Cancel, AVariableIsNeverHalfWritten) {
  constexpr int64_t kCount = 1 << 20;
  const dtg_variable w = variable("w", kCount);
  dtg_value half{}, ones{}, more{};
  OK(dtg_const_f32(graph, 1, &half));
  OK(dtg_add2(graph, "AddV2", w.read, half, &ones));
  for (int i = 0; i < 3; ++i) OK(dtg_add1(graph, "Tanh", ones, &ones));
  OK(dtg_add2(graph, "AssignAddVariableOp", w.handle, ones, &more));
  initialise();
  cut_at_all_moments(
      [&](int64_t timeout_ns, dtg_cancellation* by) {
        dtg_run_args args = DTG_RUN_ARGS_INIT;
        args.targets = &more;
        args.num_targets = 1;
        args.timeout_ns = timeout_ns;
        args.cancellation = by;
        return dtg_session_run(session, &args);
      },
      [&] {
        const std::vector<float> now = read(w.read);
        EXPECT_EQ(std::ranges::count(now, now[0]), kCount) << "some elements were written and others not";
      });
}

TEST_F(Cancel, AnOptimizersStepHappensWholeOrNot) {
  constexpr int64_t kCount = 1 << 19;
  const dtg_variable w = variable("w", kCount);
  dtg_value target{}, loss{};
  OK(dtg_const_f32(graph, 3, &target));
  dtg_value aim{};
  OK(dtg_add1(graph, "ZerosLike", w.read, &aim));
  OK(dtg_add2(graph, "AddV2", aim, target, &aim));
  dtg_value difference{};
  OK(dtg_add2(graph, "SquaredDifference", w.read, aim, &difference));
  const int64_t axis[] = {0};
  dtg_value axes{};
  OK(dtg_const_i64s(graph, axis, 1, &axes));
  OK(dtg_add2(graph, "Sum", difference, axes, &loss));
  dtg_optimizer momentum = DTG_OPTIMIZER_INIT;
  momentum.kind = DTG_OPT_MOMENTUM;
  momentum.momentum = 0.9;
  dtg_training training = DTG_TRAINING_INIT;
  OK(dtg_nn_minimize(model, loss, &momentum, &training));
  initialise();
  dtg_value slot{};
  for (size_t i = 0; i < dtg_model_variable_count(model); ++i) {
    dtg_variable each = DTG_VARIABLE_INIT;
    OK(dtg_model_variable(model, i, &each));
    if (each.rank == 1 && each.handle.id != w.handle.id) slot = each.read;
  }
  ASSERT_NE(slot.id, 0u);
  // Each step moves w by what is then in the slot.
  float before = 0, last = 0;
  cut_at_all_moments(
      [&](int64_t timeout_ns, dtg_cancellation* by) {
        dtg_run_args args = DTG_RUN_ARGS_INIT;
        args.targets = &training.train;
        args.num_targets = 1;
        args.timeout_ns = timeout_ns;
        args.cancellation = by;
        return dtg_session_run(session, &args);
      },
      [&] {
        const std::vector<float> now = read(w.read), moved = read(slot);
        EXPECT_EQ(std::ranges::count(now, now[0]), kCount);
        EXPECT_EQ(std::ranges::count(moved, moved[0]), kCount);
        if (now[0] == before) {
          EXPECT_EQ(moved[0], last) << "the slot was written and the variable not";
        } else {
          const float gradient = 2 * (before - 3), accumulated = last * 0.9f + gradient;
          EXPECT_NEAR(moved[0], accumulated, 1e-5f + 1e-4f * std::abs(accumulated));
          EXPECT_NEAR(now[0], before - 0.01f * moved[0], 1e-5f + 1e-4f * std::abs(before));
        }
        before = now[0], last = moved[0];
      });
}

// ---- runs that are made at once -------------------------------------------------------------------------------

TEST_F(Cancel, ABriefRunIsMadeAtOnce) {
  dtg_value x{}, square{}, big{}, never = dequeue();
  const int64_t open[] = {-1}, none[] = {0};
  OK(dtg_placeholder(graph, "x", DTG_F32, open, 1, &x));
  OK(dtg_add1(graph, "Square", x, &square));
  OK(dtg_add2(graph, "AddV2", x, never, &big));
  connect();
  dtg_tensor* const in = vector_of({3, 4});
  const dtg_tensor* feeds[] = {in};
  dtg_tensor* out = nullptr;
  dtg_run_args args = DTG_RUN_ARGS_INIT;
  args.feeds = &x;
  args.feed_tensors = feeds;
  args.num_feeds = 1;
  args.fetches = &square;
  args.fetched = &out;
  args.num_fetches = 1;
  // A machine may be so busy that even these take long; then they are not brief for a while, and again after that.
  int made = 0;
  for (int i = 0; i < 1000; ++i) {
    int32_t ran = 7;
    OK(dtg_session_run_if_brief(session, &args, &ran));
    ASSERT_TRUE(ran == 0 || ran == 1);
    made += ran;
    EXPECT_EQ(out != nullptr, ran == 1);
    if (out) {
      EXPECT_EQ(static_cast<const float*>(dtg_tensor_data(out, nullptr))[1], 16);
    }
    dtg_tensor_release(std::exchange(out, nullptr));
  }
  EXPECT_GT(made, 0);
  // What may wait is not.
  int32_t ran = 7;
  args.fetches = &big;
  OK(dtg_session_run_if_brief(session, &args, &ran));
  EXPECT_EQ(ran, 0);
  EXPECT_EQ(out, nullptr);
  // Nor what is large.
  dtg_tensor* const large = filled(DTG_F32, {1 << 20});
  feeds[0] = large;
  args.fetches = &square;
  OK(dtg_session_run_if_brief(session, &args, &ran));
  EXPECT_EQ(ran, 0);
  EXPECT_EQ(out, nullptr);
  // Nothing has run where the request is wrong.
  dtg_tensor* wrong = nullptr;
  OK(dtg_tensor_create(DTG_I32, none, 1, nullptr, 0, nullptr, nullptr, &wrong));
  feeds[0] = wrong;
  refused(dtg_session_run_if_brief(session, &args, &ran), DTG_INVALID_ARGUMENT, "a wrong type");
  EXPECT_EQ(ran, 0);
  refused(dtg_session_run_if_brief(session, &args, nullptr), DTG_INVALID_ARGUMENT, "no place for the answer");
  for (dtg_tensor* tensor : {in, large, wrong}) dtg_tensor_release(tensor);
}

TEST_F(Cancel, ABriefRunThatFailsSaysSo) {
  const dtg_variable w = variable("w", 4);
  connect();
  dtg_tensor* out = nullptr;
  dtg_run_args args = DTG_RUN_ARGS_INIT;
  args.fetches = &w.read;
  args.fetched = &out;
  args.num_fetches = 1;
  int32_t ran = 0;
  refused(dtg_session_run_if_brief(session, &args, &ran), DTG_FAILED_PRECONDITION, "a variable without value");
  EXPECT_EQ(ran, 1);
  EXPECT_EQ(out, nullptr);
}

}  // namespace
}  // namespace outside
