// The section "cases": one node, twice, and its gradients; see sections.h.
#include "sections.h"

namespace dtg::oracle {
namespace {

// One node, built and run once.
struct Attempt {
  Program program;
  std::vector<dtg_value> inputs;
  std::vector<dtg_value> outputs;
  std::vector<Feed> feeds;
  std::vector<Tensor> results;
  bool has_results = false;
  Outcome failed;
  std::string beyond;  // why the case cannot be written with this library
};

// A value for `tensor`: a constant, or a placeholder that hides the shape until the run.
Outcome add_input(Attempt& at, const Tensor& tensor, bool fed, dtg_value* out) {
  if (!fed) return at.program.constant(tensor, out);
  if (Outcome failed = at.program.placeholder(dtg_tensor_dtype(tensor.get()), out)) return failed;
  at.feeds.push_back({*out, tensor});
  return std::nullopt;
}

void attempt(const std::string& op, const Json& entry, bool fed, Attempt& at) {
  Node node(op);
  for (const Json& input : entry.at("inputs")) {
    const Tensor tensor = make_tensor(input, &at.beyond);
    if (!tensor) return;
    dtg_value value{};
    if ((at.failed = add_input(at, tensor, fed, &value))) return;
    at.inputs.push_back(value);
    node.input(value);
  }
  at.beyond = node.json(entry.at("attrs"));
  if (!at.beyond.empty()) return;
  if ((at.failed = node.add(at.program.graph(), &at.outputs))) return;
  dtg_dtype dtype = 0;
  at.has_results = !outcome(dtg_value_dtype(at.program.graph(), at.outputs[0], &dtype));
  if (at.has_results) at.failed = at.program.run(at.feeds, at.outputs, {}, &at.results);
  else at.failed = at.program.run(at.feeds, {}, at.outputs, nullptr);
}

Verdict compare_outputs(const Json& entry, const Attempt& at, Tolerance tolerance) {
  const Json& wanted = entry.at("outputs");
  if (at.results.size() != wanted.size()) {
    return Verdict::failed(std::to_string(at.results.size()) + " outputs, expected " + std::to_string(wanted.size()));
  }
  for (size_t i = 0; i < wanted.size(); ++i) {
    if (wanted[i].value("skip", false)) continue;
    const std::string why = difference(wanted[i], at.results[i], tolerance);
    if (!why.empty()) return Verdict::failed("output " + std::to_string(i) + ": " + why);
  }
  return Verdict::passed();
}

// The weights of a gradient: the outputs that have one, and their values.
Outcome add_weights(Attempt& at, const Json& dy, bool fed, std::vector<dtg_value>* ys, std::vector<dtg_value>* weights) {
  for (size_t i = 0; i < dy.size() && i < at.outputs.size(); ++i) {
    if (dy[i].is_null()) continue;
    const Tensor tensor = make_tensor(dy[i], &at.beyond);
    if (!tensor) return std::nullopt;
    dtg_value weight{};
    if (Outcome failed = add_input(at, tensor, fed, &weight)) return failed;
    ys->push_back(at.outputs[i]);
    weights->push_back(weight);
  }
  return std::nullopt;
}

Verdict compare_gradient(const Json& wanted, const dtg_gradient& got, Attempt& at, Tolerance tolerance) {
  if (wanted.is_null()) return is_none(got) ? Verdict::passed() : Verdict::failed("a gradient where none flows");
  if (is_none(got)) return Verdict::failed("no gradient");
  dtg_value dense{};
  std::vector<Tensor> fetched;
  if (Outcome failed = outcome(dtg_graph_densify(at.program.graph(), &got, &dense))) return Verdict::failed(failed->text);
  // A gradient may be the very value that is fed as dy, which a run does not fetch.
  if (Outcome failed = at.program.apply("Identity", {dense}, &dense)) return Verdict::failed(failed->text);
  if (Outcome failed = at.program.run(at.feeds, {dense}, {}, &fetched)) return Verdict::failed(failed->text);
  const std::string why = difference(densified(wanted), fetched[0], tolerance);
  return why.empty() ? Verdict::passed() : Verdict::failed(why);
}

Verdict check_gradient(const Json& grad, Attempt& at, bool fed, const std::string& other, Tolerance tolerance) {
  std::vector<dtg_value> ys, weights;
  if (Outcome failed = add_weights(at, grad.at("dy"), fed, &ys, &weights)) return judge_failure(*failed, other, "dy");
  if (!at.beyond.empty()) return Verdict::skipped(at.beyond);
  std::vector<dtg_gradient> gradients(at.inputs.size());
  const Outcome failed = outcome(dtg_graph_add_gradients(at.program.graph(), ys.data(), ys.size(), at.inputs.data(), at.inputs.size(),
                                                         weights.data(), gradients.data()));
  if (failed) return judge_failure(*failed, other, "gradients");
  const Json& wanted = grad.at("dx");
  for (size_t i = 0; i < wanted.size() && i < gradients.size(); ++i) {
    Verdict verdict = compare_gradient(wanted[i], gradients[i], at, tolerance);
    if (!verdict) return Verdict::failed("gradient of input " + std::to_string(i) + ": " + verdict.why);
  }
  return Verdict::passed();
}

// Whether the form with fed inputs says anything: when the shapes decide the error at build, only a kernel that was
// measured on its own has an answer without them.
bool has_fed_form(const Json& entry) {
  if (entry.at("inputs").empty()) return false;
  return !entry.contains("error") || entry.at("at") == "run" || entry.contains("run_error");
}

Verdict check_form(const std::string& op, const Json& entry, bool fed) {
  const std::string other = other_dtype(entry);
  Attempt at;
  attempt(op, entry, fed, at);
  if (!at.beyond.empty()) return Verdict::skipped(at.beyond);
  if (entry.contains("error")) {
    const std::string why = error_difference(entry, at.failed);
    if (why.empty()) return Verdict::passed();
    return at.failed ? judge_failure(*at.failed, other, why) : Verdict::failed(why);
  }
  if (at.failed) return judge_failure(*at.failed, other, "node");
  const Tolerance tolerance{entry.at("rtol"), entry.at("atol")};
  if (Verdict verdict = compare_outputs(entry, at, tolerance); !verdict) return verdict;
  if (!entry.contains("grads")) return Verdict::passed();
  for (const Json& grad : entry.at("grads")) {
    if (Verdict verdict = check_gradient(grad, at, fed, other, tolerance); !verdict) return verdict;
  }
  return Verdict::passed();
}

}  // namespace

std::string other_dtype(const Json& value) {
  std::string found;
  const auto consider = [&found](const Json& name) {
    if (name.is_string() && found.empty() && !is_core_dtype(name)) found = name;
  };
  for (const auto& [name, attr] : value.at("attrs").items()) {
    if (attr.at("type") == "type") consider(attr.at("value"));
    if (attr.at("type") != "list(type)") continue;
    for (const Json& item : attr.at("value")) consider(item);
  }
  if (value.contains("inputs")) {
    for (const Json& input : value.at("inputs")) {
      if (is_tensor(input)) consider(input.at("dtype"));
    }
  }
  return found;
}

Verdict judge_failure(const Failure& failure, const std::string& other, const std::string& where) {
  // A type that an op does not take is refused when the node is built, one without a kernel when it is run.
  if (!other.empty() && (failure.code == DTG_UNIMPLEMENTED || failure.code == DTG_INVALID_ARGUMENT)) {
    return Verdict::skipped("dtype " + other);
  }
  return Verdict::failed(where + ": " + failure.text);
}

std::string error_difference(const Json& entry, const Outcome& failed) {
  std::string wanted = entry.at("error");
  if (!failed) return "no error, expected " + wanted;
  const std::string code = dtg_code_name(failed->code);
  if (code == wanted) return "";
  if (entry.contains("run_error")) {
    if (entry.at("run_error") == code) return "";
    wanted += " or " + entry.at("run_error").get<std::string>();
  }
  return "expected " + wanted;
}

Verdict check_case(const std::string& op, const Json& entry) {
  if (Verdict verdict = check_form(op, entry, /*fed=*/false); !verdict) return verdict;
  if (!has_fed_form(entry)) return Verdict::passed();
  Verdict verdict = check_form(op, entry, /*fed=*/true);
  if (verdict.kind == Verdict::kFailed) verdict.why = "with fed inputs: " + verdict.why;
  return verdict;
}

}  // namespace dtg::oracle
