// What TensorFlow's TFConfigClusterResolver made of a TF_CONFIG: cluster, task, layer and master; see ps.h. There each is asked
// for by itself and fails by itself; here one call answers, and fails when any of what it read is wrong: also where the cluster has the
// task's job and not the task, which TensorFlow says only when it is asked for the master.
#include <cstdlib>

#include "ps.h"

namespace dtg::oracle {

std::string take_string(dtg_string* string) {
  size_t length = 0;
  const char* const data = dtg_string_data(string, &length);
  std::string text(data ? data : "", length);
  dtg_string_release(string);
  return text;
}

namespace {

bool is_error(const Json& field) { return field.is_object() && field.contains("error"); }

// Text or null, which is "" here.
std::string text_or_none(const Json& field) { return field.is_null() ? "" : field.get<std::string>(); }

std::string differs(const char* what, const std::string& got, const std::string& wanted) {
  return got == wanted ? "" : std::string(what) + " is " + got + ", expected " + wanted;
}

std::string compare_cluster(const dtg_cluster* cluster, const Json& wanted) {
  if (!cluster) return wanted.empty() ? "" : "no cluster, expected " + wanted.dump();
  dtg_string* json = nullptr;
  if (Outcome failed = outcome(dtg_cluster_json(cluster, &json))) return failed->text;
  const Json got = Json::parse(take_string(json));
  return got == wanted ? "" : "the cluster is " + got.dump() + ", expected " + wanted.dump();
}

std::string compare_target(const dtg_cluster* cluster, const dtg_task& task, const Json& wanted) {
  dtg_string* target = nullptr;
  const Outcome failed = outcome(dtg_cluster_target(cluster, &task, &target));
  const std::string got = failed ? "" : take_string(target);
  if (is_error(wanted)) {
    if (!failed) return "the target is \"" + got + "\", expected an error";
    return failed->code == DTG_INVALID_ARGUMENT ? "" : failed->text;
  }
  return failed ? failed->text : differs("the target", got, text_or_none(wanted));
}

std::string compare(const dtg_cluster* cluster, const dtg_task& task, const Json& row) {
  std::string why = compare_cluster(cluster, row.at("cluster_spec"));
  if (why.empty()) why = differs("the type", task.type, text_or_none(row.at("task_type")));
  const Json& index = row.at("task_id");
  if (why.empty()) why = differs("the index", std::to_string(task.index), std::to_string(index.is_null() ? -1 : index.get<int>()));
  if (why.empty()) why = differs("the layer", task.rpc_layer, text_or_none(row.at("rpc_layer")));
  return why.empty() ? compare_target(cluster, task, row.at("master")) : why;
}

Verdict check_row(const Json& row) {
  const Json& config = row.at("TF_CONFIG");
  const std::string text = text_or_none(config);
  dtg_cluster* cluster = nullptr;
  dtg_task task = DTG_TASK_INIT;
  if (config.is_null()) unsetenv("TF_CONFIG");
  const Outcome failed = outcome(dtg_cluster_from_tf_config(config.is_null() ? nullptr : text.c_str(), text.size(), &cluster, &task));
  const std::shared_ptr<dtg_cluster> held(cluster, dtg_cluster_release);
  const bool refuse = is_error(row.at("cluster_spec")) || is_error(row.at("task_type")) || is_error(row.at("task_id"));
  if (refuse) {
    if (!failed) return Verdict::failed("was accepted");
    return failed->code == DTG_INVALID_ARGUMENT ? Verdict::passed() : Verdict::failed(failed->text);
  }
  if (failed && failed->code == DTG_INVALID_ARGUMENT && is_error(row.at("master"))) return Verdict::passed();
  if (failed) return Verdict::failed(failed->text);
  const std::string why = compare(cluster, task, row);
  return why.empty() ? Verdict::passed() : Verdict::failed(why);
}

}  // namespace

void check_tf_config(const std::string& path, const Json& file, const Options& options, Report& report) {
  int number = 0;
  for (const Json& row : file.at("rows")) {
    const std::string name = stem(path) + "/" + std::to_string(number++) + " " + row.at("TF_CONFIG").dump();
    if (options.wants(name)) report.add(name, check_row(row));
  }
}

}  // namespace dtg::oracle
