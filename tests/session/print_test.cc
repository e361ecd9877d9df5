// Print and PrintV2: what a graph prints goes to the log of its runtime, by level, on the host and from a device; Print gives its input on,
// with its gradient.
#include <gtest/gtest.h>

#include <mutex>

#include "base/log.h"
#include "graph/build.h"
#include "graph/gradient.h"
#include "session/session.h"

namespace dtg {
namespace {

class Lines final : public LogSink {
 public:
  void write(LogLevel level, std::string_view component, std::string_view message) override {
    const std::lock_guard lock(mutex_);
    if (component == "print") lines_.push_back(std::to_string(static_cast<int>(level)) + " " + std::string(message));
  }
  std::vector<std::string> take() {
    const std::lock_guard lock(mutex_);
    return std::move(lines_);
  }

 private:
  std::mutex mutex_;
  std::vector<std::string> lines_;
};

class Prints : public ::testing::TestWithParam<const char*> {
 protected:
  Prints() {
    Runtime::Options options;
    options.log = &lines_;
    options.compute_threads = 1;
    runtime_ = Runtime::create(std::move(options)).take();
    graph_ = Graph::create(&runtime_->ops()).take();
  }
  void run(std::vector<Value> fetches, std::vector<NodeId> targets, std::vector<Tensor>* out) {
    Session::Options options;
    if (std::string_view(GetParam()) == "EMU") options.devices.emu = 1;
    auto session = Session::connect(runtime_, "local", graph_, options);
    ASSERT_TRUE(session.ok()) << session.status().message();
    out->resize(fetches.size());
    for (int round = 0; round < 2; ++round) {
      const Status status = session.value()->run({.feeds = {}, .feed_tensors = {}, .fetches = fetches, .targets = targets}, *out);
      ASSERT_TRUE(status.ok()) << status.message();
    }
  }

  Lines lines_;
  Ref<Runtime> runtime_;
  Ref<Graph> graph_;
};

TEST_P(Prints, ToTheLog) {
  Build b(*graph_);
  const Value x = b.ints({1, 2, 3, 4, 5}), f = b.scalar(DType::f32, 1.5);
  const Value shown = b.op("Print", {b.scalar(DType::f32, 2), x, f}, {{"message", "here: "}});
  const Value once = b.op("Print", {shown, b.reshape(b.ints({1, 2, 3, 4}), b.ints({2, 2}))}, {{"first_n", 1}, {"summarize", -1}});
  const Value text = b.op("StringFormat", {x}, {{"template", "x is %s"}});
  const NodeId line = b.node("PrintV2", {&text, 1}, std::vector<Attr>{{"output_stream", "log(info)"}, {"end", "!"}});
  ASSERT_TRUE(b.ok()) << b.status().message();
  std::vector<Tensor> out;
  run({once}, {line}, &out);
  EXPECT_EQ(out[0].values<float>()[0], 2);
  std::vector<std::string> found = lines_.take();
  std::ranges::sort(found);
  EXPECT_EQ(found, (std::vector<std::string>{"1 x is [1 2 3 4 5]!", "1 x is [1 2 3 4 5]!", "2 [[1 2][3 4]]", "2 here: [1 2 3...][1.5]",
                                             "2 here: [1 2 3...][1.5]"}));
}

TEST_P(Prints, GradientsPass) {
  Build b(*graph_);
  const Value x = b.op("Placeholder", {}, {{"dtype", DType::f32}, {"shape", PartialShape::scalar()}});
  const Value y = b.mul(b.op("Print", {x, x}, {}), b.scalar(DType::f32, 3));
  ASSERT_TRUE(b.ok()) << b.status().message();
  auto gradients = add_gradients(*graph_, {&y, 1}, {&x, 1}, {});
  ASSERT_TRUE(gradients.ok()) << gradients.status().message();
  EXPECT_TRUE(gradients.value()[0].any());
}

INSTANTIATE_TEST_SUITE_P(Devices, Prints, ::testing::Values("CPU", "EMU"), [](const auto& one) { return std::string(one.param); });

TEST(Print, FilesAreNotReached) {
  auto runtime = Runtime::create({}).take();
  auto graph = Graph::create(&runtime->ops()).take();
  Build b(*graph);
  const Value text = b.op("StringFormat", {}, {{"template", "x"}});
  const NodeId line = b.node("PrintV2", {&text, 1}, std::vector<Attr>{{"output_stream", "file:///tmp/x"}});
  ASSERT_TRUE(b.ok()) << b.status().message();
  auto session = Session::connect(runtime, "local", graph, {}).take();
  const NodeId targets[] = {line};
  EXPECT_EQ(session->run({.feeds = {}, .feed_tensors = {}, .fetches = {}, .targets = targets}, {}).code(), Code::invalid_argument);
}

}  // namespace
}  // namespace dtg
