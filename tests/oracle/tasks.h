// A cluster in this process for the oracle tools: every task a server with a runtime of its own, unix sockets in a private
// folder in between. One thread.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "program.h"

namespace dtg::oracle {

class Tasks {
 public:
  Tasks(int servers, int workers);
  ~Tasks();
  Tasks(const Tasks&) = delete;
  // Why they did not start.
  const Outcome& failed() const { return failed_; }
  // What a session of worker 0 connects to.
  std::string target() const;
  // Where such a session lives, which makes it the chief.
  const std::shared_ptr<dtg_runtime>& runtime() const { return runtimes_.back(); }

 private:
  void start(const dtg_cluster* cluster, const char* job, int32_t task);

  Outcome failed_;
  std::string folder_;
  std::vector<std::shared_ptr<dtg_runtime>> runtimes_;
  std::vector<std::shared_ptr<dtg_server>> servers_;  // worker 0 is the last
};

}  // namespace dtg::oracle
