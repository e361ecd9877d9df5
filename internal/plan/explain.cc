// Plans as text: the pages of the passes, the choice among them, and the parts of a cluster.
#include "plan/explain.h"

#include <algorithm>

#include "plan/plan.h"

namespace dtg {
namespace {

class Writer final : public Plan::Observer {
 public:
  void passed(const Pass& pass, const Ir& ir) override { pages.push_back({pass.name, ir.text()}); }
  void made(const Ir& ir, const Program& program) override { pages.push_back({"program", program_text(ir, program)}); }
  PlanPages pages;
};

std::string count_text(size_t count, const char* what) { return std::to_string(count) + " " + what + (count == 1 ? "" : "s"); }

void append_part(std::string& text, const Part& part, const TaskMap& map, const char* what) {
  const Graph& graph = *part.graph;
  text += "part of " + map.tasks[part.task] + what + ": " + count_text(graph.node_count(), "node") + ", " +
          count_text(part.request.feeds.size(), "fed value") + ", " + count_text(part.request.fetches.size(), "fetched value") + ", " +
          count_text(part.request.targets.size(), "target") + "\n";
  for (NodeId id = 0; id < graph.node_count(); ++id) {
    const Node& node = graph.node(id);
    text += std::to_string(id) + ": " + node.op->name() + "(";
    for (size_t i = 0; i < node.inputs.size(); ++i) text += (i ? ", " : "") + graph.value_name(node.inputs[i]);
    text += ")";
    for (NodeId control : node.controls) text += " ^" + std::string(graph.node(control).name);
    text += " \"" + std::string(node.name) + "\"";
    if (!node.device.empty()) text += " on " + std::string(node.device);
    if (std::ranges::find(part.request.targets, id) != part.request.targets.end()) text += " target";
    text += "\n";
  }
}

}  // namespace

Result<PlanPages> explain(const PlanContext& context, Ref<Graph> graph, PlanRequest request) {
  Writer writer;
  DTG_TRY(Plan::make(context, std::move(graph), std::move(request), &writer).status());
  return std::move(writer.pages);
}

Result<PlanPages> explain_parts(const PlanContext& context, const Graph& graph, const PlanRequest& request, const TaskMap& map) {
  PlanPages pages;
  const PassObserver write = [](void* user, const Pass& pass, const Ir& ir) {
    static_cast<PlanPages*>(user)->push_back({pass.name, ir.text()});
  };
  DTG_ASSIGN(const Partition parts, partition(context, graph, request, map, write, &pages));
  std::string text;
  append_part(text, parts.home, map, " (home)");
  for (const Part& part : parts.others) append_part(text, part, map, "");
  for (size_t e = 0; e < parts.edges.size(); ++e) {
    text += "edge " + std::to_string(e) + ": from " + map.tasks[parts.edges[e].from] + " to " + map.tasks[parts.edges[e].to] + "\n";
  }
  pages.push_back({"parts", std::move(text)});
  return pages;
}

Result<std::string> choose_pages(const PlanPages& pages, std::string_view name) {
  std::string text, names;
  const size_t from = name.empty() && pages.size() > 2 ? pages.size() - 2 : 0;
  const bool several = name.empty() || name == "all";
  for (size_t i = 0; i < pages.size(); ++i) {
    if (pages[i].name == name) return pages[i].text;
    if (several && i >= from) text += "== " + pages[i].name + "\n" + pages[i].text;
    names += pages[i].name + ", ";
  }
  if (several) return text;
  return invalid_argument("plan: there is no pass \"%.*s\"; there are %sand \"all\"", static_cast<int>(std::min<size_t>(name.size(), 100)),
                          name.data(), names.c_str());
}

void ask_for_everything(const Graph& graph, PlanRequest& request) {
  std::vector<bool> used(graph.node_count());
  for (NodeId id = 0; id < used.size(); ++id) {
    for (Value input : graph.node(id).inputs) used[input.node()] = true;
    for (NodeId control : graph.node(id).controls) used[control] = true;
  }
  for (const FeedSpec& feed : request.feeds) {
    if (graph.check(feed.value).ok()) used[feed.value.node()] = true;
  }
  for (NodeId id = 0; id < used.size(); ++id) {
    if (used[id]) continue;
    const Node& node = graph.node(id);
    bool fetched = false;
    for (uint32_t o = 0; o < node.outputs.size(); ++o) {
      const Value value = graph.value(id, o);
      if (cell_bytes(graph.info(value).dtype) == 0) continue;
      request.fetches.push_back(value);
      fetched = true;
    }
    if (!fetched) request.targets.push_back(id);
  }
}

}  // namespace dtg
