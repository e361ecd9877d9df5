// oracle_ops DIR: every op of the folder against what TensorFlow computed, through the public C ABI.
#include "sections.h"

using namespace dtg::oracle;

namespace {

// Where this library departs from TensorFlow 2.21 on purpose, in ops that the spine does not name; "" elsewhere.
std::string departure(const std::string& op, const std::string& name, const std::string& why) {
  if (op == "Round" && (name == "int32" || name == "int64")) return "TensorFlow rounds whole numbers to 0; here they stay";
  if (op.starts_with("ResourceSparseApply") && name == "bad_index") {
    return "TensorFlow updates the rows before a bad index; here a failed update changes nothing";
  }
  if (op == "BlockLSTMV2" && why.find("gradient of input") != std::string::npos) {
    return "TensorFlow differentiates the second order of gates as if it were the first; here the gradient is the derivative";
  }
  return "";
}

void check_section(const Json& file, const char* section, const Options& options, Report& report,
                   const std::function<Verdict(const Json&)>& check) {
  if (!file.contains(section)) return;
  for (const Json& entry : file.at(section)) {
    const std::string name = file.at("op").get<std::string>() + "/" + entry.at("name").get<std::string>();
    if (!options.wants(name)) continue;
    Verdict verdict = check(entry);
    const std::string on_purpose = departure(file.at("op"), entry.at("name"), verdict.why);
    if (verdict.kind == Verdict::kFailed && !on_purpose.empty()) verdict = Verdict::skipped(on_purpose);
    report.add(name, verdict);
  }
}

void check_file(const std::string&, const Json& file, const Options& options, Report& report) {
  const std::string op = file.at("op");
  const std::string missing = missing_op(op);
  const auto unless_missing = [&](Verdict (*check)(const std::string&, const Json&)) {
    return [&op, &missing, check](const Json& entry) { return missing.empty() ? check(op, entry) : Verdict::skipped(missing); };
  };
  check_section(file, "cases", options, report, unless_missing(check_case));
  check_section(file, "scripts", options, report, unless_missing(check_script));
  check_section(file, "graphs", options, report, check_graph);
}

}  // namespace

int main(int argc, char** argv) { return run_tool(argc, argv, "ops", check_file); }
