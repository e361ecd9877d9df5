// Queues and accumulators under concurrency, event by event, against what TensorFlow's did: what blocks, what a later event
// lets go on, values and error codes. Every event is an asynchronous run, so that a blocked one holds no thread of this tool.
#include <algorithm>
#include <set>

#include "ps.h"

namespace dtg::oracle {
namespace {

constexpr int64_t kEndsNs = int64_t{10} * 1000 * 1000 * 1000;  // what must end gets this long
constexpr int64_t kBlocksNs = 2 * 1000 * 1000;                 // what must block is watched this long

// One event list under way.
struct Sequence {
  explicit Sequence(const Json& json) : file(json) {
    dtg_cq* queue = nullptr;
    if (!outcome(dtg_cq_create(&queue))) cq = {queue, dtg_cq_release};
  }

  const Json& file;
  Program program;
  dtg_value handle{};
  std::shared_ptr<dtg_cq> cq;
  std::map<uint64_t, std::shared_ptr<dtg_run>> runs;
  std::map<uint64_t, size_t> outputs;       // how many results a run has
  std::map<uint64_t, Outcome> ended;        // not asked for yet
  std::string family;                       // accumulators: "Resource", "" or "Sparse"
  std::vector<std::string> offered, taken;  // queues without order: elements put in and got out
};

std::string op_name(const Sequence& s, const std::string& event) {
  static const std::map<std::string, std::string> queue = {{"enqueue", "QueueEnqueueV2"},           {"enqueue_many", "QueueEnqueueManyV2"},
                                                           {"dequeue", "QueueDequeueV2"},           {"dequeue_many", "QueueDequeueManyV2"},
                                                           {"dequeue_up_to", "QueueDequeueUpToV2"}, {"size", "QueueSizeV2"},
                                                           {"is_closed", "QueueIsClosedV2"},        {"close", "QueueCloseV2"}};
  if (const auto found = queue.find(event); found != queue.end()) return found->second;
  const std::string resource = s.family == "Resource" ? "Resource" : "", sparse = s.family == "Sparse" ? "Sparse" : resource;
  if (event == "apply_gradient") return sparse + "AccumulatorApplyGradient";
  if (event == "take_gradient") return sparse + "AccumulatorTakeGradient";
  if (event == "num_accumulated") return resource + "AccumulatorNumAccumulated";
  return resource + "AccumulatorSetGlobalStep";
}

Outcome add_queue(Sequence& s) {
  const std::string kind = s.file.at("queue");
  Node node(kind + "V2");
  node.json("component_types", {{"type", "list(type)"}, {"value", s.file.at("component_dtypes")}});
  node.json("shapes", {{"type", "list(shape)"}, {"value", s.file.at("component_shapes")}});
  node.json("capacity", {{"type", "int"}, {"value", s.file.at("capacity")}});
  if (!s.file.at("min_after_dequeue").is_null()) {
    node.json("min_after_dequeue", {{"type", "int"}, {"value", s.file.at("min_after_dequeue")}});
  }
  std::vector<dtg_value> made;
  Outcome failed = node.add(s.program.graph(), &made);
  if (!failed) s.handle = made[0];
  return failed;
}

Outcome add_accumulator(Sequence& s) {
  Node node((s.family == "Resource" ? "Resource" : "") + s.file.at("accumulator").get<std::string>());
  node.json("dtype", {{"type", "type"}, {"value", s.file.at("dtype")}});
  node.json("shape", {{"type", "shape"}, {"value", s.file.at("shape")}});
  node.json("reduction_type", {{"type", "string"}, {"value", s.file.at("reduction_type")}});
  std::vector<dtg_value> made;
  Outcome failed = node.add(s.program.graph(), &made);
  if (!failed) s.handle = made[0];
  return failed;
}

// The event's operands, in the order of the op's inputs.
std::vector<Json> operands(const Json& event) {
  const auto scalar = [](const char* dtype, const Json& value) {
    return Json{{"dtype", dtype}, {"shape", Json::array()}, {"data", Json::array({value})}};
  };
  std::vector<Json> list;
  if (event.contains("value")) list.assign(event.at("value").begin(), event.at("value").end());
  if (event.contains("n")) list.push_back(scalar("int32", event.at("n")));
  if (event.contains("num_required")) list.push_back(scalar("int32", event.at("num_required")));
  if (event.contains("new_global_step")) list.push_back(scalar("int64", event.at("new_global_step")));
  if (event.contains("local_step")) list.push_back(scalar("int64", event.at("local_step")));
  for (const char* name : {"gradient", "indices", "values", "dense_shape"}) {
    if (event.contains(name)) list.push_back(event.at(name));
  }
  return list;
}

Outcome start(Sequence& s, const Json& event) {
  const std::string name = event.at("op"), op = op_name(s, name);
  Node node(op);
  node.input(s.handle);
  for (const Json& operand : operands(event)) {
    std::string why;
    dtg_value value{};
    const Tensor tensor = make_tensor(operand, &why);
    if (!tensor) return Failure{DTG_UNIMPLEMENTED, why};
    if (Outcome failed = s.program.constant(tensor, &value)) return failed;
    node.input(value);
  }
  if (name.starts_with("dequeue")) {
    node.json("component_types", {{"type", "list(type)"}, {"value", s.file.at("component_dtypes")}});
  }
  if (name == "take_gradient") node.json("dtype", {{"type", "type"}, {"value", s.file.at("dtype")}});
  if (name == "apply_gradient" && s.family == "Sparse") node.flag("has_known_shape", !s.file.at("shape").is_null());
  if (name == "close") node.flag("cancel_pending_enqueues", event.at("cancel_pending_enqueues"));
  std::vector<dtg_value> values;
  if (Outcome failed = node.add(s.program.graph(), &values)) return failed;
  dtg_dtype dtype = 0;
  const bool fetches = !outcome(dtg_value_dtype(s.program.graph(), values[0], &dtype));
  dtg_run_args args = DTG_RUN_ARGS_INIT;
  (fetches ? args.fetches : args.targets) = values.data();
  (fetches ? args.num_fetches : args.num_targets) = values.size();
  dtg_run* run = nullptr;
  const uint64_t id = event.at("id");
  if (Outcome failed = outcome(dtg_session_run_async(s.program.session(), &args, s.cq.get(), id, &run))) return failed;
  s.runs[id] = {run, dtg_run_release};
  s.outputs[id] = fetches ? values.size() : 0;
  return std::nullopt;
}

// Collects completions until `id` is among them, or for `wait_ns`.
void collect(Sequence& s, uint64_t id, int64_t wait_ns) {
  while (!s.ended.count(id)) {
    dtg_completion events[8];
    size_t count = 0;
    if (outcome(dtg_cq_next(s.cq.get(), events, 0, 8, wait_ns, &count)) || count == 0) return;
    for (size_t i = 0; i < count; ++i) s.ended[events[i].tag] = outcome(events[i].error);
  }
}

bool is_unordered(const Sequence& s) { return s.file.value("queue", "") == "RandomShuffleQueue"; }

// Elements of a batch or a single one, as text.
void note_elements(const Tensor& tensor, std::vector<std::string>* list) {
  for (double value : elements(tensor)) list->push_back(std::to_string(value));
}

std::string compare_result(Sequence& s, const Json& wanted, const std::vector<Tensor>& got) {
  if (wanted.is_boolean() || wanted.is_number()) {
    const double want = wanted.is_boolean() ? wanted.get<bool>() : wanted.get<double>();
    return elements(got.at(0)).at(0) == want ? "" : "is " + std::to_string(elements(got[0])[0]) + ", expected " + wanted.dump();
  }
  if (is_unordered(s)) {
    note_elements(got.at(0), &s.taken);
    const int64_t count = dtg_tensor_count(got[0].get());
    return count == wanted.at("count") ? "" : std::to_string(count) + " elements, expected " + wanted.at("count").dump();
  }
  std::vector<Json> list;
  if (is_tensor(wanted)) list = {wanted};
  else if (wanted.is_array()) list.assign(wanted.begin(), wanted.end());
  else list = {wanted.at("indices"), wanted.at("values"), wanted.at("dense_shape")};
  if (list.size() != got.size()) return "the number of results differs";
  for (size_t i = 0; i < list.size(); ++i) {
    const std::string why = difference(list[i], got[i], scaled_tolerance(list[i], 1e-5));
    if (!why.empty()) return "result " + std::to_string(i) + ": " + why;
  }
  return "";
}

// Checks how run `id` ended, as `wanted` says.
std::string check_end(Sequence& s, const Json& wanted) {
  const uint64_t id = wanted.at("id");
  collect(s, id, kEndsNs);
  const auto end = s.ended.find(id);
  if (end == s.ended.end()) return "still blocked";
  const Outcome failed = end->second;
  s.ended.erase(end);
  if (wanted.contains("error")) {
    const std::string code = wanted.at("error");
    if (!failed) return "no error, expected " + code;
    return dtg_code_name(failed->code) == code ? "" : "expected " + code + ": " + failed->text;
  }
  if (failed) return failed->text;
  if (!wanted.contains("result")) return "";
  std::vector<Tensor> results;
  for (size_t i = 0; i < s.outputs[id]; ++i) {
    dtg_tensor* tensor = nullptr;
    if (Outcome lost = outcome(dtg_run_take_result(s.runs[id].get(), i, &tensor))) return lost->text;
    results.push_back(adopt(tensor));
  }
  return compare_result(s, wanted.at("result"), results);
}

std::string check_event(Sequence& s, const Json& event) {
  const uint64_t id = event.at("id");
  const bool blocks = event.at("state") == "blocked";
  if (Outcome failed = start(s, event)) s.ended[id] = failed;
  if (is_unordered(s) && event.contains("value")) {
    std::string why;
    note_elements(make_tensor(event.at("value").at(0), &why), &s.offered);
  }
  if (blocks) collect(s, id, kBlocksNs);
  else if (std::string why = check_end(s, event); !why.empty()) return why;
  for (const Json& other : event.value("resolved", Json::array())) {
    if (std::string why = check_end(s, other); !why.empty()) return "lets " + other.at("id").dump() + " go on: " + why;
  }
  if (s.ended.empty()) return "";
  const auto& [early, failed] = *s.ended.begin();
  return "run " + std::to_string(early) + " ended, expected it to block" + (failed ? ": " + failed->text : "");
}

Verdict check_sequence(const Json& file, const std::string& family) {
  Sequence s(file);
  s.family = family;
  const bool queue = file.contains("queue");
  if (queue) {
    for (const std::string dtype : file.at("component_dtypes")) {
      if (dtg_dtype_size(dtg_dtype_from_name(dtype.c_str())) == 0) return Verdict::skipped("dtype " + dtype);
    }
  }
  if (Outcome failed = queue ? add_queue(s) : add_accumulator(s)) return Verdict::failed(failed->text);
  for (const Json& event : file.at("events")) {
    const std::string why = check_event(s, event);
    const std::string name = event.at("id").dump() + ", " + event.at("op").get<std::string>();
    if (!why.empty()) return Verdict::failed("event " + name + ": " + why);
  }
  std::sort(s.offered.begin(), s.offered.end());
  std::sort(s.taken.begin(), s.taken.end());
  if (!std::includes(s.offered.begin(), s.offered.end(), s.taken.begin(), s.taken.end())) {
    return Verdict::failed("an element came out twice, or was never put in");
  }
  return Verdict::passed();
}

}  // namespace

void check_events(const std::string& path, const Json& file, const Options& options, Report& report) {
  for (const Json& sequence : file.at("sequences")) {
    const std::string name = stem(path) + "/" + sequence.at("name").get<std::string>();
    if (!options.wants(name)) continue;
    const std::string kind = sequence.value("accumulator", "");
    Verdict verdict = check_sequence(sequence, kind == "ConditionalAccumulator" ? "Resource" : kind.empty() ? "" : "Sparse");
    // The older names work on the same object.
    if (verdict && kind == "ConditionalAccumulator") verdict = check_sequence(sequence, "");
    report.add(name, verdict);
  }
}

}  // namespace dtg::oracle
