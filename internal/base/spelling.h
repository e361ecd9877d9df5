// Spelling: which of the known names somebody may have meant, for "did you mean". Pure; any thread.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace dtg {

// How many letters must be added, left out, changed or put in the place of the next to make one of the other.
size_t edit_distance(std::string_view a, std::string_view b);

// From how many on two names have nothing to do with each other: a name of three letters is not most others of three letters.
size_t alike_below(std::string_view name);

// The names for a message, the nearest first where one is near: `did you mean "kind"? there are kind, size`. At most twelve of them.
std::string names_text(std::string_view meant, std::span<const std::string_view> names);

// The same of things that have a name, which is a member of theirs: names_text("kernl", model.variables(), &NamedVariable::name).
template <class Things, class Name>
std::string names_text(std::string_view meant, const Things& things, Name name) {
  std::vector<std::string_view> names;
  for (const auto& each : things) names.push_back(std::invoke(name, each));
  return names_text(meant, names);
}

}  // namespace dtg
