// A warm training step through the C ABI takes no memory and no lock: every malloc, mimalloc and mutex call of the
// process is counted while it runs. A program of its own, because it stands in front of the C library's functions.
#include <dlfcn.h>
#include <dtg/dtg.h>
#include <dtg/sugar.h>
#include <gtest/gtest.h>
#include <pthread.h>

#include <atomic>
#include <cstdlib>
#include <vector>

#include "sanitized.h"

#if !DTG_SANITIZED
namespace {

std::atomic<bool> counting{false};
std::atomic<long> allocations{0}, frees{0}, locks{0}, waits{0}, blocks{0};
// The first ones, for the debugger of whoever reads a failure.
void* callers[8] = {};

void count(std::atomic<long>& what, void* caller) {
  if (!counting.load(std::memory_order_relaxed)) return;
  const long number = what.fetch_add(1, std::memory_order_relaxed);
  if (number < 8) callers[number] = caller;
}
#define COUNT(what) count(what, __builtin_return_address(0))

template <class Fn>
Fn next(std::atomic<Fn>& cell, const char* name) {
  Fn fn = cell.load(std::memory_order_acquire);
  if (!fn) cell.store(fn = reinterpret_cast<Fn>(dlsym(RTLD_NEXT, name)), std::memory_order_release);
  return fn;
}
using MutexFn = int (*)(pthread_mutex_t*);
using WaitFn = int (*)(pthread_cond_t*, pthread_mutex_t*);
std::atomic<MutexFn> real_lock{nullptr}, real_trylock{nullptr};
std::atomic<WaitFn> real_wait{nullptr};

}  // namespace

extern "C" {

void* __libc_malloc(size_t size);
void* __libc_calloc(size_t number, size_t size);
void* __libc_realloc(void* old, size_t size);
void* __libc_memalign(size_t alignment, size_t size);
void __libc_free(void* block);
void* __real_mi_malloc_aligned(size_t size, size_t alignment);

void* malloc(size_t size) {
  COUNT(allocations);
  return __libc_malloc(size);
}
void* calloc(size_t number, size_t size) {
  COUNT(allocations);
  return __libc_calloc(number, size);
}
void* realloc(void* old, size_t size) {
  COUNT(allocations);
  return __libc_realloc(old, size);
}
void* aligned_alloc(size_t alignment, size_t size) {
  COUNT(allocations);
  return __libc_memalign(alignment, size);
}
int posix_memalign(void** out, size_t alignment, size_t size) {
  COUNT(allocations);
  *out = __libc_memalign(alignment, size);
  return *out ? 0 : 12;
}
void free(void* block) {
  if (block) COUNT(frees);
  __libc_free(block);
}
void* __wrap_mi_malloc_aligned(size_t size, size_t alignment) {
  COUNT(blocks);
  return __real_mi_malloc_aligned(size, alignment);
}
int pthread_mutex_lock(pthread_mutex_t* mutex) {
  COUNT(locks);
  return next(real_lock, "pthread_mutex_lock")(mutex);
}
int pthread_mutex_trylock(pthread_mutex_t* mutex) {
  COUNT(locks);
  return next(real_trylock, "pthread_mutex_trylock")(mutex);
}
int pthread_cond_wait(pthread_cond_t* condition, pthread_mutex_t* mutex) {
  COUNT(waits);
  return next(real_wait, "pthread_cond_wait")(condition, mutex);
}

}  // extern "C"

