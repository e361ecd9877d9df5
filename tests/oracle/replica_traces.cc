// The replay of one trace. Gradients are computed where the trace says "compute", kept here, and fed back into the step
// that sends them, which is how a step of a worker is cut in two.
#include "replica_traces.h"

#include <chrono>
#include <cmath>

#include "program.h"
#include "tasks.h"

namespace dtg::oracle {
namespace {

constexpr int64_t kEndsNs = int64_t{10} * 1000 * 1000 * 1000;  // what must end, or come true, gets this long
constexpr int64_t kBlocksNs = 2 * 1000 * 1000;                 // what must block is watched this long

struct Parameter {
  std::string name;
  dtg_variable variable = DTG_VARIABLE_INIT;
};

// A worker's part of the graph.
struct Worker {
  std::map<std::string, dtg_value> inputs;  // x, y, ids
  dtg_value loss{};
  std::vector<dtg_gradient> gradients;  // by parameter
  dtg_replicated share = DTG_REPLICATED_INIT;
};

// What a "compute" left: the values to feed, by gradient.
using Kept = std::vector<Feed>;

struct Trace {
  // `target`: of the servers, or "local".
  Trace(const Json& json, const std::string& target, std::shared_ptr<dtg_runtime> runtime)
      : file(json),
        sync(json.at("kind") == "sync"),
        local(target == "local"),
        servers(json.at("num_ps")),
        program({servers + json.at("num_workers").get<int32_t>(), true, 0, target, std::move(runtime)}) {
    dtg_cq* queue = nullptr;
    if (!outcome(dtg_cq_create(&queue))) cq = {queue, dtg_cq_release};
    dtg_model* made = nullptr;
    if (!outcome(dtg_model_create(program.graph(), 1, &made))) model = {made, dtg_model_release};
  }

