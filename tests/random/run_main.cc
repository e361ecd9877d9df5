// random_graphs: the program. It hands batches of seeds to child processes and adds up what they say.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "random/ask.h"
#include "random/children.h"
#include "random/modes.h"
#include "random/options.h"
#include "random/shrink.h"

namespace dtg::random {
namespace {

constexpr int kPatience = 90;  // seconds for one graph in one mode, slow builds included

// Those that are named, mutants too, or all that must not fail.
std::vector<Mode> chosen(const Command& command) {
  std::vector<Mode> list;
  const auto is_named = [&](const Mode& mode) { return std::ranges::find(command.modes, mode.name) != command.modes.end(); };
  std::ranges::copy_if(modes(), std::back_inserter(list), [&](const Mode& mode) { return command.modes.empty() || is_named(mode); });
  std::ranges::copy_if(mutants(), std::back_inserter(list), is_named);
  return list;
}

std::string one_line(std::string text) {
  std::ranges::replace(text, '\n', ' ');
  return text;
}

// All modes of one scene; what was different goes out as "bad NAME MODE TEXT".
void judge_scene(Stage& stage, const Command& command, const std::string& name, const Scene& scene, const Children::Say& say) {
  auto tables = stage.tables();
  if (!tables.ok()) return say("bad " + name + " - " + tables.status().message());
  const Truth truth = truth_of(tables.value(), scene);
  for (const Mode& mode : chosen(command)) {
    say("at " + name + " " + mode.name);
    const std::string text = stage.check(mode, scene, truth);
    if (!text.empty()) say("bad " + name + " " + mode.name + " " + one_line(text));
  }
}

void run_seeds(const Command& command, uint64_t from, uint64_t to, const Children::Say& say) {
  Stage stage;
  auto tables = stage.tables();
  if (!tables.ok()) return say("bad start - " + tables.status().message());
  Tally tally;
  for (uint64_t seed = from; seed < to; ++seed) {
    const std::string name = std::to_string(seed);
    say("at " + name + " making");
    judge_scene(stage, command, name, make_scene(tables.value(), seed, command.wishes, tally), say);
    say("done " + name);
  }
  for (const auto& [op, count] : tally.accepted) say("op " + op + " " + std::to_string(count));
  for (const auto& [op, count] : tally.refused) say("no " + op + " " + std::to_string(count));
  for (const auto& [what, count] : tally.features) say("feature " + what + " " + std::to_string(count));
}

Result<Scene> read_scene(const std::string& path) {
  std::ifstream in(path);
  std::stringstream text;
  text << in.rdbuf();
  if (!in.is_open()) return not_found("read %s", path.c_str());
  return from_text(text.str(), Stage::all_ops());
}

class Program {
 public:
  explicit Program(const Command& command) : command_(command) {}

  int run() {
    start_ = now_seconds();
    if (command_.print) return print();
    files();
    if (command_.shrink) return shrink();
    seeds();
    return report();
  }

 private:
  static Scene scene_of(uint64_t seed, const Command& command) {
    Stage stage;
    Tally tally;
    return make_scene(stage.tables().value(), seed, command.wishes, tally);
  }

  int print() {
    if (command_.files.empty()) std::fputs(to_text(scene_of(command_.from, command_)).c_str(), stdout);
    return 0;
  }

  void files() {
    std::vector<std::string> paths = command_.files;
    if (!command_.corpus.empty()) {
      for (const auto& entry : std::filesystem::directory_iterator(command_.corpus)) {
        if (entry.path().extension() == ".scene") paths.push_back(entry.path().string());
      }
    }
    std::ranges::sort(paths);
    for (const std::string& path : paths) {
      children_.start(0, [&](const Children::Say& say) {
        Stage stage;
        const auto scene = read_scene(path);
        if (!scene.ok()) return say("bad " + path + " - " + scene.status().message());
        judge_scene(stage, command_, path, scene.value(), say);
        say("done " + path);
      });
      take(children_.wait(kPatience));
    }
    if (!command_.files.empty()) command_.count = 0;
  }

  void seeds() {
    uint64_t next = command_.from;
    const uint64_t end = command_.from + static_cast<uint64_t>(command_.count);
    for (;;) {
      const bool enough = failures_ >= command_.most || (command_.seconds > 0 && now_seconds() - start_ > command_.seconds);
      while (!enough && children_.running() < static_cast<size_t>(command_.jobs) && (next < end || !again_.empty())) {
        std::pair<uint64_t, uint64_t> part = {next, std::min(end, next + static_cast<uint64_t>(command_.batch))};
        if (!again_.empty()) {
          part = again_.back();
          again_.pop_back();
        } else {
          next = part.second;
        }
        children_.start(part.second, [&](const Children::Say& say) { run_seeds(command_, part.first, part.second, say); });
      }
      if (children_.running() == 0) return;
      take(children_.wait(kPatience));
    }
  }

