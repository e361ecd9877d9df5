// oracle_graphs DIR: whole graphs against what TensorFlow's sessions answered: feeding, fetching, placement on four virtual
// CPU devices, variables, gradients. Through the public C ABI.
#include "program.h"
#include "report.h"

using namespace dtg::oracle;

namespace {

// A graph under test. When it could not be built, `failed` answers every run.
struct Model {
  Program program;
  Outcome failed;
  std::string beyond;
  Node::Functions functions;
};

Outcome find(const Model& model, const std::string& name, dtg_value* out) {
  return outcome(dtg_graph_find(model.program.graph(), name.c_str(), name.size(), out));
}

// The values of a body by the names of their nodes.
using Names = std::map<std::string, std::vector<dtg_value>>;

Outcome find_in(const Names& names, const std::string& text, dtg_value* out) {
  const size_t colon = text.rfind(':');
  const size_t output = colon == std::string::npos ? 0 : std::stoul(text.substr(colon + 1));
  const auto at = names.find(text.substr(0, colon));
  if (at == names.end() || output >= at->second.size()) return Failure{DTG_NOT_FOUND, "no value " + text + " in the function"};
  *out = at->second[output];
  return std::nullopt;
}

Outcome build_called(Model& model, const Json& file, const Json& node);

Outcome add_node(Model& model, dtg_graph* graph, const Names* names, const Json& item, std::vector<dtg_value>* outputs) {
  Node node(item.at("op"), item.at("name"), item.value("device", ""));
  for (const std::string input : item.at("inputs")) {
    const bool control = input[0] == '^';
    dtg_value value{};
    if (Outcome failed = names ? find_in(*names, input.substr(control), &value) : find(model, input.substr(control), &value)) return failed;
    if (control) node.control(value);
    else node.input(value);
  }
  model.beyond = node.functions(model.functions).json(item.at("attrs"));
  if (!model.beyond.empty()) return std::nullopt;
  return node.add(graph, outputs);
}

// A function of the file, after those that it calls.
Outcome build_function(Model& model, const Json& file, const Json& item) {
  const std::string name = item.at("name");
  if (model.functions.count(name)) return std::nullopt;
  for (const Json& node : item.at("nodes")) {
    if (Outcome failed = build_called(model, file, node)) return failed;
  }
  dtg_graph* body = nullptr;
  if (Outcome failed = outcome(dtg_function_begin(model.program.graph(), name.c_str(), DTG_STRLEN, &body))) return failed;
  const std::shared_ptr<dtg_graph> held(body, dtg_graph_release);
  Names names;
  for (const Json& argument : item.at("args")) {
    dtg_value value{};
    const std::string dtype = argument.at("dtype");
    if (Outcome failed = outcome(dtg_function_add_argument(body, dtg_dtype_from_name(dtype.c_str()), nullptr, DTG_STRLEN, &value)))
      return failed;
    names[argument.at("name")] = {value};
  }
  for (const Json& node : item.at("nodes")) {
    Outcome failed = add_node(model, body, &names, node, &names[node.at("name")]);
    if (failed || !model.beyond.empty()) return failed;
  }
  std::vector<dtg_value> results;
  for (const std::string result : item.at("returns")) {
    if (Outcome failed = find_in(names, result, &results.emplace_back())) return failed;
  }
  dtg_function* made = nullptr;
  if (Outcome failed = outcome(dtg_function_end(body, results.data(), results.size(), nullptr, 0, &made))) return failed;
  model.functions[name] = {made, dtg_function_release};
  return std::nullopt;
}

Outcome build_called(Model& model, const Json& file, const Json& node) {
  for (const auto& [attr, typed] : node.at("attrs").items()) {
    std::vector<std::string> wanted;
    if (typed.at("type") == "func") wanted = {typed.at("value").get<std::string>()};
    if (typed.at("type") == "list(func)") wanted = typed.at("value").get<std::vector<std::string>>();
    for (const std::string& name : wanted) {
      for (const Json& function : file.at("functions")) {
        if (function.at("name") != name) continue;
        if (Outcome failed = build_function(model, file, function)) return failed;
      }
    }
  }
  return std::nullopt;
}

// Why the file is out of scope, before anything is built.
std::string beyond_scope(const Json& file) {
  for (const Json& node : file.at("nodes")) {
    if (std::string why = missing_op(node.at("op")); !why.empty()) return why;
  }
  return "";
}

void build(const Json& file, Model& model) {
  for (const Json& node : file.at("nodes")) {
    std::vector<dtg_value> outputs;
    model.failed = build_called(model, file, node);
    if (!model.failed) model.failed = add_node(model, model.program.graph(), nullptr, node, &outputs);
    if (model.failed || !model.beyond.empty()) return;
  }
}

Outcome read_feeds(const Model& model, const Json& json, std::vector<Feed>* feeds) {
  for (const auto& [name, value] : json.items()) {
    std::string why;
    Feed feed{{}, make_tensor(value, &why)};
    if (!feed.tensor) return Failure{DTG_UNIMPLEMENTED, why};
    if (Outcome failed = find(model, name, &feed.value)) return failed;
    feeds->push_back(feed);
  }
  return std::nullopt;
}

Outcome read_names(const Model& model, const Json& names, std::vector<dtg_value>* out) {
  for (const std::string name : names) {
    if (Outcome failed = find(model, name, &out->emplace_back())) return failed;
  }
  return std::nullopt;
}

Verdict compare(const Json& wanted, const std::vector<Tensor>& got, double tol) {
  if (wanted.size() != got.size()) return Verdict::failed("the number of outputs differs");
  for (size_t i = 0; i < wanted.size(); ++i) {
    const std::string why = difference(wanted[i], got[i], scaled_tolerance(wanted[i], tol));
    if (!why.empty()) return Verdict::failed("fetch " + std::to_string(i) + ": " + why);
  }
  return Verdict::passed();
}

Verdict check_run(Model& model, const Json& run) {
  std::vector<Feed> feeds;
  std::vector<dtg_value> fetches, targets;
  std::vector<Tensor> fetched;
  Outcome failed = model.failed;
  if (!failed) failed = read_feeds(model, run.at("feeds"), &feeds);
  if (!failed) failed = read_names(model, run.at("fetches"), &fetches);
  if (!failed) failed = read_names(model, run.at("targets"), &targets);
  if (!failed) failed = model.program.run(feeds, fetches, targets, &fetched);
  if (!run.contains("error")) return failed ? Verdict::failed(failed->text) : compare(run.at("outputs"), fetched, run.at("tol"));
  const std::string wanted = run.at("error");
  if (!failed) return Verdict::failed("no error, expected " + wanted);
  return dtg_code_name(failed->code) == wanted ? Verdict::passed() : Verdict::failed("expected " + wanted + ": " + failed->text);
}

// The values of grad_ys as constants; a null one stays invalid, which stands for ones.
Outcome read_weights(Model& model, const Json& json, std::vector<dtg_value>* weights) {
  for (const Json& item : json) {
    dtg_value& weight = weights->emplace_back();
    if (item.is_null()) continue;
    std::string why;
    const Tensor tensor = make_tensor(item, &why);
    if (!tensor) return Failure{DTG_UNIMPLEMENTED, why};
    if (Outcome failed = model.program.constant(tensor, &weight)) return failed;
  }
  return std::nullopt;
}

// Dense forms of the gradients that exist, wrapped so that a fed value may be among them.
Outcome dense_gradients(Model& model, const std::vector<dtg_gradient>& gradients, std::vector<dtg_value>* fetches) {
  for (const dtg_gradient& gradient : gradients) {
    if (is_none(gradient)) continue;
    dtg_value dense{};
    if (Outcome failed = outcome(dtg_graph_densify(model.program.graph(), &gradient, &dense))) return failed;
    if (Outcome failed = model.program.apply("Identity", {dense}, &fetches->emplace_back())) return failed;
  }
  return std::nullopt;
}

Verdict check_gradient(Model& model, const Json& item) {
  std::vector<Feed> feeds;
  std::vector<dtg_value> ys, xs, weights, fetches;
  std::vector<Tensor> fetched;
  Outcome failed = model.failed;
  if (!failed) failed = read_feeds(model, item.at("feeds"), &feeds);
  if (!failed) failed = read_names(model, item.at("ys"), &ys);
  if (!failed) failed = read_names(model, item.at("xs"), &xs);
  const bool weighted = item.contains("grad_ys") && !item.at("grad_ys").is_null();
  if (!failed && weighted) failed = read_weights(model, item.at("grad_ys"), &weights);
  std::vector<dtg_gradient> gradients(xs.size());
  if (!failed) {
    failed = outcome(dtg_graph_add_gradients(model.program.graph(), ys.data(), ys.size(), xs.data(), xs.size(),
                                             weighted ? weights.data() : nullptr, gradients.data()));
  }
  if (item.contains("error")) {
    const std::string wanted = item.at("error");
    return failed && dtg_code_name(failed->code) == wanted ? Verdict::passed() : Verdict::failed("expected " + wanted);
  }
  if (!failed) failed = dense_gradients(model, gradients, &fetches);
  if (failed) return Verdict::failed(failed->text);
  if (!fetches.empty()) failed = model.program.run(feeds, fetches, {}, &fetched);
  if (failed) return Verdict::failed(failed->text);
  size_t next = 0;
  for (size_t i = 0; i < gradients.size(); ++i) {
    const Json& wanted = item.at("outputs")[i];
    if (wanted.is_null() != is_none(gradients[i])) {
      return Verdict::failed("x " + std::to_string(i) + (wanted.is_null() ? ": a gradient where none flows" : ": no gradient"));
    }
    if (wanted.is_null()) continue;
    const std::string why = difference(wanted, fetched[next++], scaled_tolerance(wanted, item.at("tol")));
    if (!why.empty()) return Verdict::failed("x " + std::to_string(i) + ": " + why);
  }
  return Verdict::passed();
}

// A file is one case: its runs share a session, and what one leaves in the variables the next one finds.
Verdict check_session(const Json& file, bool fusion) {
  Model model{Program({file.value("num_cpu_devices", 1), fusion, 0}), {}, {}, {}};
  build(file, model);
  if (!model.beyond.empty()) return Verdict::skipped(model.beyond);
  for (size_t i = 0; i < file.at("runs").size(); ++i) {
    Verdict verdict = check_run(model, file.at("runs")[i]);
    if (!verdict) return Verdict::failed("run " + std::to_string(i) + ": " + verdict.why);
  }
  if (!file.contains("gradients")) return Verdict::passed();
  for (size_t i = 0; i < file.at("gradients").size(); ++i) {
    Verdict verdict = check_gradient(model, file.at("gradients")[i]);
    if (!verdict) return Verdict::failed("gradients " + std::to_string(i) + ": " + verdict.why);
  }
  return Verdict::passed();
}

// With element-wise chains fused, as programs run, and with every op by itself.
Verdict check_all(const Json& file) {
  if (std::string why = beyond_scope(file); !why.empty()) return Verdict::skipped(why);
  if (Verdict verdict = check_session(file, /*fusion=*/true); !verdict) return verdict;
  Verdict verdict = check_session(file, /*fusion=*/false);
  if (verdict.kind == Verdict::kFailed) verdict.why = "without fusion: " + verdict.why;
  return verdict;
}

void check_file(const std::string&, const Json& file, const Options& options, Report& report) {
  const std::string name = file.at("name");
  if (options.wants(name)) report.add(name, check_all(file));
}

}  // namespace

int main(int argc, char** argv) { return run_tool(argc, argv, "graphs", check_file); }
