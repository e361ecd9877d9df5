// What a tool found: counts, failures as they come, skips by reason at the end. Command lines of the tools. One thread.
#pragma once

#include <functional>
#include <map>
#include <string>

#include "files.h"

namespace dtg::oracle {

struct Verdict {
  enum Kind { kPassed, kFailed, kSkipped } kind = kPassed;
  std::string why;

  static Verdict passed() { return {}; }
  static Verdict failed(std::string why) { return {kFailed, std::move(why)}; }
  static Verdict skipped(std::string why) { return {kSkipped, std::move(why)}; }
  explicit operator bool() const { return kind == kPassed; }
};

class Report {
 public:
  explicit Report(bool verbose) : verbose_(verbose) {}
  void add(const std::string& name, const Verdict& verdict);
  // Prints the skips and the closing line; the exit status of the tool.
  int close() const;

 private:
  bool verbose_;
  int passed_ = 0;
  int failed_ = 0;
  int skipped_ = 0;
  std::map<std::string, int> reasons_;
};

struct Options {
  std::string folder;
  std::string filter;  // cases whose "file/case" lacks it are left out
  bool verbose = false;

  bool wants(const std::string& name) const { return filter.empty() || name.find(filter) != std::string::npos; }
};

// The main of a tool: `read` is called once per file of the folder, with its parsed content. `kind` names the folder of
// the vectors that come with the sources, used when the command line names none.
int run_tool(int argc, char** argv, const char* kind,
             const std::function<void(const std::string& path, const Json& file, const Options&, Report&)>& read);

}  // namespace dtg::oracle
