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

// A file open for appending. One thread at a time, but for sync(), which may come from another one while this one appends: what was
// appended before it began is on the disk then. Several threads may sync.
class FileWriter {
 public:
  virtual ~FileWriter() = default;  // closes; what close() would report is lost
  virtual Status append(std::string_view bytes) = 0;
  // Sets room for `bytes` in all aside, so that a disk that is too full says so now: RESOURCE_EXHAUSTED. Does nothing where
  // the file system cannot.
  virtual Status reserve(int64_t bytes) = 0;
  // The bytes are on the disk when this returns ok. After a failure nobody knows which are, and a second attempt may say ok
  // although they are lost; so the system is not asked again, and every later sync fails as the first did.
  virtual Status sync() = 0;
  virtual Status close() = 0;  // idempotent
};

// A file open for reading from the start.
class FileReader {
 public:
  virtual ~FileReader() = default;
  // Reads up to `count` bytes; 0 at the end.
  virtual Result<size_t> read(void* into, size_t count) = 0;
};

// Keeps other processes, and other holders in this one, out of what a file stands for, as long as it lives.
class FileLock {
 public:
  virtual ~FileLock() = default;
};

// What stands under a name; links are not followed.
struct FileStat {
  enum class Kind { file, directory, other } kind = Kind::other;
  int64_t bytes = 0;
  double modified_seconds = 0;  // wall time of the last change; of a directory, of its entries
};

class Disk {
 public:
  virtual ~Disk() = default;
  // FAILED_PRECONDITION unless it is a regular file: a pipe would be waited for, and no call here has a deadline.
  virtual Result<std::unique_ptr<FileReader>> open_read(const std::string& path) = 0;
  // The same for names that a file said: no link stands in its place, either.
  virtual Result<std::unique_ptr<FileReader>> open_regular(const std::string& path) = 0;
  // Creates (mode 0666 less umask) or truncates.
  virtual Result<std::unique_ptr<FileWriter>> open_write(const std::string& path) = 0;
  // Creates; ALREADY_EXISTS where there is something of that name.
  virtual Result<std::unique_ptr<FileWriter>> open_new(const std::string& path) = 0;
  // The whole file, refused with RESOURCE_EXHAUSTED when longer than `bytes_max`.
  virtual Result<std::string> read_file(const std::string& path, int64_t bytes_max) = 0;
  // Makes the directory and its parents; one that exists is fine.
  virtual Status make_directories(const std::string& path) = 0;
  // Makes one directory in a parent that is there; ALREADY_EXISTS where there is something of that name.
  virtual Status make_directory(const std::string& path) = 0;
  // What was made, renamed and removed in the directory is on the disk when this returns ok.
  virtual Status sync_directory(const std::string& path) = 0;
  // What the file holds, whoever wrote it, is on the disk when this returns ok.
  virtual Status sync_file(const std::string& path) = 0;
  // Atomic within one file system; the directory entry is on the disk when this returns ok.
  virtual Status rename(const std::string& from, const std::string& to) = 0;
  // The name of the file that a link at `path` leads to, at last, be it there or not; `path` itself where there is no link.
  virtual Result<std::string> follow(const std::string& path) { return path; }
  // Gives a file the mode of another one, and its owner and group where that is allowed.
  virtual Status take_rights(const std::string&, const std::string&) { return {}; }
  // A file, a link, or an empty directory.
  virtual Status remove(const std::string& path) = 0;
  virtual Result<bool> exists(const std::string& path) = 0;
  virtual Result<FileStat> look_up(const std::string& path) = 0;
  // What is free for this user on the file system that holds `path`.
  virtual Result<int64_t> free_bytes(const std::string& path) = 0;
  virtual Result<std::vector<std::string>> list(const std::string& directory) = 0;
  // Locks a file, which is made where it is not there; ALREADY_EXISTS while somebody else holds it. On a disk that is nobody else's there
  // is nothing to lock.
  virtual Result<std::unique_ptr<FileLock>> lock(const std::string& path);
};

// "." for a name alone, "/" for what stands below the root.
std::string parent_directory(const std::string& path);

// Removes a directory with all it holds, without following links. What goes missing meanwhile is fine; folders nested deeper
// than ours ever are, are refused.
Status remove_tree(Disk& disk, const std::string& path);

// The machine's file system; lives as long as the process.
Disk& system_disk();

}  // namespace dtg
