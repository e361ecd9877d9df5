// A worker of elastic training, for the test and for the processes that it starts and kills: two variables on two parameter servers, and
// gradients that follow from the worker and the step, so that whoever knows who took part in which step knows what the variables hold. With
// data that are dealt, each record has a cell of its own in every epoch, and its gradient is 1 there: Adagrad moves a cell by 1 the first
// time that it is touched, with whomever, and further each other time.
#pragma once

#include <array>
#include <memory>
#include <string>
#include <vector>

#include "cluster/server.h"
#include "data/dealt.h"
#include "nn/model.h"
#include "seconds.h"
#include "session/async_run.h"
#include "session/recover.h"

namespace dtg {

struct ElasticWorker {
  static constexpr int kWorkers = 4, kCount = 5;
  static constexpr float kRate = 0.37f;

  static float gradient(int worker, int64_t step, int element) {
    return 0.1f * static_cast<float>(worker + 1) + 0.013f * static_cast<float>(step % 17) - 0.07f * static_cast<float>(element);
  }

  static constexpr int64_t kRecords = 601, kBatch = 2, kEpochs = 2, kElements = (kRecords + kBatch - 1) / kBatch;

  // `deals`: elements of data. `all_same`: all contribute the same to every step, so that the mean does not hang on who takes part.
  ElasticWorker(const std::string& cluster, int number, int least, bool all_same = false, bool deals = false)
      : same(all_same),
        dealt(deals),
        runtime(Runtime::create({.compute_threads = 1}).take()),
        graph(Graph::create(&runtime->ops()).take()),
        worker(number) {
    Server::Options options;
    options.cluster = ClusterSpec::parse(cluster).take();
    options.job = "worker";
    options.task = number;
    options.filters = {"/job:ps"};  // others may never come
    server = Server::start(runtime->host().take(), options, runtime).take();
    model = make_ref<Model>(graph, 1);
    status = build(least);
  }
  ~ElasticWorker() {
    if (session) (void)session->close(10 * kSecond).ok();
    session = nullptr;
    (void)server->stop(10 * kSecond).ok();
  }

  Status build(int least) {
    Build b(*graph);
    std::vector<VariableGradient> own;
    for (int ps = 0; ps < 2; ++ps) {
      graph->push_device("/job:ps/task:" + std::to_string(ps));
      auto made =
          model->add_variable({.name = "v" + std::to_string(ps), .shape = Shape::of({cells()}), .initializer = Initializer::zeros()});
      if (ps == 0) DTG_TRY(model->global_step().status());
      DTG_TRY(graph->pop_device());
      DTG_ASSIGN(variables.emplace_back(), std::move(made));
    }
    graph->push_device("/job:worker/task:" + std::to_string(worker));
    fed = b.op("Placeholder", {}, {{"dtype", DType::f32}, {"shape", PartialShape(Shape::of({cells()}))}});
    for (const NamedVariable& variable : variables)
      own.push_back({variable, {.dense = fed, .values = {}, .indices = {}, .dense_shape = {}}});
    DTG_TRY(b.status());
    const Replication share{
        .mode = SyncMode::elastic, .worker = worker, .total = kWorkers, .min_workers = least, .elements = dealt ? kElements : 0};
    Optimizer optimizer{.learning_rate = {}, .rate = kRate};
    if (dealt) optimizer = {.kind = Optimizer::Kind::adagrad, .learning_rate = {}, .rate = 1, .initial_accumulator = 1e-12};
    DTG_ASSIGN(added, apply_replicated(*model, own, optimizer, share));
    return graph->pop_device();
  }
  int64_t cells() const { return dealt ? kRecords * kEpochs : kCount; }

