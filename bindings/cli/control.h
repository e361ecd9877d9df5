// Control: a unix socket in the private directory of a launch, by which `dtg worker` asks its launcher for more workers or fewer. A
// question is a line, so is its answer, and then the connection ends. Whoever says nothing delays nobody, and gives way to the next.
// Supervisor's thread.
#pragma once

#include <poll.h>

#include <functional>
#include <string>
#include <vector>

namespace dtg::cli {

class Control {
 public:
  Control() = default;
  ~Control();
  Control(const Control&) = delete;
  Control& operator=(const Control&) = delete;

  // 0, or the errno of what failed.
  int listen(const std::string& path);
  void add_to(std::vector<pollfd>* polled) const;
  // Takes what there is, without waiting.
  void serve(const std::function<std::string(const std::string& question)>& answer);

 private:
  struct Client {
    int fd;
    std::string text;
  };
  bool take(Client& client, const std::function<std::string(const std::string&)>& answer);

  int listening_ = -1;
  std::vector<Client> clients_;
};

// The other end: the answer, or false and what was wrong.
bool ask(const std::string& path, const std::string& question, std::string* answer);

}  // namespace dtg::cli
