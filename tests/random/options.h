// The command line of random_graphs; read once.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "random/workshop.h"

namespace dtg::random {

struct Command {
  uint64_t from = 1;
  int64_t count = 100;
  double seconds = 0;  // 0: no limit
  int jobs = 2;
  int64_t batch = 50;
  int64_t most = 20;  // failures after which it stops
  std::vector<std::string> modes;
  std::vector<std::string> files;
  std::string corpus;  // folder: replayed first
  std::string ledger;  // file: a line of totals is appended
  std::string out;     // folder: where shrunk scenes go
  bool print = false;
  bool shrink = false;
  bool stats = false;
  bool cover = false;  // an op that never appears is a failure
  Wishes wishes;
};

// False when a word is not understood; it says so on stderr.
bool read_command(int argc, char** argv, Command& command);

}  // namespace dtg::random