  Status open_data() {
    DTG_ASSIGN(DatasetPtr records, make_range(0, kRecords, 1));
    DTG_ASSIGN(records, make_shuffle(std::move(records), 0, 11));
    DTG_ASSIGN(records, make_batch(std::move(records), kBatch, false));
    DTG_ASSIGN(data, make_dealt(std::move(records), [this](int64_t epoch) -> Result<DealtElement> {
                 const Tensor wanted = Tensor::scalar<int64_t>(epoch).take();
                 const Tensor* const feeds = &wanted;
                 std::vector<Tensor> given(1);
                 DTG_TRY(session->run({.feeds = {&added.epoch_to_deal, 1},
                                       .feed_tensors = {&feeds, 1},
                                       .fetches = {&added.dealt, 1},
                                       .targets = {&added.deal, 1},
                                       .timeout_ns = 60 * kSecond},
                                      given));
                 return DealtElement{given[0].values<int64_t>()[0], given[0].values<int64_t>()[1]};
               }));
    return {};
  }
  // One step with an element; nothing where an epoch has ended. `is_over`: it was the last.
  Status train_on_data(bool* is_over) {
    if (!data) DTG_TRY(open_data());
    Element records;
    DTG_ASSIGN(const bool more, data->next(records));
    *is_over = data->last().epoch >= kEpochs;
    if (*is_over) return {};
    if (!more) return data->restart();
    std::vector<float> values(static_cast<size_t>(cells()));
    for (const int64_t record : records[0].values<int64_t>()) values[static_cast<size_t>(data->last().epoch * kRecords + record)] = 1;
    return train_with(values, 60 * kSecond);
  }

  Status run(std::span<const Value> fetches, NodeId target, std::vector<Tensor>* fetched, int64_t timeout_ns = 60 * kSecond) {
    std::vector<Tensor> none;
    const size_t targets = target == kNoNode ? 0 : 1;
    return session->run({.feeds = {}, .feed_tensors = {}, .fetches = fetches, .targets = {&target, targets}, .timeout_ns = timeout_ns},
                        fetched ? *fetched : none);
  }
  Status begin() {
    DTG_TRY(status);
    DTG_ASSIGN(session, Session::connect(runtime, server->target(), graph, {}));
    if (worker == 0) {
      DTG_ASSIGN(const NodeId init, model->init_target());
      DTG_TRY(run({}, init, nullptr));
      DTG_TRY(run({}, added.chief_init, nullptr));
    }
    return join();
  }
  Status join() {
    DTG_TRY(wait_ready(*model, *session, system_clock(), Deadline::after(system_clock(), 60 * kSecond)));
    DTG_TRY(run({}, added.local_init, nullptr));
    std::vector<Tensor> now(1);
    DTG_TRY(run({&added.local_step, 1}, kNoNode, &now));
    step = now[0].values<int64_t>()[0];
    return {};
  }
  // One step; `step` is the next one then.
  Status train(int64_t timeout_ns = 60 * kSecond) {
    std::array<float, kCount> values;
    for (int i = 0; i < kCount; ++i) values[static_cast<size_t>(i)] = same ? 0.25f : gradient(worker, step, i);
    return train_with(values, timeout_ns);
  }
  Status train_with(std::span<const float> values, int64_t timeout_ns) {
    const Tensor tensor = Tensor::of<float>(Shape::of({static_cast<int64_t>(values.size())}), values).take();
    const Tensor* const feeds = &tensor;
    std::vector<Tensor> next(1);
    DTG_TRY(session->run({.feeds = {&fed, 1},
                          .feed_tensors = {&feeds, 1},
                          .fetches = {&added.next_step, 1},
                          .targets = {&added.train, 1},
                          .timeout_ns = timeout_ns},
                         next));
    step = next[0].values<int64_t>()[0];
    return {};
  }

  const bool same, dealt;
  const Ref<Runtime> runtime;
  const Ref<Graph> graph;
  const int worker;
  Ref<Server> server;
  Ref<Model> model;
  Status status;
  Value fed;
  std::vector<NamedVariable> variables;
  Replicated added;
  Ref<Session> session;
  int64_t step = 0;
  std::unique_ptr<Dealt> data;
};

}  // namespace dtg
