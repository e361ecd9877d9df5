// TensorFlow's record framing, which event files and TFRecord files share: length, masked checksum of the
// length, payload, masked checksum of the payload. A reader belongs to one thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/disk.h"

namespace dtg {

void append_record(std::string& out, std::string_view payload);

class RecordReader {
 public:
  // `file` and `path`, which is for messages, must outlive the reader. Longer records are refused.
  RecordReader(FileReader& file, const std::string& path, uint64_t record_bytes_max = uint64_t{1} << 28)
      : file_(file), path_(path), record_bytes_max_(record_bytes_max) {}

  // The next payload, or false at the end of the file. DATA_LOSS when a record is cut short or fails a
  // checksum; the message says where.
  Result<bool> next(std::string& payload);
  int64_t records() const { return records_; }

 private:
  Result<size_t> read(void* into, size_t count);
  Status damaged(const char* problem) const;
  FileReader& file_;
  const std::string& path_;
  const uint64_t record_bytes_max_;
  int64_t records_ = 0;
  int64_t offset_ = 0;
};

}  // namespace dtg
