// Journal: records in the order in which they were appended, in files of a directory, for whoever has to know after a crash what came
// before it. A file is named for the number of its first commit, "journal-00000000000004d2", which the records themselves mean
// something by; what they hold is the business of who writes them. The framing is that of record files (base/record.h).
//
// A writer belongs to one thread at a time; reading is a pure function over a Disk. Any thread except the network loop.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/disk.h"

namespace dtg {

class JournalWriter final {
 public:
  // A new file, whose name is on the disk when this returns.
  static Result<std::unique_ptr<JournalWriter>> begin(Disk& disk, const std::string& directory, uint64_t first);

  // One record, of these pieces. After an error the file ends in half a record, and nothing more may be appended.
  Status append(std::span<const std::string_view> pieces);
  // Also from another thread than the one that appends.
  Status sync() { return file_->sync(); }
  int64_t bytes() const { return bytes_; }

 private:
  explicit JournalWriter(std::unique_ptr<FileWriter> file) : file_(std::move(file)) {}
  const std::unique_ptr<FileWriter> file_;
  int64_t bytes_ = 0;
  std::string small_;  // what is written in one go
};

struct JournalFile {
  uint64_t first = 0;
  std::string path;
};

// In order; empty where there is no such directory.
Result<std::vector<JournalFile>> list_journals(Disk& disk, const std::string& directory);

// Calls `each` with every record. A file that ends in half a record, in one with holes, or in zeros, was being written when its machine
// stopped: nobody was told that those are there, so they are not. Anything else that is damaged is DATA_LOSS, with the place. Gives the
// bytes of whole records.
Result<int64_t> read_journal(Disk& disk, const std::string& path, const std::function<Status(std::string_view record)>& each);

}  // namespace dtg
