// judge(): runs one of the Python scripts that hold our files against other people's readers.
#pragma once

#include <sys/wait.h>

#include <cstdlib>
#include <string>

namespace dtg {

enum class Verdict { fine, bad, absent };

// `script` is a path in the repository, called with `directory`. DTG_PYTHON names the Python to take, else
// it is python3; a Python that lacks the packages of tests/requirements.txt makes the judge absent.
inline Verdict judge(const std::string& script, const std::string& directory) {
  const char* const python = std::getenv("DTG_PYTHON");
  const char* const source = std::getenv("DTG_SOURCE_DIR");
  if (!source) return Verdict::absent;
  const std::string command = std::string(python ? python : "python3") + " " + source + "/" + script + " " + directory;
  const int status = std::system(command.c_str());
  const int code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  if (code == 0) return Verdict::fine;
  // 77: the script found no packages; 127: the shell found no Python.
  return code == 77 || code == 127 ? Verdict::absent : Verdict::bad;
}

}  // namespace dtg
