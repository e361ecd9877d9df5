// Record: the values that a step, an epoch or a validation comes to, by name, in the order in which they were added. A value; the thread
// that trains.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace dtg {

class Record {
 public:
  void clear();
  void add(const std::string& name, double value);
  // The last value of a record that keeps its names; costs nothing.
  void set(size_t i, double value) { values_[i] = value; }
  // Null if there is none.
  const double* find(std::string_view name) const;
  size_t size() const { return values_.size(); }
  const std::string& name(size_t i) const { return names_[i]; }
  double value(size_t i) const { return values_[i]; }
  // "loss, accuracy", for messages.
  std::string list() const;

 private:
  std::vector<std::string> names_;
  std::vector<double> values_;
};

}  // namespace dtg
