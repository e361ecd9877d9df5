// Words to options.
#include "random/options.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <sstream>

namespace dtg::random {
namespace {

constexpr const char* kUsage =
    "random_graphs: random graphs run by sessions in every mode, judged by an interpreter that plans nothing.\n"
    "  --seed S            one graph          --from A --count N   that many, from A on\n"
    "  --seconds T         no longer          --jobs J             processes at the same time\n"
    "  --modes a,b         only these modes   --ops A,B            only these ops\n"
    "  --ordered           effects on one variable are always ordered by control edges\n"
    "  --functions         graphs about conditions and loops, some within others\n"
    "  --print             the graph as text  --shrink             the smallest graph that still fails, into --out FOLDER\n"
    "  --file F            replays a scene    --corpus FOLDER      replays all of a folder first\n"
    "  --stats             what appeared how often\n"
    "  --cover             an op that never appeared is a failure\n"
    "  --ledger FILE       appends a line with the totals\n"
    "  --most N            stops after N failures\n";

std::vector<std::string> words_of(const char* text) {
  std::vector<std::string> list;
  std::istringstream in(text);
  for (std::string word; std::getline(in, word, ',');) list.push_back(word);
  return list;
}

bool read_flag(const char* word, Command& command) {
  const struct {
    const char* name;
    bool* flag;
  } flags[] = {{"--print", &command.print}, {"--shrink", &command.shrink},          {"--stats", &command.stats},
               {"--cover", &command.cover}, {"--ordered", &command.wishes.ordered}, {"--functions", &command.wishes.functions}};
  for (const auto& row : flags) {
    if (std::strcmp(word, row.name) == 0) return *row.flag = true;
  }
  return false;
}

bool read_option(const std::string& word, const char* value, Command& command) {
  if (word == "--seed") {
    command.from = std::strtoull(value, nullptr, 10);
    command.count = 1;
  } else if (word == "--from") command.from = std::strtoull(value, nullptr, 10);
  else if (word == "--count") command.count = std::atoll(value);
  else if (word == "--seconds") command.seconds = std::atof(value);
  else if (word == "--jobs") command.jobs = std::atoi(value);
  else if (word == "--most") command.most = std::atoll(value);
  else if (word == "--modes") command.modes = words_of(value);
  else if (word == "--ops") command.wishes.only = words_of(value);
  else if (word == "--file") command.files.push_back(value);
  else if (word == "--corpus") command.corpus = value;
  else if (word == "--ledger") command.ledger = value;
  else if (word == "--out") command.out = value;
  else return false;
  return true;
}

}  // namespace

bool read_command(int argc, char** argv, Command& command) {
  for (int i = 1; i < argc; ++i) {
    if (read_flag(argv[i], command)) continue;
    if (i + 1 < argc && read_option(argv[i], argv[i + 1], command)) {
      ++i;
      continue;
    }
    std::fprintf(stderr, "random_graphs: \"%s\" is not understood\n%s", argv[i], kUsage);
    return false;
  }
  return true;
}

}  // namespace dtg::random