namespace dtg {
namespace {

#define OK(call)                                                      \
  do {                                                                \
    dtg_error* error_ = (call);                                       \
    ASSERT_EQ(error_, nullptr) << dtg_error_message(error_, nullptr); \
  } while (0)

class WarmStep : public testing::TestWithParam<int> {
 protected:
  void SetUp() override {
    dtg_runtime_options options = DTG_RUNTIME_OPTIONS_INIT;
    options.compute_threads = GetParam();
    OK(dtg_runtime_create(&options, &runtime_));
    OK(dtg_graph_create(runtime_, &graph_));
    OK(dtg_model_create(graph_, 1, &model_));
    const int64_t pixels[] = {kBatch, 28, 28, 1}, labels[] = {kBatch};
    OK(dtg_placeholder(graph_, "pixels", DTG_F32, pixels, 4, &feeds_[0]));
    OK(dtg_placeholder(graph_, "labels", DTG_I64, labels, 1, &feeds_[1]));
    OK(dtg_tensor_allocate(DTG_F32, pixels, 4, &tensors_[0]));
    OK(dtg_tensor_allocate(DTG_I64, labels, 1, &tensors_[1]));
    auto* values = static_cast<float*>(dtg_tensor_mutable_data(tensors_[0]));
    for (int64_t i = 0; i < dtg_tensor_count(tensors_[0]); ++i) values[i] = static_cast<float>(i % 17) / 17;
  }
  void TearDown() override {
    for (dtg_tensor* tensor : tensors_) dtg_tensor_release(tensor);
    dtg_callable_release(callable_);
    dtg_session_release(session_);
    dtg_model_release(model_);
    dtg_graph_release(graph_);
    dtg_runtime_release(runtime_);
  }

  void dense(dtg_value* x, int64_t units, dtg_activation activation) {
    dtg_dense layer = DTG_DENSE_INIT;
    layer.units = units;
    layer.activation = activation;
    OK(dtg_nn_dense(model_, *x, &layer, x));
  }
  void convolution(dtg_value* x, int64_t filters) {
    dtg_conv2d layer = DTG_CONV2D_INIT;
    layer.filters = filters;
    layer.kernel_height = 5;
    layer.padding = DTG_PADDING_SAME;
    layer.activation = DTG_ACT_RELU;
    OK(dtg_nn_conv2d(model_, *x, &layer, x));
    OK(dtg_nn_max_pool2d(model_, *x, nullptr, x));
  }

  void train(dtg_value logits, dtg_optimizer_kind kind) {
    dtg_optimizer optimizer = DTG_OPTIMIZER_INIT;
    optimizer.kind = kind;
    if (kind == DTG_OPT_MOMENTUM) optimizer.momentum = 0.9;
    dtg_training training = DTG_TRAINING_INIT;
    dtg_value init;
    OK(dtg_nn_sparse_softmax_cross_entropy(model_, feeds_[1], logits, &loss_));
    OK(dtg_nn_minimize(model_, loss_, &optimizer, &training));
    OK(dtg_model_init(model_, &init));
    OK(dtg_session_connect(runtime_, nullptr, 0, graph_, nullptr, &session_));
    OK(dtg_run_target(session_, init));
    dtg_run_args args = DTG_RUN_ARGS_INIT;
    args.feeds = feeds_;
    args.num_feeds = 2;
    args.fetches = &loss_;
    args.num_fetches = 1;
    args.targets = &training.train;
    args.num_targets = 1;
    OK(dtg_session_prepare(session_, &args, &callable_));
    counting.store(true);
    for (int i = 0; i < 20; ++i) step();
    counting.store(false);
    // A cold step needs all of it: the counters count.
    EXPECT_GT(allocations, 0);
    EXPECT_GT(frees, 0);
    EXPECT_GT(blocks, 0);
    EXPECT_GT(locks, 0);
    const size_t handles = dtg_live_handles();
    for (auto* each : {&allocations, &frees, &locks, &waits, &blocks}) each->store(0);
    counting.store(true);
    for (int i = 0; i < 20; ++i) step();
    counting.store(false);
    EXPECT_EQ(allocations, 0) << "first from " << callers[0] << ", base " << reinterpret_cast<void*>(&dtg_version);
    EXPECT_EQ(frees, 0) << "first from " << callers[0];
    EXPECT_EQ(blocks, 0) << "first from " << callers[0];
    EXPECT_EQ(locks, 0) << "first from " << callers[0] << ", base " << reinterpret_cast<void*>(&dtg_version);
    EXPECT_EQ(waits, 0);
    EXPECT_EQ(dtg_live_handles(), handles);
  }

