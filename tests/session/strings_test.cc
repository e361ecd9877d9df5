// Strings through whole runs: fed, fetched, folded, kept in queues and tables; and tables themselves, whose entries outlive runs.
#include <gtest/gtest.h>

#include <map>
#include <random>

#include "graph/build.h"
#include "session/session.h"
#include "tensor/text.h"

namespace dtg {
namespace {

using Strings = std::vector<std::string>;

Tensor texts(const Shape& shape, const Strings& values) {
  std::vector<Text> list;
  for (const std::string& value : values) list.emplace_back(value);
  return make_texts(shape, list).take();
}
Tensor texts(const Strings& values) { return texts(Shape::of({static_cast<int64_t>(values.size())}), values); }

Strings strings_of(const Tensor& tensor) {
  Strings list;
  for (const Text& text : texts_of(tensor)) list.emplace_back(text.view());
  return list;
}

class Texts : public ::testing::Test {
 protected:
  void SetUp() override {
    Runtime::Options options;
    options.compute_threads = 2;
    runtime_ = Runtime::create(options).take();
    graph_ = Graph::create(&runtime_->ops()).take();
    build_ = std::make_unique<Build>(*graph_);
    session_ = Session::connect(runtime_, "local", graph_, {}).take();
  }
  Value op(const char* type, std::vector<Value> inputs, std::vector<Attr> attrs = {}) {
    const Value made = build_->op(type, inputs, attrs);
    EXPECT_TRUE(build_->ok()) << build_->status().message();
    return made;
  }
  NodeId node(const char* type, std::vector<Value> inputs, std::vector<Attr> attrs = {}) {
    const NodeId made = build_->node(type, inputs, attrs);
    EXPECT_TRUE(build_->ok()) << build_->status().message();
    return made;
  }
  Value constant(const Tensor& tensor) { return build_->constant(tensor); }
  Value longs(const std::vector<int64_t>& values) { return constant(Tensor::ints(DType::i64, values).take()); }
  Status run(NodeId target) {
    RunArgs args;
    args.targets = {&target, 1};
    return session_->run(args, {});
  }
  Result<Tensor> fetch(Value value, std::vector<std::pair<Value, Tensor>> feeds = {}) {
    std::vector<Value> names;
    std::vector<const Tensor*> tensors;
    for (auto& [name, tensor] : feeds) names.push_back(name), tensors.push_back(&tensor);
    RunArgs args;
    args.fetches = {&value, 1};
    args.feeds = names;
    args.feed_tensors = tensors;
    Tensor result;
    DTG_TRY(session_->run(args, {&result, 1}));
    return result;
  }
  Strings fetched(Value value, std::vector<std::pair<Value, Tensor>> feeds = {}) {
    auto got = fetch(value, std::move(feeds));
    EXPECT_TRUE(got.ok()) << got.status().message();
    return got.ok() ? strings_of(got.value()) : Strings();
  }

