// Reading TF_CONFIG.
#include "cluster/tf_config.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>

#include "base/spelling.h"

namespace dtg {
namespace {

constexpr double kIntMost = 2147483647.0;

Status bad_index(const std::string& found) {
  return invalid_argument("TF_CONFIG: task.index is %s; it must be a whole number", found.c_str());
}

// A number, a number with nothing behind the point, or a string that holds one.
Result<int> read_index(const Json& json) {
  if (const int64_t* const whole = json.integer()) {
    if (std::abs(static_cast<double>(*whole)) > kIntMost) return bad_index(json.text());
    return static_cast<int>(*whole);
  }
  if (const double* const real = json.real()) {
    if (std::trunc(*real) != *real || std::abs(*real) > kIntMost) return bad_index(json.text());
    return static_cast<int>(*real);
  }
  const std::string* const text = json.string();
  if (!text) return bad_index(json.kind());
  int index = 0;
  const auto [stop, failed] = std::from_chars(text->data(), text->data() + text->size(), index);
  if (failed != std::errc() || stop != text->data() + text->size()) return bad_index("\"" + text->substr(0, 40) + "\"");
  return index;
}

// A string member, "" when there is none.
Result<std::string> read_text(const Json& from, const char* key, const char* what, size_t most) {
  const Json* const member = from.find(key);
  if (!member) return std::string();
  const std::string* const text = member->string();
  if (!text) return invalid_argument("TF_CONFIG: %s is %s; it must be a string", what, member->kind());
  if (text->size() > most) return invalid_argument("TF_CONFIG: %s has %zu bytes; at most %zu are read", what, text->size(), most);
  if (text->find('\0') != text->npos) return invalid_argument("TF_CONFIG: %s holds a zero byte", what);
  return *text;
}

// Of an object that lacks a member: whether one of its others was meant for it. `beside` is none that would be.
Status check_spelling(const Json::Object& members, const char* where, const char* wanted, const char* beside) {
  for (const auto& [key, value] : members) {
    if (key == beside || edit_distance(key, wanted) >= alike_below(key)) continue;
    return invalid_argument("TF_CONFIG: %s has \"%.100s\" and no \"%s\"; did you mean that?", where, key.c_str(), wanted);
  }
  return {};
}

Status read_task(const Json& task, TfConfig& config) {
  if (!task.object()) return invalid_argument("TF_CONFIG: \"task\" is %s; it must be an object with \"type\" and \"index\"", task.kind());
  DTG_ASSIGN(config.type, read_text(task, "type", "task.type", ClusterSpec::kJobNameMax));
  // Without a type a program is neither chief nor ps, and waits for one.
  if (!task.find("type")) DTG_TRY(check_spelling(*task.object(), "\"task\"", "type", "index"));
  if (const Json* const index = task.find("index")) {
    DTG_ASSIGN(config.index, read_index(*index));
  }
  return {};
}

// Two of these would each believe to be the only one.
Status check_single(const ClusterSpec& cluster) {
  if (cluster.task_count("chief") + cluster.task_count("master") > 1) {
    return invalid_argument("TF_CONFIG: the cluster has more than one chief or master; one task at most leads a job");
  }
  if (cluster.task_count("evaluator") > 1) return invalid_argument("TF_CONFIG: the cluster has more than one evaluator");
  return {};
}

// A task that its job lacks: the launcher counts otherwise than the cluster, and what the program makes of the number (its share of the
// data, who is chief) would be wrong without a word. A job that the cluster has not is told as it was said: an evaluator often is in none.
Status check_index(const TfConfig& config) {
  const ClusterSpec::Job* const job = config.index ? config.cluster.find_job(config.type) : nullptr;
  if (!job || config.cluster.find(config.type, *config.index)) return {};
  std::string there;
  for (size_t i = 0; i < job->count && i < 12; ++i) there += (i ? ", " : "") + std::to_string(config.cluster.tasks()[job->first + i].index);
  if (job->dense) there = job->count == 1 ? "0" : "0 to " + std::to_string(job->count - 1);
  return invalid_argument(
      "TF_CONFIG: task.index is %d, and the job \"%s\" of the cluster has %zu task%s%s%s; give the index of one of them", *config.index,
      config.type.c_str(), job->count, job->count == 1 ? "" : "s", there.empty() ? "" : ": ", there.c_str());
}

size_t leaders(const ClusterSpec& cluster) { return cluster.task_count("chief") + cluster.task_count("master"); }

}  // namespace

Result<TfConfig> TfConfig::parse(std::string_view text) {
  DTG_ASSIGN(const Json json, parse_json(text, "TF_CONFIG"));
  TfConfig config;
  if (const Json::Array* const list = json.array(); list && list->empty()) return config;
  if (!json.object()) return invalid_argument("TF_CONFIG: it is %s; it must be an object with \"cluster\" and \"task\"", json.kind());
  const Json* cluster = json.find("cluster");
  if (!cluster) cluster = json.find("sparseCluster");
  // A slip there would leave every task alone with itself, and none would say so.
  if (!cluster) DTG_TRY(check_spelling(*json.object(), "it", "cluster", "task"));
  if (cluster) {
    auto read = ClusterSpec::from_json(*cluster);
    if (!read.ok()) return read.status().with_context("TF_CONFIG");
    config.cluster = read.take();
    DTG_TRY(check_single(config.cluster));
  }
  if (const Json* const task = json.find("task")) DTG_TRY(read_task(*task, config));
  DTG_TRY(check_index(config));
  DTG_ASSIGN(config.rpc_layer, read_text(json, "rpc_layer", "rpc_layer", kLayerMax));
  return config;
}

Result<TfConfig> TfConfig::from_environment() {
  const char* const text = std::getenv("TF_CONFIG");
  return text ? parse(text) : Result<TfConfig>(TfConfig());
}

bool TfConfig::is_chief() const {
  if (cluster.empty()) return true;
  if (type == "chief" || type == "master") return true;
  return type == "worker" && index == 0 && leaders(cluster) == 0;
}

int TfConfig::id() const {
  if (!index || type == "chief" || type == "master") return 0;
  return type == "worker" ? *index + static_cast<int>(leaders(cluster)) : *index;
}

int TfConfig::num_workers() const { return std::max(1, static_cast<int>(leaders(cluster) + cluster.task_count("worker"))); }

Result<std::string> task_target(const ClusterSpec& cluster, std::string_view type, std::optional<int> index, std::string_view rpc_layer) {
  if (cluster.jobs().empty() || (cluster.jobs().size() == 1 && cluster.tasks().size() == 1)) return std::string();
  const ClusterSpec::Task* const task = index ? cluster.find(type, *index) : nullptr;
  if (!task) {
    const std::string wanted = index ? "task " + std::to_string(*index) : "a task without an index";
    return invalid_argument("find %s of job \"%.*s\" in the cluster: there is none; the cluster is %.1000s", wanted.c_str(),
                            int(type.size()), type.data(), cluster.text().c_str());
  }
  const std::string address = task->address.text();
  return rpc_layer.empty() ? address : std::string(rpc_layer) + "://" + address;
}

}  // namespace dtg
