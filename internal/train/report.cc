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

Status write_report(Disk& disk, const std::string& path, const Json& run) {
  const std::string draft = path + ".new";
  DTG_ASSIGN(const std::unique_ptr<FileWriter> writer, open_draft(disk, draft));
  DTG_TRY(writer->append(report_page(run)));
  DTG_TRY(writer->sync());
  DTG_TRY(writer->close());
  return disk.rename(draft, path);
}

}  // namespace dtg
