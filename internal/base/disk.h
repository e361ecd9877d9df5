// Disk: the seam for files. Checkpoints, event files and data sets go through it, so that tests can fail
// any call and the simulator needs no disk. Paths are given by the host, never by a peer. Any thread,
// never the network loop.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace dtg {

// A file open for appending. Not thread-safe.
class FileWriter {
 public:
  virtual ~FileWriter() = default;  // closes; what close() would report is lost
  virtual Status append(std::string_view bytes) = 0;
  virtual Status sync() = 0;   // the bytes are on the disk when this returns ok
  virtual Status close() = 0;  // idempotent
};

// A file open for reading from the start.
class FileReader {
 public:
  virtual ~FileReader() = default;
  // Reads up to `count` bytes; 0 at the end.
  virtual Result<size_t> read(void* into, size_t count) = 0;
};

class Disk {
 public:
  virtual ~Disk() = default;
  virtual Result<std::unique_ptr<FileReader>> open_read(const std::string& path) = 0;
  // Creates (mode 0666 less umask) or truncates.
  virtual Result<std::unique_ptr<FileWriter>> open_write(const std::string& path) = 0;
  // The whole file, refused with RESOURCE_EXHAUSTED when longer than `bytes_max`.
  virtual Result<std::string> read_file(const std::string& path, int64_t bytes_max) = 0;
  // Makes the directory and its parents; one that exists is fine.
  virtual Status make_directories(const std::string& path) = 0;
  // Atomic within one file system; the directory entry is on the disk when this returns ok.
  virtual Status rename(const std::string& from, const std::string& to) = 0;
  virtual Status remove(const std::string& path) = 0;
  virtual Result<bool> exists(const std::string& path) = 0;
  virtual Result<std::vector<std::string>> list(const std::string& directory) = 0;
};

// The machine's file system; lives as long as the process.
Disk& system_disk();

}  // namespace dtg
