// dtg worker: more workers for a running launch, or fewer. Main thread.
#include <cstdlib>

#include "arguments.h"
#include "commands.h"
#include "console.h"
#include "control.h"
#include "launch.h"

namespace dtg::cli {
namespace {

// The one launch that can be meant; "" after a complaint.
std::string find_control(const std::string& given) {
  if (!given.empty()) return given;
  if (const char* own = std::getenv("DTG_CONTROL"); own && *own) return own;
  const std::vector<std::string> found = find_controls();
  if (found.size() == 1) return found.front();
  if (found.empty()) {
    complain("no launch of yours takes workers in or gives them away\n"
             "  begin one by: dtg run --local --workers 2..8 -- PROGRAM");
    return "";
  }
  std::string list;
  for (const std::string& path : found) list += "\n  --control " + path;
  complain("several launches of yours run; say which one is meant by" + list);
  return "";
}

}  // namespace

int worker(int argc, char** argv) {
  std::string what, count = "1", control;
  Arguments arguments("worker", "worker add|remove|list [N] [--control PATH]",
                      "Starts N more workers (1) of a launch that was begun with a range, such as dtg run --workers 2..8, or ends N of\n"
                      "them, the last ones first and never the chief; or lists those that run. A worker that is ended gets SIGTERM, and\n"
                      "SIGKILL when it has not ended within the launch's --grace. What that means for the training is up to PROGRAM: with\n"
                      "elastic synchronous training the steps go on with who is there.");
  arguments.position("add|remove|list", true, &what, "what to do");
  arguments.position("N", false, &count, "how many workers; default 1");
  arguments.text("--control", "PATH", &control,
                 "the socket of the launch; default $DTG_CONTROL, which its tasks have, or that of the only launch of yours");
  arguments.exit_codes("0 done; 1 not done, or not all of it; 2 a mistake on the command line.");
  int code = kOk;
  if (!arguments.read(argc, argv, &code)) return code;
  if (what != "add" && what != "remove" && what != "list") return complain("add, remove or list, not \"" + what + "\""), kUsage;
  if (count.empty() || count.size() > 3 || count.find_first_not_of("0123456789") != std::string::npos || std::atoi(count.c_str()) == 0)
    return complain("N is a whole number from 1 to 999, not \"" + count + "\""), kUsage;
  const std::string path = find_control(control);
  if (path.empty()) return kFailed;
  std::string answer;
  if (!ask(path, what + " " + count, &answer)) {
    complain("cannot ask the launcher at " + path + ": " + answer + "\n  does the launch still run?");
    return kFailed;
  }
  if (answer.starts_with("ok ")) return print(answer.substr(3) + "\n") ? kOk : kFailed;
  return complain(answer), kFailed;
}

}  // namespace dtg::cli
