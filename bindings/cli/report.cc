// dtg report: holds the runs of several fits side by side, on the terminal, as JSON, and in one page of HTML. Main thread.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "arguments.h"
#include "commands.h"
#include "console.h"
#include "json_text.h"

namespace dtg::cli {
namespace {

using nlohmann::json;

constexpr const char* kBegin = "<script id=\"data\" type=\"application/json\">";
constexpr const char* kEnd = "</script>";

bool read(const std::string& path, std::string* text) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return false;
  std::stringstream all;
  all << file.rdbuf();
  *text = all.str();
  return file.good() || file.eof();
}

// A value of a file that somebody else may have written: no deeper than anything of a fit is, as who shows it goes down level by level.
json parsed(const std::string& text) {
  constexpr int kDeepest = 64;
  return json::parse(
      text, [](int depth, json::parse_event_t, json&) { return depth <= kDeepest; }, false);
}

// Rows but for those that are damaged, which are counted; a last one without its line's end is being written.
json rows_in(const std::string& text, size_t& damaged) {
  json rows = json::array();
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    json row = parsed(line);
    if (row.is_object()) rows.push_back(std::move(row));
    else if (!lines.eof()) ++damaged;
  }
  return rows;
}

// What the directory of a fit tells; null: it is none, and that has been said. One that has no end yet has its rows only, and where it went
// on after an end they are more than the summary's.
json read_run(std::string directory) {
  while (directory.size() > 1 && directory.back() == '/') directory.pop_back();
  std::string text;
  json run;
  if (read(directory + "/summary.json", &text)) run = parsed(text);
  const bool ended = run.is_object() && run.contains("history") && run["history"].is_array() &&
                     std::ranges::all_of(run["history"], [](const json& row) { return row.is_object(); });
  if (!ended) run = {{"outcome", "running"}, {"why", ""}, {"history", json::array()}};
  std::string lines;
  const bool begun = read(directory + "/metrics.jsonl", &lines);
  if (!ended && !begun) {
    complain(directory +
             ": no directory of a fit; there is neither a whole summary.json nor metrics.jsonl\n  give the `directory` of a fit");
    return nullptr;
  }
  size_t damaged = 0;
  json rows = rows_in(lines, damaged);
  if (damaged > 0) {
    complain(directory + "/metrics.jsonl: " + std::to_string(damaged) + " of its lines " + (damaged == 1 ? "is" : "are") +
             " damaged\n  the others are shown");
  }
  if (rows.size() > run["history"].size()) {
    run["outcome"] = "running";
    run["history"] = std::move(rows);
  }
  if (run["outcome"] == "running") {
    const json& rows_now = run["history"];
    run["epochs"] = rows_now.empty() ? json(0) : rows_now.back().value("epoch", json(rows_now.size()));
  }
  run["name"] = directory.substr(directory.rfind('/') + 1);
  run["directory"] = directory;
  return run;
}

// Names come from folders and files, and none of them may tell the terminal what to do.
std::string cell(const json& value) {
  if (value.is_string()) {
    std::string word = value.get<std::string>();
    std::ranges::replace_if(
        word, [](unsigned char c) { return c < 0x20 || c == 0x7f; }, '?');
    return word;
  }
  if (value.is_number_unsigned()) return std::to_string(value.get<uint64_t>());
  if (value.is_number_integer()) return std::to_string(value.get<int64_t>());
  if (!value.is_number()) return "";
  char text[32];
  std::snprintf(text, sizeof text, "%.5g", value.get<double>());
  return text;
}

// Columns as wide as their widest cell; numbers stand at the right of theirs.
std::string table(const std::vector<std::vector<json>>& rows) {
  std::vector<size_t> widths;
  for (const auto& row : rows) {
    widths.resize(std::max(widths.size(), row.size()));
    for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], cell(row[i]).size());
  }
  std::string text;
  for (size_t r = 0; r < rows.size(); ++r) {
    std::string line;
    for (size_t i = 0; i < rows[r].size(); ++i) {
      const std::string word = cell(rows[r][i]), space(widths[i] - word.size(), ' ');
      const bool number = i > 1;
      line += (i == 0 ? "" : "  ") + (number ? space + word : word + space);
    }
    line.erase(line.find_last_not_of(' ') + 1);
    text += (r == 0 ? paint(Color::bold, line) : line) + "\n";
  }
  return text;
}