  const Json& file;
  const bool sync, local;
  const int32_t servers;
  Program program;
  std::shared_ptr<dtg_model> model;
  std::shared_ptr<dtg_cq> cq;
  std::vector<Parameter> parameters;
  std::vector<Worker> workers;
  dtg_value global_step{}, token_count{};
  std::map<std::string, dtg_value> counts;  // gradients in each accumulator
  std::map<int, Kept> kept;                 // by event
  std::map<int, int64_t> read_steps;        // by event
  std::map<uint64_t, std::shared_ptr<dtg_run>> running;
  std::map<uint64_t, Outcome> ended;  // not asked for yet
};

// Parameter servers first, then workers.
std::string device(const Trace& t, int32_t number) {
  if (t.local) return "/device:CPU:" + std::to_string(number);
  return number < t.servers ? "/job:ps/task:" + std::to_string(number) : "/job:worker/task:" + std::to_string(number - t.servers);
}

// --- the graph ---

Outcome on_device(Trace& t, int32_t number, const std::function<Outcome()>& add) {
  if (Outcome failed = outcome(dtg_graph_push_device(t.program.graph(), device(t, number).c_str(), DTG_STRLEN))) return failed;
  Outcome failed = add();
  const Outcome unopened = outcome(dtg_graph_pop_device(t.program.graph()));
  return failed ? failed : unopened;
}

// Where the trace says, or in turn.
int32_t server_of(const Trace& t, const std::string& variable, size_t number) {
  if (!t.file.contains("placement")) return static_cast<int32_t>(number) % t.servers;
  const std::string place = t.file.at("placement").at(variable);
  return std::stoi(place.substr(place.rfind(':') + 1));
}

Outcome add_variables(Trace& t) {
  for (const char* name : {"w1", "b1", "w2", "emb"}) {
    if (!t.file.at("initial").contains(name)) continue;
    const auto dims = t.file.at("initial").at(name).at("shape").get<std::vector<int64_t>>();
    dtg_variable_spec spec = DTG_VARIABLE_SPEC_INIT;
    spec.name = name;
    spec.dims = dims.data();
    spec.rank = dims.size();
    Parameter& parameter = t.parameters.emplace_back();
    parameter.name = name;
    const Outcome failed = on_device(t, server_of(t, name, t.parameters.size() - 1),
                                     [&] { return outcome(dtg_model_add_variable(t.model.get(), &spec, &parameter.variable)); });
    if (failed) return failed;
  }
  dtg_variable step = DTG_VARIABLE_INIT;
  const Outcome failed =
      on_device(t, server_of(t, "global_step", t.parameters.size()), [&] { return outcome(dtg_model_global_step(t.model.get(), &step)); });
  t.global_step = step.read;
  return failed;
}

Outcome add_input(Trace& t, Worker& worker, const std::string& name) {
  const Json& batches = t.file.at("batches").at(name);
  auto dims = batches.at("shape").get<std::vector<int64_t>>();
  dims.erase(dims.begin());
  Node node("Placeholder");
  node.type("dtype", dtg_dtype_from_name(batches.at("dtype").get<std::string>().c_str())).shape("shape", dims);
  std::vector<dtg_value> made;
  Outcome failed = node.add(t.program.graph(), &made);
  if (!failed) worker.inputs[name] = made[0];
  return failed;
}

// sum(gather(emb, ids)^2), added to the loss.
Outcome add_embedding(Trace& t, Worker& worker) {
  const dtg_value table = t.parameters.back().variable.handle;
  std::vector<dtg_value> rows;
  dtg_value squares{}, axes{}, sum{};
  std::string why;
  const Tensor both = make_tensor(Json{{"dtype", "int32"}, {"shape", {2}}, {"data", {0, 1}}}, &why);
  Outcome failed = add_input(t, worker, "ids");
  if (!failed) failed = outcome(dtg_graph_push_colocation(t.program.graph(), table));
  if (failed) return failed;
  failed = Node("ResourceGather").type("dtype", DTG_F32).input(table).input(worker.inputs["ids"]).add(t.program.graph(), &rows);
  if (Outcome unopened = outcome(dtg_graph_pop_colocation(t.program.graph())); !failed) failed = unopened;
  if (!failed) failed = t.program.apply("Square", {rows[0]}, &squares);
  if (!failed) failed = t.program.constant(both, &axes);
  if (!failed) failed = t.program.apply("Sum", {squares, axes}, &sum);
  if (!failed) failed = t.program.apply("AddV2", {worker.loss, sum}, &worker.loss);
  return failed;
}

Outcome add_loss(Trace& t, Worker& worker) {
  const auto read = [&](size_t i) { return t.parameters[i].variable.read; };
  dtg_value value{};
  Outcome failed = add_input(t, worker, "x");
  if (!failed) failed = add_input(t, worker, "y");
  if (!failed) failed = t.program.apply("MatMul", {worker.inputs["x"], read(0)}, &value);
  if (!failed) failed = t.program.apply("BiasAdd", {value, read(1)}, &value);
  if (!failed) failed = t.program.apply("Tanh", {value}, &value);
  if (!failed) failed = t.program.apply("MatMul", {value, read(2)}, &value);
  if (!failed) failed = outcome(dtg_nn_mean_squared_error(t.model.get(), worker.inputs["y"], value, &worker.loss));
  if (!failed && t.parameters.size() == 4) failed = add_embedding(t, worker);
  if (failed) return failed;
  std::vector<dtg_value> handles;
  for (const Parameter& parameter : t.parameters) handles.push_back(parameter.variable.handle);
  worker.gradients.resize(handles.size());
  failed = outcome(
      dtg_graph_add_gradients(t.program.graph(), &worker.loss, 1, handles.data(), handles.size(), nullptr, worker.gradients.data()));
  // The rows' indices are the fed ids themselves, and what is fed cannot be fetched.
  dtg_gradient& last = worker.gradients.back();
  return failed || !last.indices.id ? failed : t.program.apply("Identity", {last.indices}, &last.indices);
}

std::string read_optimizer(const Json& given, dtg_optimizer* out) {
  static const std::map<std::string, dtg_optimizer_kind> kinds = {{"sgd", DTG_OPT_SGD},
                                                                  {"momentum", DTG_OPT_MOMENTUM},
                                                                  {"adam", DTG_OPT_ADAM},
                                                                  {"adagrad", DTG_OPT_ADAGRAD},
                                                                  {"rmsprop", DTG_OPT_RMSPROP}};
  const auto kind = kinds.find(given.at("kind"));
  if (kind == kinds.end()) return "optimizer " + given.at("kind").dump();
  out->kind = kind->second;
  out->rate = given.at("lr");
  out->momentum = given.value("momentum", 0.0);
  out->beta1 = given.value("beta1", 0.0);
  out->beta2 = given.value("beta2", 0.0);
  out->epsilon = given.value("epsilon", 0.0);
  out->initial_accumulator = given.value("initial_accumulator", 0.0);
  return "";
}

Outcome add_share(Trace& t, int32_t number, const dtg_optimizer& optimizer) {
  Worker& worker = t.workers[static_cast<size_t>(number)];
  std::vector<dtg_value> handles;
  for (const Parameter& parameter : t.parameters) handles.push_back(parameter.variable.handle);
  dtg_replication replication = DTG_REPLICATION_INIT;
  if (t.sync) {
    replication.mode = DTG_SYNC_REPLICAS;
    replication.worker = number;
    replication.total = t.file.at("total_num_replicas");
    replication.to_aggregate = t.file.at("replicas_to_aggregate");
  }
  return outcome(dtg_nn_apply_replicated(t.model.get(), handles.data(), worker.gradients.data(), handles.size(), &optimizer, &replication,
                                         &worker.share));
}

// Questions to the accumulators and to the queue of tokens.
Outcome add_questions(Trace& t) {
  const auto ask = [&](const std::string& node, const char* op, dtg_value* out) -> Outcome {
    dtg_value handle{};
    Outcome failed = outcome(dtg_graph_find(t.program.graph(), node.c_str(), DTG_STRLEN, &handle));
    return failed ? failed : t.program.apply(op, {handle}, out);
  };
  for (const Parameter& parameter : t.parameters) {
    const char* const op = parameter.name == "emb" ? "AccumulatorNumAccumulated" : "ResourceAccumulatorNumAccumulated";
    if (Outcome failed = ask(parameter.name + "/grad_accum", op, &t.counts[parameter.name])) return failed;
  }
  return ask("sync_token_q", "QueueSizeV2", &t.token_count);
}

// In an asynchronous trace workers differ in nothing but time, so one share serves all of them.
Outcome build(Trace& t, const dtg_optimizer& optimizer) {
  Outcome failed = add_variables(t);
  t.workers.resize(t.sync ? t.file.at("num_workers").get<size_t>() : 1);
  for (size_t w = 0; !failed && w < t.workers.size(); ++w) {
    failed = on_device(t, t.servers + static_cast<int32_t>(w), [&]() -> Outcome {
      Outcome wrong = add_loss(t, t.workers[w]);
      return wrong ? wrong : add_share(t, static_cast<int32_t>(w), optimizer);
    });
  }
  if (!failed && t.sync) failed = add_questions(t);
  dtg_value init{};
  if (!failed) failed = outcome(dtg_model_init(t.model.get(), &init));
  if (!failed) failed = t.program.run({}, {}, {init}, nullptr);
  for (const Parameter& parameter : t.parameters) {
    std::string why;
    if (!failed) failed = t.program.assign(parameter.variable.handle, make_tensor(t.file.at("initial").at(parameter.name), &why));
  }
  if (!failed && t.sync) failed = t.program.run({}, {}, {t.workers[0].share.chief_init}, nullptr);
  for (const Worker& worker : t.workers) {
    if (!failed) failed = t.program.run({}, {}, {worker.share.local_init}, nullptr);
  }
  return failed;
}

// --- runs ---

Worker& worker_of(Trace& t, const Json& event) { return t.workers[t.sync ? event.at("worker").get<size_t>() : 0]; }

std::vector<Feed> batch(const Trace& t, const Worker& worker, size_t number) {
  std::vector<Feed> feeds;
  for (const auto& [name, value] : worker.inputs) {
    const Json& row = t.file.at("batches").at(name);
    std::vector<int64_t> shape = row.at("shape");
    const Json& all = row.at("data");
    const size_t size = all.size() / static_cast<size_t>(shape[0]);
    Json data = Json::array();
    for (size_t i = number * size; i < (number + 1) * size; ++i) data.push_back(all[i]);
    shape.erase(shape.begin());
    std::string why;
    feeds.push_back({value, make_tensor(Json{{"dtype", row.at("dtype")}, {"shape", shape}, {"data", data}}, &why)});
  }
  return feeds;
}

// The values that make up a gradient.
std::vector<dtg_value> parts(const dtg_gradient& gradient) {
  if (gradient.dense.id) return {gradient.dense};
  return {gradient.values, gradient.indices};
}

// Rows added up into a table of zeros.
std::vector<double> as_table(const std::vector<double>& values, const std::vector<double>& indices, size_t size, size_t width) {
  std::vector<double> table(size);
  for (size_t i = 0; i < values.size(); ++i) table.at(static_cast<size_t>(indices.at(i / width)) * width + i % width) += values[i];
  return table;
}

std::vector<double> numbers(const Json& tensor) {
  std::vector<double> list;
  for (const Json& item : tensor.at("data")) list.push_back(number(item));
  return list;
}

std::string rows_difference(const Json& want, const Tensor& values, const Tensor& indices, const Json& table) {
  const size_t size = table.at("data").size(), width = table.at("shape").at(1);
  const auto wanted = as_table(numbers(want.at("values")), numbers(want.at("indices")), size, width);
  const auto found = as_table(elements(values), elements(indices), size, width);
  for (size_t i = 0; i < size; ++i) {
    if (std::fabs(wanted[i] - found[i]) > 1e-5 * std::max(1.0, std::fabs(wanted[i]))) {
      return "element " + std::to_string(i) + " is " + std::to_string(found[i]) + ", expected " + std::to_string(wanted[i]);
    }
  }
  return "";
}

std::string check_loss(const Json& event, double loss) {
  const double want = event.at("loss");
  return std::fabs(loss - want) <= 1e-5 * std::max(1.0, std::fabs(want))
             ? ""
             : "loss " + std::to_string(loss) + ", expected " + std::to_string(want);
}

std::string compute(Trace& t, const Json& event) {
  Worker& worker = worker_of(t, event);
  std::vector<dtg_value> fetches = {t.global_step, worker.loss};
  for (const dtg_gradient& gradient : worker.gradients) {
    for (const dtg_value part : parts(gradient)) fetches.push_back(part);
  }
  std::vector<Tensor> fetched;
  if (Outcome failed = t.program.run(batch(t, worker, event.at("batch")), fetches, {}, &fetched)) return failed->text;
  const int id = event.at("id");
  for (size_t i = 2; i < fetches.size(); ++i) t.kept[id].push_back({fetches[i], fetched[i]});
  t.read_steps[id] = static_cast<int64_t>(elements(fetched[0]).at(0));
  if (t.read_steps[id] != event.at("read_global_step")) return "read at global step " + std::to_string(t.read_steps[id]);
  if (std::string why = check_loss(event, elements(fetched[1]).at(0)); !why.empty()) return why;
  size_t at = 2;
  for (size_t i = 0; i < t.parameters.size(); ++i) {
    const std::string& name = t.parameters[i].name;
    const Json& want = event.at("gradients").at(name);
    const bool rows = parts(worker.gradients[i]).size() == 2;
    const std::string why = rows ? rows_difference(want, fetched[at], fetched[at + 1], t.file.at("initial").at(name))
                                 : difference(want, fetched[at], scaled_tolerance(want, 1e-5));
    if (!why.empty()) return "gradient of " + name + ": " + why;
    at += rows ? 2 : 1;
  }
  return "";
}

std::string start(Trace& t, uint64_t tag, const std::vector<Feed>& feeds, dtg_value target) {
  std::vector<dtg_value> fed;
  std::vector<const dtg_tensor*> tensors;
  for (const Feed& feed : feeds) fed.push_back(feed.value), tensors.push_back(feed.tensor.get());
  dtg_run_args args = DTG_RUN_ARGS_INIT;
  args.feeds = fed.data();
  args.feed_tensors = tensors.data();
  args.num_feeds = fed.size();
  args.targets = &target;
  args.num_targets = 1;
  dtg_run* run = nullptr;
  const Outcome failed = outcome(dtg_session_run_async(t.program.session(), &args, t.cq.get(), tag, &run));
  if (failed) return failed->text;
  t.running[tag] = {run, dtg_run_release};
  return "";
}

// Whether the run has ended within `wait_ns`.
bool has_ended(Trace& t, uint64_t tag, int64_t wait_ns) {
  while (!t.ended.count(tag)) {
    dtg_completion event{};
    size_t count = 0;
    if (outcome(dtg_cq_next(t.cq.get(), &event, 0, 1, wait_ns, &count)) || count == 0) return false;
    t.ended[event.tag] = outcome(event.error);
  }
  return true;
}

std::string finish(Trace& t, uint64_t tag) {
  if (!has_ended(t, tag, kEndsNs)) return "still blocked";
  const Outcome failed = t.ended[tag];
  t.ended.erase(tag);
  t.running.erase(tag);
  return failed ? failed->text : "";
}

// --- the state ---

std::string check_variables(Trace& t, const Json& event) {
  std::vector<dtg_value> fetches = {t.global_step};
  for (const Parameter& parameter : t.parameters) fetches.push_back(parameter.variable.read);
  std::vector<Tensor> fetched;
  if (Outcome failed = t.program.run({}, fetches, {}, &fetched)) return failed->text;
  const double step = elements(fetched[0]).at(0);
  if (step != event.at("global_step")) return "global_step is " + std::to_string(step);
  for (size_t i = 0; i < t.parameters.size(); ++i) {
    const Json& want = event.at("variables").at(t.parameters[i].name);
    const std::string why = difference(want, fetched[i + 1], scaled_tolerance(want, 1e-5));
    if (!why.empty()) return t.parameters[i].name + ": " + why;
  }
  return "";
}

std::string check_waiting(Trace& t, const Json& event) {
  std::vector<dtg_value> fetches = {t.token_count};
  for (const auto& [name, count] : t.counts) fetches.push_back(count);
  for (const Worker& worker : t.workers) fetches.push_back(worker.share.local_step);
  std::vector<Tensor> fetched;
  if (Outcome failed = t.program.run({}, fetches, {}, &fetched)) return failed->text;
  const auto is = [&](size_t i, const Json& want) { return elements(fetched[i]).at(0) == want; };
  if (!is(0, event.at("token_queue_size"))) return "the queue has " + std::to_string(elements(fetched[0])[0]) + " tokens";
  size_t at = 1;
  for (const auto& [name, count] : t.counts) {
    if (!is(at, event.at("num_accumulated").at(name))) return name + " has " + std::to_string(elements(fetched[at])[0]) + " gradients";
    ++at;
  }
  for (const Json& want : event.at("local_step")) {
    if (!want.is_null() && !is(at, want))
      return "a local_step is " + std::to_string(elements(fetched[at])[0]) + ", expected " + want.dump();
    ++at;
  }
  return "";
}

// What a blocked step has done by now shows soon, not at once; and who is blocked stays so.
std::string check_state(Trace& t, const Json& event) {
  const auto until = std::chrono::steady_clock::now() + std::chrono::nanoseconds(kEndsNs);
  std::string why;
  do {
    why = check_waiting(t, event);
  } while (!why.empty() && std::chrono::steady_clock::now() < until);
  if (!why.empty()) return why;
  for (const uint64_t worker : event.at("blocked_workers")) {
    if (has_ended(t, worker, 0)) return "worker " + std::to_string(worker) + " is not blocked";
  }
  return t.running.size() == event.at("blocked_workers").size() ? check_variables(t, event) : "another number of workers is blocked";
}

// --- events ---

constexpr uint64_t kUpdate = 1000;

std::string check_sync_event(Trace& t, const Json& event) {
  const std::string what = event.at("event");
  if (what == "compute") return compute(t, event);
  if (what == "worker_step") {
    const uint64_t worker = event.at("worker");
    const Kept& gradient = t.kept[event.at("gradient_of_event").get<int>()];
    std::string why = start(t, worker, gradient, t.workers[worker].share.train);
    if (!why.empty()) return why;
    if (!event.at("blocked_on_token")) why = finish(t, worker);
    else if (has_ended(t, worker, kBlocksNs)) why = "did not block";
    if (!why.empty()) return why;
  }
  if (what == "chief_update") {
    std::string why = start(t, kUpdate, {}, t.workers[0].share.update);
    if (why.empty()) why = finish(t, kUpdate);
    for (const uint64_t worker : event.at("released_workers")) {
      if (why.empty()) why = finish(t, worker);
    }
    if (!why.empty()) return why;
  }
  return check_state(t, event);
}

std::string check_async_event(Trace& t, const Json& event) {
  if (event.at("event") == "compute") return compute(t, event);
  Worker& worker = worker_of(t, event);
  const bool whole = event.at("event") == "train";
  std::vector<dtg_value> fetches = {worker.share.next_step, worker.share.local_step};
  if (whole) fetches.push_back(worker.loss);
  const int source = whole ? 0 : event.at("gradient_of_event").get<int>();
  const std::vector<Feed> feeds = whole ? batch(t, worker, event.at("batch")) : t.kept[source];
  std::vector<Tensor> fetched;
  if (Outcome failed = t.program.run(feeds, fetches, {worker.share.train}, &fetched)) return failed->text;
  const auto next = static_cast<int64_t>(elements(fetched[0]).at(0));
  const auto read = whole ? static_cast<int64_t>(elements(fetched[1]).at(0)) : t.read_steps[source];
  if (next != event.at("global_step")) return "next_step is " + std::to_string(next);
  if (next - 1 - read != event.value("staleness", 0)) return "staleness is " + std::to_string(next - 1 - read);
  if (whole) {
    if (std::string why = check_loss(event, elements(fetched[2]).at(0)); !why.empty()) return why;
  }
  return check_variables(t, event);
}

Verdict replay(const Json& file, const dtg_optimizer& optimizer, const std::string& target, std::shared_ptr<dtg_runtime> runtime) {
  Trace t(file, target, std::move(runtime));
  if (!t.model || !t.cq || !t.program.session()) return Verdict::failed("no session, model or completion queue");
  if (Outcome failed = build(t, optimizer)) return Verdict::failed(failed->text);
  for (const Json& event : file.at("events")) {
    const std::string why = t.sync ? check_sync_event(t, event) : check_async_event(t, event);
    if (!why.empty()) return Verdict::failed("event " + event.at("id").dump() + ", " + event.at("event").get<std::string>() + ": " + why);
  }
  for (const auto& [tag, run] : t.running) dtg_run_cancel(run.get());
  return Verdict::passed();
}

}  // namespace

bool is_replica_trace(const Json& file) {
  const std::string kind = file.value("kind", "");
  return (kind == "async" || kind == "sync") && file.contains("events");
}

Verdict check_replica_trace(const Json& file) {
  dtg_optimizer optimizer = DTG_OPTIMIZER_INIT;
  if (std::string why = read_optimizer(file.at("optimizer"), &optimizer); !why.empty()) return Verdict::skipped(why);
  if (Verdict verdict = replay(file, optimizer, "local", nullptr); !verdict) return verdict;
  const Tasks tasks(file.at("num_ps"), file.at("num_workers"));
  if (tasks.failed()) return Verdict::failed(tasks.failed()->text);
  Verdict verdict = replay(file, optimizer, tasks.target(), tasks.runtime());
  if (!verdict) verdict.why = "on servers: " + verdict.why;
  return verdict;
}

}  // namespace dtg::oracle
