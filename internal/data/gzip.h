// Opens a file that may be gzip-compressed as a FileReader of its plain bytes. Works over a Disk; any thread except the
// network loop.
#pragma once

#include <memory>
#include <string>

#include "base/disk.h"
#include "base/reservation.h"

namespace dtg {

// A reader of the plain bytes of `path`, decided by the file's first bytes, not its name. A compressed
// file's checksum has been verified when the reader answers its end; damage is DATA_LOSS.
Result<std::unique_ptr<FileReader>> open_plain(Disk& disk, const std::string& path);
// The same over an open file; `path` is for messages.
Result<std::unique_ptr<FileReader>> plain_reader(std::unique_ptr<FileReader> file, const std::string& path);

// All that is left, refused with RESOURCE_EXHAUSTED beyond `bytes_max`: a small compressed file can hold
// a very large plain one. What is read grows `held`.
Result<std::string> read_all(FileReader& file, const std::string& path, int64_t bytes_max, Reservation& held);

// Exactly `count` bytes, or DATA_LOSS. `what` names the part for the message.
Status read_fully(FileReader& file, void* into, size_t count, const std::string& path, const char* what);

}  // namespace dtg
