// Keeps names and values side by side. See record.h for threads.
#include "train/record.h"

#include <algorithm>

namespace dtg {

void Record::clear() {
  names_.clear();
  values_.clear();
}

void Record::add(const std::string& name, double value) {
  names_.push_back(name);
  values_.push_back(value);
}

const double* Record::find(std::string_view name) const {
  const auto at = std::ranges::find(names_, name);
  return at == names_.end() ? nullptr : &values_[static_cast<size_t>(at - names_.begin())];
}

std::string Record::list() const {
  std::string text;
  for (const std::string& each : names_) text += (text.empty() ? "" : ", ") + each;
  return text;
}

}  // namespace dtg
