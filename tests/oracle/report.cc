// Counting and printing, and the command line that the tools share; see report.h.
#include "report.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "program.h"

namespace dtg::oracle {
namespace {

bool parse(int argc, char** argv, const char* kind, Options* options) {
  for (int i = 1; i < argc; ++i) {
    if (std::strcmp(argv[i], "--verbose") == 0) options->verbose = true;
    else if (std::strcmp(argv[i], "--device") == 0 && i + 1 < argc) use_device(argv[++i]);
    else if (std::strcmp(argv[i], "--filter") == 0 && i + 1 < argc) options->filter = argv[++i];
    else if (argv[i][0] != '-' && options->folder.empty()) options->folder = argv[i];
    else return false;
  }
  if (!options->folder.empty()) return true;
  const char* source = std::getenv("DTG_SOURCE_DIR");
  if (!source) return false;
  options->folder = std::string(source) + "/tests/oracle/data/" + kind;
  return true;
}

}  // namespace

void Report::add(const std::string& name, const Verdict& verdict) {
  switch (verdict.kind) {
    case Verdict::kPassed:
      ++passed_;
      if (verbose_) std::printf("passed  %s\n", name.c_str());
      break;
    case Verdict::kFailed:
      ++failed_;
      std::printf("FAILED  %s: %s\n", name.c_str(), verdict.why.c_str());
      break;
    case Verdict::kSkipped:
      ++skipped_;
      ++reasons_[verdict.why];
      if (verbose_) std::printf("skipped %s: %s\n", name.c_str(), verdict.why.c_str());
      break;
  }
  std::fflush(stdout);
}

int Report::close() const {
  for (const auto& [why, count] : reasons_) std::printf("skipped %d: %s\n", count, why.c_str());
  std::printf("%d passed, %d failed, %d skipped\n", passed_, failed_, skipped_);
  // A folder in which nothing was found proves nothing.
  return failed_ > 0 || passed_ + skipped_ == 0;
}

int run_tool(int argc, char** argv, const char* kind,
             const std::function<void(const std::string&, const Json&, const Options&, Report&)>& read) {
  Options options;
  if (!parse(argc, argv, kind, &options)) {
    std::fprintf(stderr, "usage: %s [DIR] [--verbose] [--filter SUBSTR] [--device TYPE:ID]\n", argv[0]);
    return 2;
  }
  Report report(options.verbose);
  for (const std::string& path : list_vectors(options.folder)) {
    const Json file = read_json(path);
    if (file.is_object()) {
      // A file that is not of the format is that file's failure, not the end of the others.
      try {
        read(path, file, options, report);
      } catch (const Json::exception& error) {
        report.add(stem(path), Verdict::failed(error.what()));
      }
    } else {
      report.add(stem(path), Verdict::failed("the file cannot be read as JSON"));
    }
  }
  return report.close();
}

}  // namespace dtg::oracle
