// bare_graph.cc: the least that a graph of named nodes costs on this machine: an array of nodes with two inputs each, and a map from names
// to them. No types, shapes, attributes, devices or checks. "graph N" on standard input is answered with the seconds to build N nodes;
// every attempt makes them anew.
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

}  // namespace

int main() {
  int count = 0;
  while (std::scanf(" graph %d", &count) == 1 && count > 0) {
    const double start = worked();
    const Graph graph = build(count);
    const double seconds = worked() - start;
    // Looked at, so that it is made.
    std::printf("%.4e\n", graph.names.size() == graph.nodes.size() ? seconds : 0.0);
    std::fflush(stdout);
  }
}
