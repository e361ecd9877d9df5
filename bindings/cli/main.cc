// dtg: the command. A thin client of libdtg.so: it sees the public headers only, like any other program. This file finds
// the command that is meant; each lives in a file of its name.
#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "arguments.h"
#include "commands.h"
#include "console.h"

namespace {

using namespace dtg::cli;

struct Command {
  const char* name;
  int (*run)(int argc, char** argv);
  const char* purpose;
};

constexpr Command kCommands[] = {
    {"run", run, "start a cluster of processes on this machine and look after it"},
    {"worker", worker, "more workers for a running cluster, or fewer"},
    {"server", server, "one task of a cluster, such as a parameter server"},
    {"status", status, "what the tasks of a running cluster are doing"},
    {"keygen", keygen, "a key for the tasks of a job"},
    {"ops", ops, "what the library can compute: all ops, or one"},
    {"graph", graph, "what is in a serialised graph"},
    {"checkpoint", checkpoint, "sets of checkpoints: what there is, whether it is whole, in how many files"},
    {"report", report, "fits side by side: how each ended, and a page with their curves"},
    {"version", version, "versions of the library and of this command"},
};

std::string help() {
  std::string text = "usage: dtg COMMAND [OPTIONS]\n\nDistributed TensorFlow as a library; this is its command.\n\n";
  for (const Command& command : kCommands) {
    std::string line = std::string("  ") + command.name;
    line.append(14 - line.size(), ' ');
    text += line + command.purpose + "\n";
  }
  return text + "\n\"dtg COMMAND --help\" tells the options. Exit codes: 0 done, 1 failed, 2 a mistake on the command line.\n"
                "Colours appear on terminals only, and not where NO_COLOR is set.\n";
}

// Whoever asks for JSON reads errors as JSON, too. What `run` says on stderr is for people, among what its programs say.
bool wants_json(int argc, char** argv) {
  const std::vector<std::string> words(argv + 1, argv + std::max(argc, 1));
  return std::ranges::find(words, "--json") < std::ranges::find(words, "--") && words[0] != "run";
}

}  // namespace

int main(int argc, char** argv) {
  const std::string name = argc > 1 ? argv[1] : "";
  if (wants_json(argc, argv)) speak_json();
  if (name == "--help" || name == "-h" || name == "help") return print(help()) ? kOk : kFailed;
  if (name == "--version") return version(1, argv);
  std::vector<std::string> names;
  for (const Command& command : kCommands) {
    if (name == command.name) return command.run(argc - 1, argv + 1);
    names.emplace_back(command.name);
  }
  const std::string near = closest(name, names);
  complain(name.empty() ? "a command is missing\n  all commands: dtg --help"
                        : "there is no command \"" + name + "\"" + (near.empty() ? "" : "; did you mean " + near + "?") +
                              "\n  all commands: dtg --help");
  return kUsage;
}
