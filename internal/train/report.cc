// Puts a run into the page. See report.h for threads.
#include "train/report.h"

#include "train/run_directory.h"

namespace dtg {

// No name of a run or of a metric may end the element that it stands in.
std::string report_page(const Json& run) {
  std::string data;
  for (const char c : Json(Json::Array{run}).text()) {
    if (c == '<') data += "\\u003c";
    else data += c;
  }
  return std::string(kReportHead) + data + kReportTail;
}

Status write_report(Disk& disk, const std::string& path, const Json& run) { return write_whole(disk, path, report_page(run)); }

}  // namespace dtg
