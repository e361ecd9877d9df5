// dtg checkpoint: looks into sets of checkpoints, verifies them, writes them again in another number of shards. Main thread.
#include <sys/stat.h>

#include <cstdio>
#include <nlohmann/json.hpp>

#include "arguments.h"
#include "commands.h"
#include "console.h"
#include "json_text.h"

namespace dtg::cli {
namespace {

using nlohmann::json;

struct Wish {
  std::string path, into;
  int64_t step = -1, shards = 0;
  bool all = false, as_json = false;
};

constexpr const char* kActions[] = {"list", "show", "verify", "reshard"};
constexpr const char* kNext = "dtg checkpoint list DIR shows which sets a directory has";

// "12.3 MB": what a person wants to know of a size.
std::string bytes_text(int64_t bytes) {
  const char* const units[] = {"B", "kB", "MB", "GB", "TB", "PB"};
  double value = static_cast<double>(bytes);
  size_t unit = 0;
  while (value >= 999.95 && unit + 1 < std::size(units)) value /= 1000, ++unit;
  char text[32];
  std::snprintf(text, sizeof text, unit == 0 ? "%.0f %s" : "%.1f %s", value, units[unit]);
  return text;
}

std::string count_text(int64_t count, const std::string& noun) { return std::to_string(count) + " " + noun + (count == 1 ? "" : "s"); }

using Ask = dtg_error* (*)(dtg_runtime*, const char*, size_t, dtg_string**);

// The library's answer; false with a report when there is none.
bool ask(Ask function, const Wish& wish, const std::string& path, json* answer, int* code) {
  dtg_string* text = nullptr;
  if (dtg_error* error = function(nullptr, path.data(), path.size(), &text)) {
    *code = report(error, wish.as_json, kNext);
    return false;
  }
  const Owned<dtg_string> owned(text);
  *answer = json::parse(view(text), nullptr, false);
  return true;
}

// The set of the step that was asked for: its latest attempt.
bool choose_step(const Wish& wish, std::string* path, int* code) {
  *path = wish.path;
  if (wish.step < 0) return true;
  json listed;
  if (!ask(dtg_checkpoint_list, wish, wish.path, &listed, code)) return false;
  for (const json& set : listed["sets"]) {
    if (set["step"] != wish.step) continue;
    *path = listed["directory"].get<std::string>() + "/" + set["name"].get<std::string>();
    return true;
  }
  complain("there is no set of step " + std::to_string(wish.step) + " in " + wish.path + "\n  " + kNext);
  *code = kFailed;
  return false;
}

// The directory of a run has them in one below.
std::string where_else(const Wish& wish) {
  const std::string below = wish.path + "/checkpoints";
  struct stat found {};
  return ::stat(below.c_str(), &found) == 0 && S_ISDIR(found.st_mode) ? "  there is " + below + "\n" : "";
}

int list(const Wish& wish) {
  json told;
  int code = kOk;
  if (!ask(dtg_checkpoint_list, wish, wish.path, &told, &code)) return code;
  if (wish.as_json) return print(lines(told) + "\n") ? kOk : kFailed;
  std::string text;
  for (const json& set : told["sets"]) {
    const bool valid = set["valid"];
    text += set["name"].get<std::string>() + "  " + paint(valid ? Color::green : Color::red, valid ? "whole" : "damaged");
    if (valid)
      text += "  " + bytes_text(set["bytes"]) + " in " + count_text(set["shards"], "shard") + ", " + count_text(set["tensors"], "tensor");
    else text += "  " + set["problem"].get<std::string>();
    text += "\n";
  }
  if (text.empty()) text = wish.path + ": no checkpoints\n" + where_else(wish);
  return print(text) ? kOk : kFailed;
}

std::string tensor_line(const json& tensor) {
  std::string line = tensor["name"].get<std::string>() + "  " + tensor["dtype"].get<std::string>() + one_line(tensor["shape"]) + "  " +
                     paint(Color::cyan, tensor["role"].get<std::string>());
  if (tensor.contains("of")) line += " " + tensor["slot"].get<std::string>() + " of " + tensor["of"].get<std::string>();
  return line + "  shard " + std::to_string(tensor["shard"].get<int64_t>() + 1) + "\n";
}

int show(const Wish& wish) {
  json told;
  std::string path;
  int code = kOk;
  if (!choose_step(wish, &path, &code) || !ask(dtg_checkpoint_describe, wish, path, &told, &code)) return code;
  if (wish.as_json) return print(lines(told) + "\n") ? kOk : kFailed;
  std::string text = paint(Color::bold, told["name"].get<std::string>()) + "\n";
  text += "  step " + std::to_string(told["step"].get<int64_t>()) + ", " +
          count_text(static_cast<int64_t>(told["tensors"].size()), "tensor") + " of " + bytes_text(told["bytes"]) + "\n";
  for (const json& shard : told["shards"]) text += "  " + shard["file"].get<std::string>() + "  " + bytes_text(shard["bytes"]) + "\n";
  for (const auto& [key, value] : told["metadata"].items()) text += "  " + key + ": " + value.get<std::string>() + "\n";
  for (const json& row : told["rows"]) {
    text += "  written up to " + std::to_string(row["sequence"].get<int64_t>()) + " by " + row["writer"].get<std::string>() + "\n";
  }
  if (wish.all)
    for (const json& tensor : told["tensors"]) text += tensor_line(tensor);
  return print(text) ? kOk : kFailed;
}

int verify(const Wish& wish) {
  json told;
  std::string path, text;
  int code = kOk;
  if (!choose_step(wish, &path, &code) || !ask(dtg_checkpoint_verify, wish, path, &told, &code)) return code;
  bool whole = true;
  for (const json& set : told["sets"]) {
    const bool valid = set["valid"];
    whole = whole && valid;
    text += set["name"].get<std::string>() + "  " + paint(valid ? Color::green : Color::red, valid ? "whole" : "damaged") + "  " +
            bytes_text(set["bytes"]) + " read\n";
    for (const json& problem : set["problems"]) text += "  " + problem["problem"].get<std::string>() + "\n";
    for (const json& name : set["strangers"]) text += "  " + name.get<std::string>() + " does not belong to it; nobody reads it\n";
  }
  if (!print(wish.as_json ? lines(told) + "\n" : text)) return kFailed;
  if (!whole && !wish.as_json)
    complain("a set is damaged\n  resume from one that is whole; a damaged one may be removed with its directory");
  return whole ? kOk : kFailed;
}

int reshard(const Wish& wish) {
  std::string path;
  int code = kOk;
  if (!choose_step(wish, &path, &code)) return code;
  dtg_string* text = nullptr;
  if (dtg_error* error = dtg_checkpoint_reshard(nullptr, path.data(), path.size(), wish.into.data(), wish.into.size(),
                                                static_cast<int32_t>(wish.shards), &text))
    return report(error, wish.as_json, kNext);
  const Owned<dtg_string> owned(text);
  const std::string made(view(text));
  return print(wish.as_json ? lines(json{{"path", made}, {"shards", wish.shards}}) + "\n" : made + "\n") ? kOk : kFailed;
}

}  // namespace

int checkpoint(int argc, char** argv) {
  Wish wish;
  std::string action;
  Arguments arguments(
      "checkpoint", "checkpoint list|show|verify|reshard PATH [--step N] [--tensors] [--shards N --into DIR] [--json]",
      "Sets of checkpoints: a directory of them, or one set in it.\n\n"
      "list shows the sets, newest first, and of which files are missing or too short; show tells what is in one, the newest\n"
      "where PATH has several; verify reads every byte of one or of all, and finds whatever is not as it was saved;\n"
      "reshard writes one again in another number of files, each of which any safetensors reader reads.");
  arguments.position("ACTION", true, &action, "list, show, verify or reshard");
  arguments.position("PATH", true, &wish.path, "a directory of sets, or one of them");
  arguments.number("--step", "N", 0, INT64_MAX, &wish.step, "the set of this step; default: the newest whole one, for verify all of them");
  arguments.flag("--tensors", &wish.all, "of show: every tensor");
  arguments.number("--shards", "N", 1, 65536, &wish.shards, "of reshard: how many files");
  arguments.text("--into", "DIR", &wish.into, "of reshard: where the new set goes; may be the directory of the old one");
  arguments.flag("--json", &wish.as_json, "all of it as JSON");
  arguments.exit_codes("0 done, 1 failed or a set is damaged (verify), 2 a mistake on the command line.");
  int code = kOk;
  if (!arguments.read(argc, argv, &code)) return code;
  const bool resharding = action == "reshard";
  if (resharding && (wish.shards == 0 || wish.into.empty())) return complain("reshard needs --shards N and --into DIR"), kUsage;
  if (!resharding && (wish.shards != 0 || !wish.into.empty())) return complain("--shards and --into are for reshard"), kUsage;
  if (action == "list") return list(wish);
  if (action == "show") return show(wish);
  if (action == "verify") return verify(wish);
  if (resharding) return reshard(wish);
  const std::string near = closest(action, {std::begin(kActions), std::end(kActions)});
  complain("checkpoint has no action \"" + action + "\"" + (near.empty() ? "" : "; did you mean " + near + "?") +
           "\n  all actions: dtg checkpoint --help");
  return kUsage;
}

}  // namespace dtg::cli
