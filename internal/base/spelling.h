// Spelling: which of the known names somebody may have meant, for "did you mean". Pure; any thread.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace dtg {

// How many letters must be added, left out, changed or put in the place of the next to make one of the other.
size_t edit_distance(std::string_view a, std::string_view b);

// From how many on two names have nothing to do with each other: a name of three letters is not most others of three letters.
size_t alike_below(std::string_view name);

// The names for a message, the nearest first where one is near: `did you mean "kind"? there are kind, size`. At most twelve of them.
std::string names_text(std::string_view meant, std::span<const std::string_view> names);

}  // namespace dtg
