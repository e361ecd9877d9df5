// Fit: how what was saved and the variables of a model (as wholes, nn/wholes.h) go together, by names that may have changed meanwhile.
// Checkpoints and single files are held against a model by it, before anything is assigned. Values; the thread that restores.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "nn/wholes.h"

namespace dtg {

// What a variable of the model is called in the file. A name that ends with "/" stands for all that begin so, and then the other one ends
// so too; "" is the root, with which all begin. The longest rule counts, and what no rule names is called as it is.
class NameMap {
 public:
  // From {"name in the model": "name in the file", ...}; empty text: no rules.
  static Result<NameMap> parse(std::string_view json);
  std::string saved_name(const std::string& name) const;
  // NOT_FOUND for a rule that no variable of the model meets.
  Status check(const Model& model) const;

 private:
  std::map<std::string, std::string> exact_, begins_;
};

struct SavedTensor {
  std::string name;
  DType dtype = DType::invalid;
  Shape shape;
};

struct Fit {
  struct Pair {
    WholeVariable variable;
    std::string saved;
  };
  // A variable of the model, or what is only in the file; and what is to be said of it.
  struct Odd {
    std::string name, words;
  };
  std::vector<Pair> both;
  std::vector<Odd> missing, extra, reshaped;
  static std::vector<std::string> names(const std::vector<Odd>& odds);

  static Result<Fit> of(const Model& model, const std::vector<SavedTensor>& saved, const NameMap& names);
  // Of the saved ones, those of `both`.
  bool takes(const std::string& saved) const;
  // FAILED_PRECONDITION with all that does not fit; what is extra counts only where it is not to be ignored.
  Status check(const std::string& path, bool extra_is_wrong) const;
  // The same where nothing fits at all.
  Status check_any(const std::string& path) const;
};

}  // namespace dtg
