// Files with secrets: small, of this user alone, never behind a link. Beside the Disk seam, because who owns a file and
// who may read it is what matters here; paths are given by the host, never by a peer. Any thread, never the network loop.
#pragma once

#include <span>
#include <string>

#include "base/status.h"

namespace dtg {

// Reads exactly as many bytes as `into` has. The file must be a regular file of this user with no rights for others
// and exactly that long; NOT_FOUND when there is none.
Status read_private_file(const std::string& path, std::span<char> into);

// Makes the file with mode 0600 and these bytes, complete or not at all; ALREADY_EXISTS when the name is taken.
Status create_private_file(const std::string& path, std::span<const char> bytes);

// Makes the directory with mode 0700 if it is missing; it must be this user's and closed to others.
Status private_directory(const std::string& path);

// A directory that only this user can enter, for what processes of one user find by name: $XDG_RUNTIME_DIR/dtg or, without
// it, one under the temporary directory that bears the user's number. Made if it is missing.
Result<std::string> private_runtime_directory(const char* xdg_runtime_dir);

}  // namespace dtg