  Ref<Runtime> runtime_;
  Ref<Graph> graph_;
  std::unique_ptr<Build> build_;
  Ref<Session> session_;
};

TEST_F(Texts, FedMovedAndFetched) {
  const Value fed = op("Placeholder", {}, {{"dtype", DType::string}});
  const Value upper = op("StringUpper", {fed});
  const Value both = op("ConcatV2", {upper, constant(texts({"const"})), build_->integer(0)});
  const Tensor words = texts({"a", std::string("b\0c", 3), ""});
  EXPECT_EQ(fetched(both, {{fed, words}}), (Strings{"A", std::string("B\0C", 3), "", "const"}));
}

// What is fetched must own its bytes: the run's are used again at once.
TEST_F(Texts, FetchedStringsOutliveTheRun) {
  const Value fed = op("Placeholder", {}, {{"dtype", DType::string}});
  const Value joined = op("StringJoin", {fed, fed}, {{"separator", "-"}});
  std::vector<std::pair<std::string, Tensor>> kept;
  for (int i = 0; i < 50; ++i) {
    const std::string text(static_cast<size_t>(i * 37 % 200), static_cast<char>('a' + i % 26));
    kept.emplace_back(text + "-" + text, fetch(joined, {{fed, texts({text})}}).take());
  }
  for (const auto& [wanted, tensor] : kept) EXPECT_EQ(strings_of(tensor), Strings{wanted});
}

TEST_F(Texts, FoldedConstantsOwnTheirBytes) {
  const Value joined = op("StringJoin", {constant(texts({"x", "y"})), constant(texts(Shape(), {"0"}))});
  const Value fed = op("Placeholder", {}, {{"dtype", DType::i32}, {"shape", PartialShape::scalar()}});
  const Value picked = op("GatherV2", {joined, fed, build_->integer(0)});
  for (int i = 0; i < 4; ++i) EXPECT_EQ(fetched(picked, {{fed, Tensor::scalar<int32_t>(i % 2).take()}}), Strings{i % 2 ? "y0" : "x0"});
  // Two constants of one shape are not the same because neither has plain bytes.
  EXPECT_EQ(fetched(op("ConcatV2", {constant(texts({"p"})), constant(texts({"q"})), build_->integer(0)})), (Strings{"p", "q"}));
}

TEST_F(Texts, RefusedWhereTheyCannotBe) {
  const Value words = constant(texts({"a"}));
  Tensor given = texts({"b"});
  RunArgs args;
  args.fetches = {&words, 1};
  EXPECT_EQ(session_->run(args, {&given, 1}).code(), Code::invalid_argument) << "a tensor of strings never changes";
  const Value handle = op("VarHandleOp", {}, {{"dtype", DType::string}, {"shape", PartialShape::vector(1)}});
  EXPECT_EQ(run(node("AssignVariableOp", {handle, words})).code(), Code::unimplemented);
}

TEST_F(Texts, QueuesKeepThem) {
  const std::vector<DType> types = {DType::string, DType::i64};
  const std::vector<PartialShape> shapes = {PartialShape::vector(2), PartialShape::scalar()};
  const Value queue = op("FIFOQueueV2", {}, {{"component_types", types}, {"shapes", shapes}});
  const Value words = op("Placeholder", {}, {{"dtype", DType::string}});
  const NodeId put = node("QueueEnqueueV2", {queue, op("StringUpper", {words}), build_->integer(1, DType::i64)});
  for (const char* word : {"one", "two", "three"}) {
    const Tensor tensor = texts({word, ""});
    const Tensor* const fed = &tensor;
    RunArgs args;
    args.feeds = {&words, 1};
    args.feed_tensors = {&fed, 1};
    args.targets = {&put, 1};
    ASSERT_TRUE(session_->run(args, {}).ok());
  }
  const Value first = op("QueueDequeueV2", {queue}, {{"component_types", types}});
  EXPECT_EQ(fetched(first), (Strings{"ONE", ""}));
  const Value rest = op("QueueDequeueManyV2", {queue, build_->integer(2)}, {{"component_types", types}});
  EXPECT_EQ(fetched(op("StringLower", {rest})), (Strings{"two", "", "three", ""}));
  const NodeId many = node("QueueEnqueueManyV2", {queue, constant(texts(Shape::of({2, 2}), {"a", "b", "c", "d"})), longs({1, 2})});
  ASSERT_TRUE(run(many).ok());
  EXPECT_EQ(fetched(first), (Strings{"a", "b"}));
  EXPECT_EQ(fetched(first), (Strings{"c", "d"}));
}

TEST_F(Texts, PaddedBatchesHaveEmptyOnes) {
  const std::vector<DType> types = {DType::string};
  const std::vector<PartialShape> shapes = {PartialShape::vector(-1)};
  const Value queue = op("PaddingFIFOQueueV2", {}, {{"component_types", types}, {"shapes", shapes}});
  ASSERT_TRUE(run(node("QueueEnqueueV2", {queue, constant(texts({"a", "b", "c"}))})).ok());
  ASSERT_TRUE(run(node("QueueEnqueueV2", {queue, constant(texts({"d"}))})).ok());
  EXPECT_EQ(fetched(op("QueueDequeueManyV2", {queue, build_->integer(2)}, {{"component_types", types}})),
            (Strings{"a", "b", "c", "d", "", ""}));
}

// ---- tables ------------------------------------------------------------------------------------------------

// One string may be long, and so is the way through it.
TEST_F(Texts, ALongStringIsLeftWhenTheTimeIsOver) {
  std::string text(std::size_t{64} << 20, 'a');
  const Value fed = op("Placeholder", {}, {{"dtype", DType::string}, {"shape", PartialShape(Shape::of({1}))}});
  const Value matches = op("StaticRegexFullMatch", {fed}, {{"pattern", std::string("(a|b|c)*(a|b)*(a|b)*c")}});
  const Tensor given = texts({text});
  const Tensor* const tensors[] = {&given};
  RunArgs args;
  args.fetches = {&matches, 1};
  args.feeds = {&fed, 1};
  args.feed_tensors = tensors;
  args.timeout_ns = 20'000'000;
  Tensor result;
  EXPECT_EQ(session_->run(args, {&result, 1}).code(), Code::deadline_exceeded);
}

class Tables : public Texts {
 protected:
  Value table(const char* type, DType keys, DType values, const char* name) {
    return op(type, {}, {{"key_dtype", keys}, {"value_dtype", values}, {"shared_name", name}});
  }
  int64_t size(Value handle) { return *fetch(op("LookupTableSizeV2", {handle})).take().as<int64_t>(); }
};

TEST_F(Tables, StaticVocabulary) {
  const Value words = table("HashTableV2", DType::string, DType::i64, "words");
  const Value asked = op("Placeholder", {}, {{"dtype", DType::string}});
  const Value found = op("LookupTableFindV2", {words, asked, build_->integer(-1, DType::i64)});
  EXPECT_EQ(fetch(found, {{asked, texts({"a"})}}).status().code(), Code::failed_precondition) << "nothing was put there yet";
  EXPECT_EQ(size(words), 0);
  ASSERT_TRUE(run(node("InitializeTableV2", {words, constant(texts({"a", "", "c"})), longs({1, 2, 3})})).ok());
  const Tensor got = fetch(found, {{asked, texts(Shape::of({2, 2}), {"c", "x", "", "a"})}}).take();
  EXPECT_EQ(got.text(), "int64[2,2]");
  EXPECT_EQ(std::vector<int64_t>(got.values<int64_t>().begin(), got.values<int64_t>().end()), (std::vector<int64_t>{3, -1, 2, 1}));
  // Again with as many is nothing, with another number is a mistake; and it does not grow.
  EXPECT_TRUE(run(node("InitializeTableV2", {words, constant(texts({"q", "r", "s"})), longs({1, 2, 3})})).ok());
  EXPECT_EQ(run(node("InitializeTableV2", {words, constant(texts({"q"})), longs({1})})).code(), Code::failed_precondition);
  EXPECT_EQ(run(node("LookupTableInsertV2", {words, constant(texts({"q"})), longs({1})})).code(), Code::unimplemented);
  const Value other = table("HashTableV2", DType::string, DType::i64, "other");
  EXPECT_EQ(run(node("InitializeTableV2", {other, constant(texts({"q", "q"})), longs({1, 2})})).code(), Code::invalid_argument);
  EXPECT_EQ(size(other), 0) << "what failed left nothing";
}

// Against a map, with keys in a small range so that they meet.
TEST_F(Tables, MutableOnesAgreeWithAMap) {
  const Value numbers = table("MutableHashTableV2", DType::i64, DType::string, "numbers");
  const Value keys = op("Placeholder", {}, {{"dtype", DType::i64}, {"shape", PartialShape::vector(-1)}});
  const Value values = op("Placeholder", {}, {{"dtype", DType::string}, {"shape", PartialShape::vector(-1)}});
  const NodeId insert = node("LookupTableInsertV2", {numbers, keys, values}), remove = node("LookupTableRemoveV2", {numbers, keys});
  const Value found = op("LookupTableFindV2", {numbers, keys, constant(texts(Shape(), {"none"}))});
  std::map<int64_t, std::string> model;
  std::mt19937 random(1);
  for (int round = 0; round < 300; ++round) {
    std::vector<int64_t> some(random() % 6);
    Strings words(some.size());
    for (size_t i = 0; i < some.size(); ++i)
      some[i] = random() % 12, words[i] = std::string(random() % 40, static_cast<char>('a' + random() % 26));
    const bool removing = random() % 3 == 0;
    const Tensor given[] = {Tensor::ints(DType::i64, some).take(), texts(words)};
    const Tensor* const fed[] = {&given[0], &given[1]};
    const Value names[] = {keys, values};
    RunArgs args;
    args.feeds = {names, removing ? 1u : 2u};
    args.feed_tensors = {fed, removing ? 1u : 2u};
    args.targets = {removing ? &remove : &insert, 1};
    ASSERT_TRUE(session_->run(args, {}).ok());
    for (size_t i = 0; i < some.size(); ++i) {
      if (removing) model.erase(some[i]);
      else model[some[i]] = words[i];
    }
    ASSERT_EQ(size(numbers), static_cast<int64_t>(model.size()));
    std::vector<int64_t> all(13);
    Strings wanted;
    for (int64_t key = 0; key < 13; ++key) {
      all[static_cast<size_t>(key)] = key;
      wanted.push_back(model.count(key) ? model[key] : "none");
    }
    ASSERT_EQ(fetched(found, {{keys, Tensor::ints(DType::i64, all).take()}}), wanted);
  }
  const Value exported = op("LookupTableExportV2", {numbers}, {{"Tkeys", DType::i64}, {"Tvalues", DType::string}});
  const Tensor names = fetch(exported).take(), words = fetch(exported.sibling(1)).take();
  ASSERT_EQ(names.count(), static_cast<int64_t>(model.size()));
  for (int64_t i = 0; i < names.count(); ++i) EXPECT_EQ(strings_of(words)[static_cast<size_t>(i)], model[names.int_at(i)]);
}

TEST_F(Tables, EffectsKeepTheOrderOfCreation) {
  const Value numbers = table("MutableHashTableV2", DType::i64, DType::i64, "ordered");
  const Value before = op("LookupTableFindV2", {numbers, longs({1}), build_->integer(0, DType::i64)});
  const NodeId insert = node("LookupTableInsertV2", {numbers, longs({1}), longs({7})});
  const Value after = op("LookupTableFindV2", {numbers, longs({1}), build_->integer(0, DType::i64)});
  const Value both[] = {before, after};
  RunArgs args;
  args.fetches = both;
  args.targets = {&insert, 1};
  Tensor got[2];
  ASSERT_TRUE(session_->run(args, got).ok());
  EXPECT_EQ(got[0].int_at(0), 0);
  EXPECT_EQ(got[1].int_at(0), 7);
}

// Each run has a stack of its own, so what one leaves there the next does not find.
TEST_F(Tables, StacksLiveInOneRun) {
  const Value stack = op("StackV2", {build_->integer(2)}, {{"elem_type", DType::string}});
  const Value fed = op("Placeholder", {}, {{"dtype", DType::string}});
  const Value a = op("StackPushV2", {stack, op("StringUpper", {fed})}), b = op("StackPushV2", {stack, fed});
  const Value top = op("StackPopV2", {stack}, {{"elem_type", DType::string}}),
              next = op("StackPopV2", {stack}, {{"elem_type", DType::string}});
  const NodeId pushes[] = {a.node(), b.node()};
  for (int i = 0; i < 3; ++i) {
    const Tensor words = texts({"x", std::string(static_cast<size_t>(i) * 30, 'y')});
    const Tensor* const feed = &words;
    const Value both[] = {top, next};
    Tensor got[2];
    const Status status = session_->run({{&fed, 1}, {&feed, 1}, both, pushes}, got);
    ASSERT_TRUE(status.ok()) << status.message();
    EXPECT_EQ(strings_of(got[0]), strings_of(words));
    EXPECT_EQ(strings_of(got[1])[1], std::string(static_cast<size_t>(i) * 30, 'Y'));
  }
  EXPECT_EQ(fetch(top).status().code(), Code::invalid_argument) << "nothing was pushed in this run";
}

TEST_F(Tables, ReservedKeysAndMisfits) {
  const Value minus = build_->integer(-1, DType::i64), two = build_->integer(-2, DType::i64);
  const std::vector<Attr> attrs = {{"value_dtype", DType::f32}, {"value_shape", PartialShape::vector(2)}, {"shared_name", "dense"}};
  const Value dense = op("MutableDenseHashTableV2", {minus, two}, attrs);
  const Value row = constant(Tensor::of<float>(Shape::of({1, 2}), std::vector<float>{1, 2}).take());
  ASSERT_TRUE(run(node("LookupTableInsertV2", {dense, longs({5}), row})).ok());
  EXPECT_EQ(run(node("LookupTableInsertV2", {dense, longs({-1}), row})).code(), Code::invalid_argument);
  EXPECT_EQ(run(node("LookupTableRemoveV2", {dense, longs({-2})})).code(), Code::invalid_argument);
  EXPECT_EQ(run(node("LookupTableInsertV2", {dense, longs({5, 6}), row})).code(), Code::invalid_argument);
  const Value defaults = constant(Tensor::of<float>(Shape::of({2}), std::vector<float>{8, 9}).take());
  const Tensor got = fetch(op("LookupTableFindV2", {dense, longs({4, 5}), defaults})).take();
  EXPECT_EQ(std::vector<float>(got.values<float>().begin(), got.values<float>().end()), (std::vector<float>{8, 9, 1, 2}));
  EXPECT_EQ(fetch(op("LookupTableFindV2", {dense, longs({4}), build_->integer(0, DType::i64)})).status().code(), Code::invalid_argument);
  EXPECT_EQ(fetch(op("MutableDenseHashTableV2", {minus, minus}, {{"value_dtype", DType::f32}})).ok(), false);
  const Value same =
      op("LookupTableSizeV2", {op("MutableDenseHashTableV2", {minus, minus}, {{"value_dtype", DType::f32}, {"shared_name", "same"}})});
  EXPECT_EQ(fetch(same).status().code(), Code::invalid_argument);
  const Value other =
      op("LookupTableSizeV2",
         {op("MutableHashTableV2", {}, {{"key_dtype", DType::i64}, {"value_dtype", DType::f32}, {"shared_name", "dense"}})});
  EXPECT_EQ(fetch(other).status().code(), Code::invalid_argument) << "one name, two kinds of table";
}

}  // namespace
}  // namespace dtg