  void step() {
    dtg_tensor* loss = nullptr;
    dtg_error* const error = dtg_callable_run(callable_, tensors_, 2, &loss, 1, 0);
    if (error) {
      counting.store(false);
      FAIL() << dtg_error_message(error, nullptr);
    }
    dtg_tensor_release(loss);
  }

  static constexpr int64_t kBatch = 32;
  dtg_runtime* runtime_ = nullptr;
  dtg_graph* graph_ = nullptr;
  dtg_model* model_ = nullptr;
  dtg_session* session_ = nullptr;
  dtg_callable* callable_ = nullptr;
  dtg_tensor* tensors_[2] = {};
  dtg_value feeds_[2] = {};
  dtg_value loss_ = {};
};

TEST_P(WarmStep, OfAMultilayerPerceptron) {
  for (const dtg_optimizer_kind kind : {DTG_OPT_MOMENTUM}) {
    dtg_value x = feeds_[0];
    OK(dtg_nn_flatten(model_, x, &x));
    dense(&x, 64, DTG_ACT_RELU);
    dense(&x, 32, DTG_ACT_RELU);
    dense(&x, 10, DTG_ACT_NONE);
    train(x, kind);
  }
}

TEST_P(WarmStep, OfALeNet) {
  dtg_value x = feeds_[0];
  convolution(&x, 6);
  convolution(&x, 16);
  OK(dtg_nn_flatten(model_, x, &x));
  dense(&x, 120, DTG_ACT_RELU);
  dense(&x, 84, DTG_ACT_TANH);
  dense(&x, 10, DTG_ACT_NONE);
  train(x, DTG_OPT_MOMENTUM);
}

TEST_P(WarmStep, OfAdam) {
  dtg_value x = feeds_[0];
  OK(dtg_nn_flatten(model_, x, &x));
  dense(&x, 16, DTG_ACT_SIGMOID);
  dense(&x, 10, DTG_ACT_NONE);
  train(x, DTG_OPT_ADAM);
}

// Steps of a trainer with a metric: those that the host makes, and those of a fit, whose batches come from a data set.
TEST_P(WarmStep, OfATrainer) {
  dtg_value x = feeds_[0];
  OK(dtg_nn_flatten(model_, x, &x));
  dense(&x, 16, DTG_ACT_RELU);
  dense(&x, 10, DTG_ACT_NONE);
  OK(dtg_nn_sparse_softmax_cross_entropy(model_, feeds_[1], x, &loss_));
  dtg_metric metric = DTG_METRIC_INIT;
  metric.kind = DTG_METRIC_SPARSE_CATEGORICAL_ACCURACY;
  dtg_metric_values accuracy = DTG_METRIC_VALUES_INIT;
  OK(dtg_nn_metric(model_, &metric, feeds_[1], x, {0}, &accuracy));
  dtg_trainer_options options = DTG_TRAINER_OPTIONS_INIT;
  options.feeds = feeds_;
  options.num_feeds = 2;
  options.loss = loss_;
  dtg_trainer* trainer = nullptr;
  OK(dtg_trainer_create(model_, &options, &trainer));
  OK(dtg_trainer_add_metric(trainer, "accuracy", DTG_STRLEN, &accuracy));
  const auto warm = [](auto&& step, long expected = 0) {
    for (int i = 0; i < 40; ++i) {
      if (i == 20) {
        for (auto* each : {&allocations, &frees, &locks, &waits, &blocks}) each->store(0);
        counting.store(true);
      }
      dtg_error* const error = step();
      if (error) counting.store(false);
      OK(error);
    }
    counting.store(false);
    EXPECT_LE(allocations, expected) << "first from " << callers[0] << ", base " << reinterpret_cast<void*>(&dtg_version);
    EXPECT_EQ(blocks, 0);
    EXPECT_EQ(locks, 0) << "first from " << callers[0] << ", base " << reinterpret_cast<void*>(&dtg_version);
  };
  warm([&] { return dtg_trainer_train_step(trainer, tensors_, 2, nullptr, nullptr); });
  dtg_dataset* data = nullptr;
  dtg_fit fit = DTG_FIT_INIT;
  fit.steps_per_epoch = 1000;
  OK(dtg_dataset_tensors(runtime_, tensors_, 2, &data));
  OK(dtg_dataset_repeat(data, -1));
  OK(dtg_dataset_batch(data, kBatch, 1));
  // What the data set takes for its batches is what a loop by hand would take too.
  warm(
      [&]() -> dtg_error* {
        dtg_tensor* batch[2] = {};
        int32_t more = 0;
        dtg_error* const error = dtg_dataset_next(data, batch, 2, &more);
        for (dtg_tensor* tensor : batch) dtg_tensor_release(tensor);
        return error;
      },
      1000);
  const long of_data = allocations;
  OK(dtg_trainer_begin(trainer, data, nullptr, &fit));
  dtg_fit_event event = DTG_FIT_EVENT_INIT;
  warm([&] { return dtg_trainer_next(trainer, &event); }, of_data);
  EXPECT_EQ(event.batch, 38);
  dtg_trainer_release(trainer);
  dtg_dataset_release(data);
}

// 50 rounds of a loop with a condition inside, fetched: no round takes memory or a lock.
TEST_P(WarmStep, OfALoop) {
  dtg_graph *test = nullptr, *round = nullptr, *yes = nullptr, *no = nullptr;
  dtg_function *less = nullptr, *body = nullptr, *then = nullptr, *otherwise = nullptr;
  dtg_value start[2], inside[2], end[2], limit, one, later, out;
  const int32_t numbers[] = {0, 50, 1};
  dtg_value* const constants[] = {&start[0], &limit, &one};
  for (int i = 0; i < 3; ++i) OK(dtg_const_of(graph_, DTG_I32, nullptr, 0, &numbers[i], sizeof numbers[i], constants[i]));
  dtg_value x = feeds_[0];
  OK(dtg_nn_flatten(model_, x, &x));
  start[1] = x;
  OK(dtg_function_begin(graph_, "less", DTG_STRLEN, &test));
  OK(dtg_function_add_argument_like(test, start[0], &inside[0]));
  OK(dtg_function_add_argument(test, DTG_F32, nullptr, DTG_STRLEN, &inside[1]));
  OK(dtg_add2(test, "Less", inside[0], limit, &out));
  OK(dtg_function_end(test, &out, 1, nullptr, 0, &less));
  OK(dtg_function_begin(graph_, "round", DTG_STRLEN, &round));
  OK(dtg_function_add_argument_like(round, start[0], &inside[0]));
  OK(dtg_function_add_argument_like(round, start[1], &inside[1]));
  OK(dtg_add2(round, "Greater", inside[0], one, &later));
  OK(dtg_function_begin(round, "then", DTG_STRLEN, &yes));
  OK(dtg_add2(yes, "Mul", inside[1], x, &out));
  OK(dtg_function_end(yes, &out, 1, nullptr, 0, &then));
  OK(dtg_function_begin(round, "otherwise", DTG_STRLEN, &no));
  OK(dtg_add2(no, "AddV2", inside[1], x, &out));
  OK(dtg_function_end(no, &out, 1, nullptr, 0, &otherwise));
  OK(dtg_graph_add_if(round, later, then, otherwise, &end[1], 1));
  OK(dtg_add2(round, "AddV2", inside[0], one, &end[0]));
  OK(dtg_function_end(round, end, 2, nullptr, 0, &body));
  OK(dtg_graph_add_while(graph_, start, 2, less, body, end));
  for (dtg_graph* each : {test, round, yes, no}) dtg_graph_release(each);
  for (dtg_function* each : {less, body, then, otherwise}) dtg_function_release(each);
  dtg_value logits = end[1];
  dense(&logits, 10, DTG_ACT_NONE);
  // Nothing that is trained comes before the loop, so nothing differentiates it.
  train(logits, DTG_OPT_MOMENTUM);
}

INSTANTIATE_TEST_SUITE_P(Threads, WarmStep, testing::Values(1, 2));

}  // namespace
}  // namespace dtg
#endif
