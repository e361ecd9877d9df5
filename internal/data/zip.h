// ZipArchive: the files inside a zip file, stored or deflated, with or without the 64-bit fields. Every offset and length in it is somebody
// else's word and checked before it is used; checksums are verified. Immutable; any thread may read, each by a reader of its own.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/disk.h"

namespace dtg {

struct ZipEntry {
  std::string name;
  uint16_t method = 0;  // 0: stored, 8: deflated
  uint16_t flags = 0;
  uint32_t crc = 0;
  uint64_t packed = 0;  // bytes in the archive
  uint64_t plain = 0;   // bytes of the file
  uint64_t at = 0;      // where its local header begins
};

class ZipArchive {
 public:
  // `bytes` must outlive the archive and its readers; `path` is for messages.
  static Result<ZipArchive> open(std::string_view bytes, std::string path);

  const std::vector<ZipEntry>& entries() const { return entries_; }
  // The plain bytes of one entry. DATA_LOSS where it is damaged, at the latest when the reader answers its end.
  Result<std::unique_ptr<FileReader>> read(const ZipEntry& entry) const;

 private:
  ZipArchive(std::string_view bytes, std::string path) : bytes_(bytes), path_(std::move(path)) {}
  struct Directory {
    uint64_t at, bytes, entries;
  };
  Result<Directory> find_directory() const;
  Status read_directory(const Directory& directory);
  Status read_wide(ZipEntry& entry, std::string_view extra) const;
  Status damaged(uint64_t at, const char* problem) const;

  std::string_view bytes_;
  std::string path_;
  std::vector<ZipEntry> entries_;
};

}  // namespace dtg
