// Reading TF_CONFIG and clusters, JSON and short form, and that what was accepted reads back as the same cluster.
#include "cluster/tf_config.h"

namespace {

void there_and_back(const dtg::ClusterSpec& spec) {
  const std::string text = spec.text(), json = spec.json().text();
  const auto again = dtg::ClusterSpec::parse(text), from_json = dtg::ClusterSpec::parse(json);
  if (!again.ok() || again.value().text() != text || again.value().json().text() != json) __builtin_trap();
  if (!from_json.ok() || from_json.value().text() != text) __builtin_trap();
  for (const dtg::ClusterSpec::Task& task : spec.tasks()) {
    if (spec.find(task.job, task.index) != &task) __builtin_trap();
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto spec = dtg::ClusterSpec::parse(text);
  if (spec.ok()) there_and_back(spec.value());
  const auto config = dtg::TfConfig::parse(text);
  if (!config.ok()) return 0;
  const dtg::TfConfig& self = config.value();
  there_and_back(self.cluster);
  if (self.num_workers() < 1 || self.type.size() > dtg::ClusterSpec::kJobNameMax) __builtin_trap();
  (void)self.is_chief();
  (void)self.id();
  const auto target = dtg::task_target(self.cluster, self.type, self.index, self.rpc_layer);
  const bool there = self.index && self.cluster.find(self.type, *self.index);
  if (there && !target.ok()) __builtin_trap();
  return 0;
}
