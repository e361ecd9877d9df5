// oracle_train DIR: small models trained step by step, against TensorFlow's losses, parameters and slots. Through the public
// C ABI: the graph as given, gradients by the library, one prepared callable for all steps.
#include <cmath>
#include <filesystem>

#include "report.h"
#include "updates.h"

using namespace dtg::oracle;

namespace {

// A case under way.
struct Training {
  Training(const Json& json, int32_t threads) : file(json), program({1, true, threads}) {}

  const Json& file;
  SafeTensors stored;
  Program program;
  std::vector<Parameter> parameters;  // trained ones
  std::map<std::string, dtg_value> handles;
  std::map<std::string, dtg_dtype> dtypes;
  dtg_value loss{};
  Updates updates;
  std::vector<dtg_value> fed;
  std::vector<std::vector<Tensor>> batches;  // by feed
  std::vector<double> losses;
};

dtg_dtype stored_dtype(const std::string& name) {
  static const std::map<std::string, dtg_dtype> names = {{"F32", DTG_F32}, {"F64", DTG_F64}, {"I32", DTG_I32},
                                                         {"I64", DTG_I64}, {"U8", DTG_U8},   {"BOOL", DTG_BOOL}};
  const auto found = names.find(name);
  return found == names.end() ? 0 : found->second;
}

// Row `row` of a stored tensor, or all of it when `row` is negative.
Tensor load(const SafeTensors& stored, const std::string& name, int64_t row, std::string* why) {
  const auto entry = stored.entries.find(name);
  if (entry == stored.entries.end()) {
    *why = "no tensor " + name;
    return nullptr;
  }
  std::vector<int64_t> shape = entry->second.shape;
  const char* at = stored.bytes.data() + stored.data_start + entry->second.begin;
  size_t nbytes = entry->second.end - entry->second.begin;
  if (row >= 0) {
    nbytes /= static_cast<size_t>(shape.at(0));
    at += nbytes * static_cast<size_t>(row);
    shape.erase(shape.begin());
  }
  return make_tensor(stored_dtype(entry->second.dtype), shape, at, nbytes, why);
}

Verdict build(Training& t) {
  for (const Json& item : t.file.at("graph")) {
    if (std::string why = missing_op(item.at("op")); !why.empty()) return Verdict::skipped(why);
  }
  for (const Json& item : t.file.at("graph")) {
    Node node(item.at("op"), item.at("name"), item.value("device", ""));
    for (const std::string input : item.at("inputs")) {
      dtg_value value{};
      const bool control = input[0] == '^';
      const Outcome failed = outcome(dtg_graph_find(t.program.graph(), input.c_str() + control, DTG_STRLEN, &value));
      if (failed) return Verdict::failed(failed->text);
      if (control) node.control(value);
      else node.input(value);
    }
    if (std::string why = node.json(item.at("attrs")); !why.empty()) return Verdict::skipped(why);
    std::vector<dtg_value> outputs;
    if (Outcome failed = node.add(t.program.graph(), &outputs)) return Verdict::failed(failed->text);
  }
  const std::string loss = t.file.at("loss");
  const Outcome failed = outcome(dtg_graph_find(t.program.graph(), loss.c_str(), DTG_STRLEN, &t.loss));
  return failed ? Verdict::failed(failed->text) : Verdict::passed();
}

Verdict start(Training& t) {
  for (const Json& param : t.file.at("params")) {
    const std::string name = param.at("name");
    std::string why;
    dtg_value handle{};
    Outcome failed = outcome(dtg_graph_find(t.program.graph(), name.c_str(), DTG_STRLEN, &handle));
    const Tensor value = load(t.stored, "init/" + name, -1, &why);
    if (!value) return Verdict::failed(why);
    if (!failed) failed = t.program.assign(handle, value);
    if (failed) return Verdict::failed(failed->text);
    t.handles[name] = handle;
    t.dtypes[name] = dtg_tensor_dtype(value.get());
    if (param.at("trainable")) t.parameters.push_back({name, t.dtypes[name], shape_of(value), handle, {}, {}});
  }
  for (const auto& [name, key] : t.file.at("feeds").items()) {
    if (Outcome failed = outcome(dtg_graph_find(t.program.graph(), name.c_str(), DTG_STRLEN, &t.fed.emplace_back()))) {
      return Verdict::failed(failed->text);
    }
    std::vector<Tensor>& rows = t.batches.emplace_back();
    for (int64_t row = 0; row < t.file.at("num_batches").get<int64_t>(); ++row) {
      std::string why;
      rows.push_back(load(t.stored, key, row, &why));
      if (!rows.back()) return Verdict::failed(why);
    }
  }
  return Verdict::passed();
}

Outcome differentiate(Training& t) {
  std::vector<dtg_value> xs;
  for (const Parameter& parameter : t.parameters) xs.push_back(parameter.handle);
  std::vector<dtg_gradient> gradients(xs.size());
  Outcome failed = outcome(dtg_graph_add_gradients(t.program.graph(), &t.loss, 1, xs.data(), xs.size(), nullptr, gradients.data()));
  for (size_t i = 0; i < xs.size(); ++i) t.parameters[i].gradient = gradients[i];
  return failed;
}

// What the vectors keep of a large tensor: sums and a few elements.
std::string summary_difference(const Json& want, const Tensor& got, double rtol) {
  const std::vector<double> list = elements(got);
  double sum = 0, sum_sq = 0;
  for (double item : list) sum += item, sum_sq += item * item;
  const double want_sq = want.at("sum_sq"), want_abs = want.at("sum_abs");
  const double rms = list.empty() ? 0 : std::sqrt(want_sq / static_cast<double>(list.size()));
  for (size_t i = 0; i < want.at("sample").size(); ++i) {
    const double item = number(want.at("sample")[i]), found = list.at(want.at("sample_index")[i].get<size_t>());
    if (!(std::fabs(found - item) <= rtol * std::max(std::fabs(item), rms))) {
      return "element " + want.at("sample_index")[i].dump() + " is " + std::to_string(found) + ", expected " + std::to_string(item);
    }
  }
  if (!(std::fabs(sum - number(want.at("sum"))) <= rtol * want_abs)) return "the sum is " + std::to_string(sum);
  if (!(std::fabs(sum_sq - want_sq) <= 2 * rtol * want_sq)) return "the sum of squares is " + std::to_string(sum_sq);
  return "";
}

Verdict check_first_gradients(Training& t, double rtol) {
  std::vector<Feed> feeds;
  for (size_t i = 0; i < t.fed.size(); ++i) feeds.push_back({t.fed[i], t.batches[i][0]});
  std::vector<dtg_value> fetches;
  std::vector<Tensor> fetched;
  for (const Parameter& parameter : t.parameters) {
    dtg_value& dense = fetches.emplace_back();
    const Outcome failed = outcome(dtg_graph_densify(t.program.graph(), &parameter.gradient, &dense));
    if (failed) return Verdict::failed("gradient of " + parameter.name + ": " + failed->text);
  }
  if (Outcome failed = t.program.run(feeds, fetches, {}, &fetched)) return Verdict::failed(failed->text);
  for (size_t i = 0; i < fetched.size(); ++i) {
    const std::string& name = t.parameters[i].name;
    const std::string why = summary_difference(t.file.at("first_step_gradients").at(name), fetched[i], 4 * rtol);
    if (!why.empty()) return Verdict::failed("first gradient of " + name + ": " + why);
  }
  return Verdict::passed();
}

Outcome prepare(Training& t, std::shared_ptr<dtg_callable>* out) {
  std::vector<dtg_value> fetches = {t.loss}, targets = t.updates.targets;
  if (t.updates.global_norm.id) fetches.push_back(t.updates.global_norm);
  for (const std::string name : t.file.at("update_targets")) {
    dtg_value& target = targets.emplace_back();
    if (Outcome failed = outcome(dtg_graph_find(t.program.graph(), name.c_str(), DTG_STRLEN, &target))) return failed;
  }
  dtg_run_args args = DTG_RUN_ARGS_INIT;
  args.feeds = t.fed.data();
  args.num_feeds = t.fed.size();
  args.fetches = fetches.data();
  args.num_fetches = fetches.size();
  args.targets = targets.data();
  args.num_targets = targets.size();
  dtg_callable* callable = nullptr;
  Outcome failed = outcome(dtg_session_prepare(t.program.session(), &args, &callable));
  if (!failed) *out = {callable, dtg_callable_release};
  return failed;
}

Verdict train(Training& t, double rtol) {
  std::shared_ptr<dtg_callable> callable;
  if (Outcome failed = prepare(t, &callable)) return Verdict::failed(failed->text);
  const size_t fetches = t.updates.global_norm.id ? 2 : 1;
  for (size_t step = 0; step < t.file.at("steps").get<size_t>(); ++step) {
    std::vector<const dtg_tensor*> feeds;
    for (const std::vector<Tensor>& rows : t.batches) feeds.push_back(rows[step % rows.size()].get());
    dtg_tensor* fetched[2] = {};
    const Outcome failed = outcome(dtg_callable_run(callable.get(), feeds.data(), feeds.size(), fetched, fetches, 0));
    if (failed) return Verdict::failed("step " + std::to_string(step) + ": " + failed->text);
    const Tensor results[2] = {adopt(fetched[0]), adopt(fetched[1])};
    t.losses.push_back(elements(results[0]).at(0));
    for (size_t i = 0; i < fetches; ++i) {
      const double got = elements(results[i]).at(0);
      const double want = number(t.file.at(i ? "global_norms" : "losses")[step]);
      // Norms are written with nine digits, also where the case is float64.
      const double allowed = (i ? std::max(rtol, 1e-8) : rtol) * std::fabs(want);
      if (!(std::fabs(got - want) <= allowed)) {
        return Verdict::failed("step " + std::to_string(step) + ": " + (i ? "norm " : "loss ") + std::to_string(got) + ", expected " +
                               std::to_string(want));
      }
    }
  }
  return Verdict::passed();
}

Verdict compare_variable(Training& t, const std::string& what, dtg_value handle, dtg_dtype dtype, const Json& want, double rtol) {
  Tensor got;
  if (Outcome failed = t.program.read(handle, dtype, &got)) return Verdict::failed(what + ": " + failed->text);
  const std::string why = summary_difference(want, got, rtol);
  return why.empty() ? Verdict::passed() : Verdict::failed(what + " after the last step: " + why);
}

Verdict compare_end(Training& t, double rtol) {
  for (const auto& [name, want] : t.file.at("params_after").items()) {
    if (Verdict v = compare_variable(t, name, t.handles.at(name), t.dtypes.at(name), want, rtol); !v) return v;
  }
  for (const Parameter& parameter : t.parameters) {
    if (!t.file.at("slots_after").contains(parameter.name)) continue;
    for (const auto& [slot, want] : t.file.at("slots_after").at(parameter.name).items()) {
      const std::string what = parameter.name + "/" + slot;
      if (Verdict v = compare_variable(t, what, parameter.slots.at(slot), parameter.dtype, want, 4 * rtol); !v) return v;
    }
  }
  return Verdict::passed();
}

// Trains with that many threads and leaves the losses.
Verdict replay(const std::string& path, const Json& file, int32_t threads, std::vector<double>* losses) {
  Training t(file, threads);
  if (Verdict verdict = build(t); !verdict) return verdict;
  const std::string folder = std::filesystem::path(path).parent_path().string();
  if (!read_safetensors(folder + "/" + file.at("tensors").get<std::string>(), &t.stored)) {
    return Verdict::failed("the tensors beside the case cannot be read");
  }
  if (Verdict verdict = start(t); !verdict) return verdict;
  if (Outcome failed = differentiate(t)) return Verdict::failed(failed->text);
  const double rtol = file.at("rtol"), params_rtol = file.at("params_rtol");
  if (Verdict verdict = check_first_gradients(t, params_rtol); !verdict) return verdict;
  if (Outcome failed = add_updates(t.program, file.at("optimizer"), t.loss, t.parameters, &t.updates)) {
    return Verdict::failed(failed->text);
  }
  if (!t.updates.beyond.empty()) return Verdict::skipped(t.updates.beyond);
  if (Verdict verdict = train(t, rtol); !verdict) return verdict;
  *losses = t.losses;
  return compare_end(t, params_rtol);
}

// One thread and two give the same losses to the last bit.
Verdict check_training(const std::string& path, const Json& file) {
  std::vector<double> one, two;
  if (Verdict verdict = replay(path, file, 1, &one); !verdict) return verdict;
  if (Verdict verdict = replay(path, file, 2, &two); !verdict) return verdict;
  return one == two ? Verdict::passed() : Verdict::failed("the losses of one thread and of two differ");
}

void check_file(const std::string& path, const Json& file, const Options& options, Report& report) {
  const std::string name = file.at("name");
  if (options.wants(name)) report.add(name, check_training(path, file));
}

}  // namespace

int main(int argc, char** argv) { return run_tool(argc, argv, "train", check_file); }
