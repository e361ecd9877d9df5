// The modes in which a session runs a scene, each judged by the truth. A Stage holds what scenes share: runtimes and a cluster
// of two servers in this process, each made when first needed. One thread drives it.
#pragma once

#include <memory>
#include <string>

#include "cluster/server.h"
#include "random/generator.h"
#include "session/session.h"

namespace dtg::random {

enum class Way { run, callable, async, together, aborted, in_place, overlap };

struct Mode {
  const char* name;
  Way way = Way::run;
  int threads = 4;
  bool fusion = true;
  Places places = Places::none;
  Committing committing = Committing::singly;
  Accelerator::Mutant mutant = Accelerator::Mutant::none;
};

std::span<const Mode> modes();
// Modes that must fail: an accelerator that breaks the rules, one each. Run by name only.
std::span<const Mode> mutants();

class Stage {
 public:
  Stage();
  ~Stage();
  // Empty when the session gives what the truth says; otherwise what is different.
  std::string check(const Mode& mode, const Scene& scene, const Truth& truth);
  Result<Ref<Runtime>> runtime(int threads);
  Result<Tables> tables();
  static const OpTable& all_ops();

 private:
  struct Cluster;
  Result<Ref<Session>> connect(const Mode& mode, Ref<Graph> graph, Ref<Runtime> runtime);
  Ref<Runtime> runtimes_[5];
  std::unique_ptr<Cluster> cluster_;
};

}  // namespace dtg::random
