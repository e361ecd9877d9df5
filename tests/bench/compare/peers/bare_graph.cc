// bare_graph.cc: the least that a graph of named nodes costs on this machine: an array of nodes with two inputs each, a map from names to
// them, and one topological sort. No types, shapes, attributes, devices or checks. "graph N" on standard input is answered with the
// seconds to build N nodes and the seconds to sort them; every attempt makes them anew.
#include <cstdio>
#include <ctime>
#include <string>
#include <unordered_map>
#include <vector>

namespace {

struct Node {
  std::string name;
  int op = 0;
  std::vector<int> inputs;
};

double worked() {
  timespec t{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

struct Graph {
  std::vector<Node> nodes;
  std::unordered_map<std::string, int> names;
};

Graph build(int count) {
  Graph graph;
  for (int i = 0; i < count; ++i) {
    Node node;
    node.name = "layer/node_" + std::to_string(i);
    node.op = i % 7;
    if (i > 0) node.inputs = {i - 1, i / 2};
    graph.names.emplace(node.name, i);
    graph.nodes.push_back(std::move(node));
  }
  return graph;
}

// Nodes in an order in which each comes after its inputs; their number.
size_t sort(const Graph &graph) {
  const size_t count = graph.nodes.size();
  std::vector<int> waits(count), order;
  std::vector<size_t> first(count + 1);
  for (const Node &node : graph.nodes) {
    for (int input : node.inputs) ++first[static_cast<size_t>(input) + 1];
  }
  for (size_t i = 0; i < count; ++i) first[i + 1] += first[i];
  std::vector<size_t> consumers(first[count]), end(first.begin(), first.end() - 1);
  for (size_t i = 0; i < count; ++i) {
    waits[i] = static_cast<int>(graph.nodes[i].inputs.size());
    for (int input : graph.nodes[i].inputs) consumers[end[static_cast<size_t>(input)]++] = i;
    if (waits[i] == 0) order.push_back(static_cast<int>(i));
  }
  for (size_t at = 0; at < order.size(); ++at) {
    const auto node = static_cast<size_t>(order[at]);
    for (size_t edge = first[node]; edge < first[node + 1]; ++edge) {
      if (--waits[consumers[edge]] == 0) order.push_back(static_cast<int>(consumers[edge]));
    }
  }
  return order.size();
}

}  // namespace

int main() {
  int count = 0;
  while (std::scanf(" graph %d", &count) == 1 && count > 0) {
    const double start = worked();
    const Graph graph = build(count);
    const double built = worked();
    const bool whole = sort(graph) == static_cast<size_t>(count);
    std::printf("%.4e %.4e\n", built - start, whole ? worked() - built : 0.0);
    std::fflush(stdout);
  }
}
