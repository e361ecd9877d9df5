// Two threads inside one "single" object: whoever comes second is refused with both names, nothing is torn, and the object goes on
// serving. Public headers only.
#include <pthread.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "world.h"

namespace outside {
namespace {

using Clock = std::chrono::steady_clock;

// Both threads call until one of them was refused; gives the message. Whatever else fails is a failure of the test.
template <class Fn>
std::string collide(Fn&& call) {
  std::atomic<bool> over{false};
  std::string message[2];
  const auto hammer = [&](int which, const char* name) {
    pthread_setname_np(pthread_self(), name);
    const auto until = Clock::now() + std::chrono::seconds(60);
    while (!over.load() && Clock::now() < until) {
      dtg_error* const error = call();
      if (!error) continue;
      EXPECT_EQ(dtg_error_code(error), DTG_FAILED_PRECONDITION) << text_of(error);
      message[which] = text_of(error);
      dtg_error_release(error);
      over = true;
    }
  };
  std::thread second([&] { hammer(1, "second"); });
  std::thread first([&] { hammer(0, "first"); });
  second.join();
  first.join();
  return message[0] + message[1];
}

void names_both(const std::string& message, const char* noun) {
  for (const char* part : {"\"first\"", "\"second\"", noun, "one thread at a time"})
    EXPECT_NE(message.find(part), std::string::npos) << noun << ": " << message;
}

class Owner : public World {};

TEST_F(Owner, OfADataSet) {
  dtg_dataset* data = nullptr;
  OK(dtg_dataset_range(nullptr, 0, 1000, 1, &data));
  OK(dtg_dataset_shuffle(data, 100, 1));
  OK(dtg_dataset_repeat(data, -1));
  OK(dtg_dataset_batch(data, 8, 1));
  names_both(collide([&]() -> dtg_error* {
               dtg_tensor* batch = nullptr;
               int32_t more = 0;
               dtg_error* const error = dtg_dataset_next(data, &batch, 1, &more);
               dtg_tensor_release(batch);
               return error;
             }),
             "data set");
  dtg_tensor* batch = nullptr;
  int32_t more = 0;
  OK(dtg_dataset_next(data, &batch, 1, &more));
  EXPECT_EQ(more, 1);
  dtg_tensor_release(batch);
  dtg_dataset_release(data);
}

TEST_F(Owner, OfAModelAndItsGraph) {
  dtg_graph* graph = nullptr;
  dtg_model* model = nullptr;
  OK(dtg_graph_create(nullptr, &graph));
  OK(dtg_model_create(graph, 1, &model));
  const int64_t dims[] = {-1, 4};
  dtg_value x{};
  OK(dtg_placeholder(graph, "x", DTG_F32, dims, 2, &x));
  dtg_dense layer = DTG_DENSE_INIT;
  layer.units = 3;
  names_both(collide([&] {
               dtg_value y{};
               return dtg_nn_dense(model, x, &layer, &y);
             }),
             "model");
  names_both(collide([&] {
               dtg_value y{};
               return dtg_add2(graph, "Mul", x, x, &y);
             }),
             "graph");
  dtg_graph* body = nullptr;
  OK(dtg_function_begin(graph, "body", DTG_STRLEN, &body));
  names_both(collide([&] {
               dtg_value argument{};
               return dtg_function_add_argument(body, DTG_F32, nullptr, 0, &argument);
             }),
             "graph");
  dtg_graph_release(body);
  dtg_value y{};
  OK(dtg_nn_dense(model, x, &layer, &y));
  dtg_model_release(model);
  dtg_graph_release(graph);
}

TEST_F(Owner, OfAWeightSet) {
  dtg_weights* weights = nullptr;
  dtg_tensor* const tensor = vector_of({1, 2});
  OK(dtg_weights_create(&weights));
  std::atomic<int> number{0};
  names_both(collide([&] { return dtg_weights_set(weights, std::to_string(number++ % 500).c_str(), DTG_STRLEN, tensor); }), "weight set");
  // Readers may be several. (Of two threads at once either may have been refused.)
  OK(dtg_weights_set(weights, "1", DTG_STRLEN, tensor));
  std::atomic<int> refused_readers{0};
  const auto read = [&] {
    for (int i = 0; i < 20'000; ++i) {
      dtg_tensor* out = nullptr;
      dtg_error* const error = dtg_weights_get(weights, "1", DTG_STRLEN, &out);
      refused_readers += error != nullptr;
      dtg_error_release(error);
      dtg_tensor_release(out);
    }
  };
  std::thread other(read);
  read();
  other.join();
  EXPECT_EQ(refused_readers.load(), 0);
  dtg_tensor_release(tensor);
  dtg_weights_release(weights);
}

}  // namespace
}  // namespace outside