std::string compare(const std::vector<json>& runs) {
  std::vector<std::string> names;
  for (const json& run : runs) {
    if (run["history"].empty()) continue;
    for (const auto& [name, value] : run["history"].back().items()) {
      if (name != "epoch" && name != "step" && std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
    }
  }
  std::vector<std::vector<json>> rows = {{"run", "outcome", "epochs", "steps", "best", "of"}};
  for (const std::string& name : names) rows[0].emplace_back(name);
  for (const json& run : runs) {
    const json last = run["history"].empty() ? json::object() : run["history"].back();
    std::vector<json> row = {run["name"],
                             run.value("outcome", json()),
                             run.value("epochs", json()),
                             last.value("step", json()),
                             run.value("best", json()),
                             run.value("monitor", json())};
    for (const std::string& name : names) row.push_back(last.value(name, json()));
    rows.push_back(std::move(row));
  }
  return table(rows);
}

// The page that the first of them has, with the data of all.
int write_page(const std::string& path, const std::vector<json>& runs) {
  std::string page;
  for (const json& run : runs) {
    if (page.empty() && !read(run["directory"].get<std::string>() + "/report.html", &page)) page.clear();
  }
  const size_t begin = page.find(kBegin), end = begin == std::string::npos ? begin : page.find(kEnd, begin);
  if (end == std::string::npos) {
    complain("none of the runs has a whole report.html\n  a fit writes it at its end; without --html the runs are compared here");
    return kFailed;
  }
  std::string data;
  for (const char c : one_line(json(runs))) data += c == '<' ? std::string("\\u003c") : std::string(1, c);
  const size_t from = begin + std::string_view(kBegin).size();
  page.replace(from, end - from, data);
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file << page;
  file.close();
  if (file) return kOk;
  complain("write " + path + ": it cannot be written there\n  is the folder there, and may you write to it?");
  return kFailed;
}

}  // namespace

int report(int argc, char** argv) {
  bool as_json = false;
  std::string html;
  std::vector<std::string> directories;
  Arguments arguments(
      "report", "report [--json] [--html FILE] RUN...",
      "Compares what fits have left in their directories: how each ended, and the values of its last epoch. Each has a page of "
      "its own, report.html; --html writes one of all of them.");
  arguments.flag("--json", &as_json, "everything as JSON");
  arguments.text("--html", "FILE", &html, "a page of all runs, which needs no network");
  arguments.rest("RUN", &directories, "the directory of a fit");
  arguments.exit_codes("0 done; 1 no such run, or a page that cannot be written; 2 a mistake on the command line");
  int code = kOk;
  if (!arguments.read(argc, argv, &code)) return code;
  // Options may stand behind the runs too.
  std::vector<std::string> rest;
  std::swap(rest, directories);
  for (size_t i = 0; i < rest.size(); ++i) {
    if (rest[i] == "--json") as_json = true;
    else if (rest[i] == "--html" && i + 1 < rest.size()) html = rest[++i];
    else directories.push_back(rest[i]);
  }
  if (directories.empty()) {
    complain("which runs?\n  dtg report RUN..., each the directory of a fit");
    return kUsage;
  }
  std::vector<json> runs;
  for (const std::string& directory : directories) {
    json run = read_run(directory);
    if (run.is_null()) return kFailed;
    runs.push_back(std::move(run));
  }
  if (!html.empty() && write_page(html, runs) != kOk) return kFailed;
  return print(as_json ? lines(json{{"runs", runs}}) + "\n" : compare(runs)) ? kOk : kFailed;
}

}  // namespace dtg::cli
