// One thing after the other is left out, for as long as the scene still fails.
#include "random/shrink.h"

#include <algorithm>

namespace dtg::random {
namespace {

// What sort of failure it is; a smaller scene must fail in the same way.
std::string kind_of(const std::string& why) {
  for (const char* kind : {"differ", "nothing came", "instead of", "it failed with ", "it went well", "was written to",
                           "memory that was given", "signal", "no answer", "exit status"}) {
    const size_t at = why.find(kind);
    if (at == std::string::npos) continue;
    if (kind != std::string("it failed with ")) return kind;
    // Of an error its last words tell it from others; names and numbers change while it shrinks.
    std::string words = why.substr(why.rfind(": "));
    std::erase_if(words, [](char c) { return c >= '0' && c <= '9'; });
    return kind + words;
  }
  return why;
}

class Shrinker {
 public:
  Shrinker(Scene scene, const Judge& judge) : best_(std::move(scene)), judge_(judge), kind_(kind_of(judge(best_))) {}

  Scene run() {
    for (bool progress = true; progress && tries_ < kTries;) {
      progress = false;
      progress |= each(best_.runs.size(), [](Scene& s, size_t i) { s.runs.erase(s.runs.begin() + static_cast<std::ptrdiff_t>(i)); });
      for (size_t r = 0; r < best_.runs.size(); ++r) {
        progress |= each(best_.runs[r].fetches.size(), [r](Scene& s, size_t i) { erase(s.runs[r].fetches, i); });
        progress |= each(best_.runs[r].targets.size(), [r](Scene& s, size_t i) { erase(s.runs[r].targets, i); });
        progress |= each(best_.runs[r].feeds.size(), [r](Scene& s, size_t i) { erase(s.runs[r].feeds, i); });
      }
      prune();
      progress |= each(best_.nodes.size(), bypass);
      prune();
      progress |= each(best_.nodes.size(), [](Scene& s, size_t i) { s.nodes[i].controls.clear(); });
      progress |= each(best_.nodes.size(), [](Scene& s, size_t i) { s.nodes[i].place = -1; });
      prune();
    }
    return best_;
  }

 private:
  static constexpr int kTries = 2000;

  template <class T>
  static void erase(std::vector<T>& list, size_t i) {
    list.erase(list.begin() + static_cast<std::ptrdiff_t>(i));
  }

  // Who uses this node uses its first input instead.
  static void bypass(Scene& scene, size_t n) {
    if (scene.nodes[n].inputs.empty()) return;
    const Port instead = scene.nodes[n].inputs.back();
    const auto replace = [&](Port& port) {
      if (port.node == static_cast<int>(n)) port = instead;
    };
    for (NodeRecord& node : scene.nodes) std::ranges::for_each(node.inputs, replace);
    for (RunRecord& run : scene.runs) std::ranges::for_each(run.fetches, replace);
  }

  template <class Fn>
  bool each(size_t count, Fn&& change) {
    bool progress = false;
    for (size_t i = count; i-- > 0 && tries_ < kTries;) {
      Scene candidate = best_;
      change(candidate, i);
      if (to_text(candidate) == to_text(best_)) continue;
      ++tries_;
      if (!fails(candidate)) continue;
      best_ = std::move(candidate);
      progress = true;
    }
    return progress;
  }

  bool fails(const Scene& candidate) const {
    const std::string why = judge_(candidate);
    return !why.empty() && kind_of(why) == kind_;
  }

  // Drops the nodes that no run needs.
  void prune() {
    Scene candidate = best_;
    std::vector<bool> kept(best_.nodes.size());
    for (const RunRecord& run : best_.runs) {
      const std::vector<bool> needed = needed_nodes(best_, run);
      for (size_t n = 0; n < kept.size(); ++n) kept[n] = kept[n] || needed[n];
      for (const auto& [port, tensor] : run.feeds) keep(kept, port.node);
    }
    for (size_t n = kept.size(); n-- > 0;) {
      if (!kept[n]) continue;
      for (const Port& input : best_.nodes[n].inputs) kept[static_cast<size_t>(input.node)] = true;
      for (int control : best_.nodes[n].controls) kept[static_cast<size_t>(control)] = true;
    }
    std::vector<int> number(kept.size());
    candidate.nodes.clear();
    for (size_t n = 0; n < kept.size(); ++n) {
      number[n] = static_cast<int>(candidate.nodes.size());
      if (kept[n]) candidate.nodes.push_back(best_.nodes[n]);
    }
    const auto renumber = [&](int& node) { node = number[static_cast<size_t>(node)]; };
    for (NodeRecord& node : candidate.nodes) {
      for (Port& input : node.inputs) renumber(input.node);
      std::ranges::for_each(node.controls, renumber);
    }
    for (RunRecord& run : candidate.runs) {
      run.nodes =
          run.nodes < static_cast<int>(number.size()) ? number[static_cast<size_t>(run.nodes)] : static_cast<int>(candidate.nodes.size());
      for (auto& feed : run.feeds) renumber(feed.first.node);
      for (Port& fetch : run.fetches) renumber(fetch.node);
      std::ranges::for_each(run.targets, renumber);
    }
    ++tries_;
    if (fails(candidate)) best_ = std::move(candidate);
  }

  static void keep(std::vector<bool>& kept, int node) { kept[static_cast<size_t>(node)] = true; }

  Scene best_;
  const Judge& judge_;
  const std::string kind_;
  int tries_ = 0;
};

}  // namespace

Scene shrunk(Scene scene, const Judge& judge) { return Shrinker(std::move(scene), judge).run(); }

}  // namespace dtg::random
