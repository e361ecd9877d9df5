// RunDirectory: what one training leaves behind for people and programs: metrics.jsonl and metrics.csv with a row per epoch,
// summary.json, model.safetensors, best.safetensors, and checkpoints/ (session/checkpoints.h). metrics.jsonl is what is read again by a
// training that goes on; the table of comma-separated values is made from it.
//
// Who has claimed the checkpoints below it is alone in here. Owner: a course; the thread that trains.
#pragma once

#include <memory>
#include <string>

#include "base/disk.h"
#include "base/json.h"

namespace dtg {

// A draft that is to be renamed: always a file of its own, whatever somebody has put in the place of its name, a link included.
Result<std::unique_ptr<FileWriter>> open_draft(Disk& disk, const std::string& path);
// A whole file, atomically, by such a draft, which is gone where it could not be written.
Status write_whole(Disk& disk, const std::string& path, std::string_view text);

class RunDirectory {
 public:
  RunDirectory(Disk& disk, std::string path) : disk_(disk), path_(std::move(path)) {}
  const std::string& path() const { return path_; }
  std::string checkpoints() const { return path_ + "/checkpoints"; }
  std::string file(const char* name) const { return path_ + "/" + name; }

  // Keeps the rows of the first `epochs` epochs, gives them, and is ready for the next. `damaged` grows by the rows that could not be read.
  Result<Json::Array> open(int64_t epochs, size_t& damaged);
  // On the disk when it returns, in both files.
  Status append(const Json& row);
  // Atomically.
  Status write_summary(const Json& summary);

 private:
  Status write_csv(const Json& row);
  Disk& disk_;
  const std::string path_;
  std::unique_ptr<FileWriter> lines_, table_;
  std::string columns_;  // the last header written
};

}  // namespace dtg
