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

// The first thread does the one, the second the other, until one of them was refused; gives the message. Whatever else fails is a failure
// of the test.
template <class One, class Other>
std::string collide(One&& one, Other&& other) {
  std::atomic<bool> over{false};
  std::string message[2];
  const auto hammer = [&](auto& call, int which, const char* name) {
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
  std::thread second([&] { hammer(other, 1, "second"); });
  std::thread first([&] { hammer(one, 0, "first"); });
  second.join();
  first.join();
  return message[0] + message[1];
}
template <class Fn>
std::string collide(Fn&& call) {
  return collide(call, call);
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

TEST_F(Owner, OfAnEventWriter) {
  std::atomic<int64_t> step{0};
  names_both(collide([&] { return dtg_event_writer_scalar(h.writer, "loss", DTG_STRLEN, step++, 1.0); }), "event writer");
  OK(dtg_event_writer_scalar(h.writer, "loss", DTG_STRLEN, step++, 1.0));
  OK(dtg_event_writer_flush(h.writer));
}

// They are inside of their model.
TEST_F(Owner, OfAStrategy) {
  names_both(collide([&] {
               dtg_strategy_info told = DTG_STRATEGY_INFO_INIT;
               return dtg_strategy_describe(h.strategy, &told);
             }),
             "model of the strategy");
  names_both(collide(
                 [&] {
                   dtg_strategy_info told = DTG_STRATEGY_INFO_INIT;
                   return dtg_strategy_describe(h.strategy, &told);
                 },
                 [&] { return dtg_model_set_metadata(h.model, "made by", DTG_STRLEN, "two threads", DTG_STRLEN); }),
             "model");
}

TEST_F(Owner, OfAMesh) {
  names_both(collide([&] { return dtg_mesh_abandon(h.mesh); }), "model of the mesh");
  OK(dtg_mesh_abandon(h.mesh));
}

// A model of one weight, numbers to train it with, and checkpoints of both.
class OwnerOfCheckpoints : public Owner {
 protected:
  void SetUp() override {
    Owner::SetUp();
    directory_ = folder("owned");
    OK(dtg_graph_create(nullptr, &graph_));
    OK(dtg_model_create(graph_, 1, &model_));
    dtg_variable w = DTG_VARIABLE_INIT;
    OK(dtg_variable_f32(model_, "w", 0.0, &w));
    OK(dtg_session_connect(nullptr, "local", DTG_STRLEN, graph_, nullptr, &session_));
    OK(dtg_dataset_range(nullptr, 0, 1000, 1, &data_));
    OK(dtg_dataset_shuffle(data_, 100, 1));
    OK(dtg_dataset_repeat(data_, -1));
    OK(dtg_dataset_batch(data_, 8, 1));
    dtg_checkpoint_options where = DTG_CHECKPOINT_OPTIONS_INIT;
    where.directory = directory_.c_str();
    OK(dtg_checkpoint_open(model_, session_, &where, &sets_));
    // One data set may have two names.
    OK(dtg_checkpoint_add_data(sets_, "train", DTG_STRLEN, data_));
    OK(dtg_checkpoint_add_data(sets_, "again", DTG_STRLEN, data_));
    OK(dtg_checkpoint_resume(sets_, nullptr, nullptr));
    OK(dtg_checkpoint_save(sets_, 1, 0));
  }
  void TearDown() override {
    // It goes on serving, and all there is can be gone on from.
    OK(dtg_checkpoint_wait(sets_, 0));
    OK(dtg_checkpoint_save(sets_, 1'000'000, 0));
    OK(dtg_checkpoint_restore(sets_, nullptr, 0, nullptr, nullptr));
    OK(next());
    dtg_string* told = nullptr;
    OK(dtg_checkpoint_verify(nullptr, directory_.c_str(), DTG_STRLEN, &told));
    EXPECT_EQ(std::string(dtg_string_data(told, nullptr)).find("\"valid\":false"), std::string::npos);
    dtg_string_release(told);
    dtg_checkpoint_release(sets_);
    dtg_dataset_release(data_);
    dtg_session_release(session_);
    dtg_model_release(model_);
    dtg_graph_release(graph_);
    EXPECT_EQ(std::system(("rm -rf '" + directory_ + "'").c_str()), 0);
    Owner::TearDown();
  }
  dtg_error* next() {
    dtg_tensor* batch = nullptr;
    int32_t more = 0;
    dtg_error* const error = dtg_dataset_next(data_, &batch, 1, &more);
    dtg_tensor_release(batch);
    return error;
  }
  dtg_error* restore() { return dtg_checkpoint_restore(sets_, nullptr, 0, nullptr, nullptr); }
  dtg_error* begin_save() { return dtg_checkpoint_begin_save(sets_, ++step_, 0); }

  std::string directory_;
  std::atomic<int64_t> step_{1};
  dtg_graph* graph_ = nullptr;
  dtg_model* model_ = nullptr;
  dtg_session* session_ = nullptr;
  dtg_dataset* data_ = nullptr;
  dtg_checkpoint* sets_ = nullptr;
};

TEST_F(OwnerOfCheckpoints, OneThreadIsInside) {
  names_both(collide([&] { return begin_save(); }), "checkpoint");
  std::atomic<int> number{0};
  names_both(collide([&] { return dtg_checkpoint_reached(sets_, number++, nullptr); },
                     [&] {
                       dtg_dataset* more = nullptr;
                       OK(dtg_dataset_range(nullptr, 0, 4, 1, &more));
                       const std::string name = "more" + std::to_string(number++);
                       dtg_error* const error = dtg_checkpoint_add_data(sets_, name.c_str(), DTG_STRLEN, more);
                       dtg_dataset_release(more);
                       return error;
                     }),
             "checkpoint");
}

TEST_F(OwnerOfCheckpoints, NobodyReadsTheDataMeanwhile) {
  names_both(collide([&] { return next(); }, [&] { return restore(); }), "data set");
  names_both(collide([&] { return next(); }, [&] { return begin_save(); }), "data set");
}

TEST_F(OwnerOfCheckpoints, NobodyBuildsTheModelMeanwhile) {
  names_both(collide([&] { return restore(); },
                     [&] {
                       dtg_variable w = DTG_VARIABLE_INIT;
                       return dtg_model_find_variable(model_, "w", DTG_STRLEN, &w);
                     }),
             "model");
  const int64_t dims[] = {-1, 4};
  dtg_value x{};
  OK(dtg_placeholder(graph_, "x", DTG_F32, dims, 2, &x));
  names_both(collide([&] { return dtg_checkpoint_resume(sets_, nullptr, nullptr); },
                     [&] {
                       dtg_value y{};
                       return dtg_add2(graph_, "Mul", x, x, &y);
                     }),
             "graph");
}

// Waiting and asking are for everybody, also while another thread saves.
TEST_F(OwnerOfCheckpoints, AnyThreadWaitsAndAsks) {
  std::atomic<bool> over{false};
  std::thread other([&] {
    while (!over.load()) {
      dtg_string* told = nullptr;
      OK(dtg_checkpoint_status(sets_, &told));
      dtg_string_release(told);
      OK(dtg_checkpoint_wait(sets_, 0));
    }
  });
  for (int i = 0; i < 50; ++i) OK(dtg_checkpoint_save(sets_, ++step_, 0));
  over = true;
  other.join();
}

// What a fit reads stays where the fit thinks that it is; where it stands may be asked.
TEST_F(OwnerOfCheckpoints, ARestoreLeavesTheDataOfAFitAlone) {
  dtg_trainer_options options = DTG_TRAINER_OPTIONS_INIT;
  dtg_trainer* trainer = nullptr;
  dtg_value x{};
  dtg_variable w = DTG_VARIABLE_INIT;
  const int64_t dims[] = {-1};
  OK(dtg_placeholder(graph_, "x", DTG_I64, dims, 1, &x));
  OK(dtg_model_find_variable(model_, "w", DTG_STRLEN, &w));
  options.session = session_;
  options.feeds = &x;
  options.num_feeds = 1;
  options.loss = w.read;
  options.train = w.read;
  OK(dtg_trainer_create(model_, &options, &trainer));
  dtg_fit how = DTG_FIT_INIT;
  how.steps_per_epoch = 2;
  OK(dtg_trainer_begin(trainer, data_, nullptr, &how));
  const std::string why = refused(restore(), DTG_FAILED_PRECONDITION, "a restore in a fit");
  EXPECT_NE(why.find("the fit that is under way"), std::string::npos) << why;
  OK(dtg_checkpoint_save(sets_, ++step_, 0));
  OK(dtg_trainer_give_up(trainer));
  dtg_trainer_release(trainer);
  OK(restore());
}

}  // namespace
}  // namespace outside