  // What a child said; what a dead one has left undone is done by another one.
  void take(const Children::End& end) {
    for (const std::string& line : end.lines) {
      std::istringstream in(line);
      std::string kind, name;
      in >> kind >> name;
      int64_t count = 0;
      if (kind == "done") ++graphs_;
      else if (kind == "bad") fail(name, line.substr(4));
      else if (in >> count) (kind == "op" ? ops_ : kind == "no" ? refused_ : features_)[name] += count;
    }
    if (end.cause.empty()) return;
    const std::string name = end.at.substr(0, end.at.find(' '));
    fail(name, end.at + " " + end.cause);
    const uint64_t seed = std::strtoull(name.c_str(), nullptr, 10);
    if (end.tag > seed + 1 && seed > 0) again_.push_back({seed + 1, end.tag});
  }

  void fail(const std::string& name, const std::string& text) {
    ++failures_;
    failed_.insert({name, true});
    std::printf("FAILED  %s\n        replay: random_graphs %s %s%s%s\n", text.c_str(),
                name.find('.') == std::string::npos ? "--seed" : "--file", name.c_str(), command_.wishes.ordered ? " --ordered" : "",
                command_.wishes.functions ? " --functions" : "");
    std::fflush(stdout);
  }

  int shrink() {
    for (int64_t i = 0; i < command_.count; ++i) {
      const uint64_t seed = command_.from + static_cast<uint64_t>(i);
      Scene scene;
      children_.start(seed, [&](const Children::Say& say) { say(to_text(scene_of(seed, command_))); });
      std::string text;
      for (const std::string& line : children_.wait(kPatience).lines) text += line + "\n";
      auto made = from_text(text, Stage::all_ops());
      if (made.ok()) shrink_one(made.take(), std::to_string(seed));
    }
    for (const std::string& path : command_.files) {
      auto scene = read_scene(path);
      if (scene.ok()) shrink_one(scene.take(), std::filesystem::path(path).stem().string());
    }
    return failures_ > 0 ? 1 : 0;
  }

  void shrink_one(const Scene& scene, const std::string& name) {
    const Judge judge = [&](const Scene& smaller) {
      Children one;
      one.start(0, [&](const Children::Say& say) {
        Stage stage;
        judge_scene(stage, command_, "x", smaller, say);
      });
      const Children::End end = one.wait(30);
      for (const std::string& line : end.lines) {
        if (line.rfind("bad ", 0) == 0) return line.substr(6);
      }
      return end.cause.empty() ? std::string() : end.at + " " + end.cause;
    };
    const std::string why = judge(scene);
    if (why.empty()) return;
    ++failures_;
    const Scene smallest = shrunk(scene, judge);
    const std::string text = "# " + judge(smallest) + "\n" + to_text(smallest);
    std::printf("%s\n", text.c_str());
    if (!command_.out.empty()) std::ofstream(std::filesystem::path(command_.out) / (name + ".scene")) << text;
  }

  int report() {
    if (command_.stats) {
      for (const auto& [op, count] : ops_) std::printf("op %s %lld accepted %lld refused\n", op.c_str(), count, refused_[op]);
      for (const auto& [what, count] : features_) std::printf("feature %s %lld\n", what.c_str(), count);
    }
    if (command_.cover) cover();
    const double seconds = now_seconds() - start_;
    std::printf("%lld graphs, %zu of them failed, %.1f s\n", graphs_, failed_.size(), seconds);
    if (!command_.ledger.empty()) {
      std::string names;
      for (const Mode& mode : chosen(command_)) names += (names.empty() ? "" : ",") + std::string(mode.name);
      std::ofstream(command_.ledger, std::ios::app) << "| " << command_.from << " | " << graphs_ << " | " << failed_.size() << " | "
                                                    << static_cast<int64_t>(seconds) << " | " << names << " |\n";
    }
    return failures_ > 0 ? 1 : 0;
  }

  void cover() {
    Stage stage;
    for (const OpDef* op : public_ops(*stage.tables().value().ops)) {
      if (ops_[op->name()] > 0) continue;
      ++failures_;
      std::printf("FAILED  %s was accepted in no graph (refused %lld times); it needs a hint in tests/random/hints_*.cc\n",
                  op->name().c_str(), refused_[op->name()]);
    }
  }

  Command command_;
  Children children_;
  std::vector<std::pair<uint64_t, uint64_t>> again_;
  std::map<std::string, long long> ops_, refused_, features_;
  std::map<std::string, bool> failed_;
  long long graphs_ = 0;
  int64_t failures_ = 0;
  double start_ = 0;
};

}  // namespace
}  // namespace dtg::random

int main(int argc, char** argv) {
  dtg::random::Command command;
  if (!dtg::random::read_command(argc, argv, command)) return 2;
  return dtg::random::Program(command).run();
}
