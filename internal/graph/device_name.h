// DeviceName: "/job:J/replica:R/task:T/device:TYPE:ID" with every field optional. A value; parsing and
// merging are pure functions, any thread.
//
// Two grammars exist. What stands in a graph is read by parse(): strict, case-sensitive, '*' leaves a field
// open. What a program writes in a device scope is read by parse_spec(): lenient ("CPU:0", "/gpu"), and
// its text() is the form that then stands in the graph.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/status.h"

namespace dtg {

struct DeviceName {
  std::optional<std::string> job;
  std::optional<int> replica;
  std::optional<int> task;
  std::optional<std::string> type;
  // Wider than the others: a graph may name device 99999999999, and then hear that there is none.
  std::optional<int64_t> id;

  static Result<DeviceName> parse(std::string_view text);
  static Result<DeviceName> parse_spec(std::string_view text);
  // parse_spec() of what names devices and not a scope: "/job:" and "CPU:-1" can be read, but no device is called so. Scopes take them, as
  // TensorFlow's do; a scope further in may say better.
  static Result<DeviceName> parse_given(std::string_view text);

  // Canonical: fields in fixed order, legacy spellings gone, an open id of a known type as '*'.
  std::string text() const;
  bool empty() const { return !job && !replica && !task && !type && !id; }
  // Every field is there, so it names one device.
  bool is_full() const { return job && replica && task && type && id; }

  // Fields that `inner` has replace ours, one by one, as an inner device scope does to an outer one.
  void merge(const DeviceName& inner);
  // We say at least what `wider` says, and the same.
  bool specialises(const DeviceName& wider) const;
  // The device `full` is one that we ask for.
  bool matches(const DeviceName& full) const { return full.specialises(*this); }
  // What satisfies both; an error when they contradict each other in a field.
  static Result<DeviceName> intersect(const DeviceName& a, const DeviceName& b);
  // What soft placement does to a request: any device of the same task will do.
  void drop_type_and_id();

  bool operator==(const DeviceName&) const = default;
};

}  // namespace dtg
