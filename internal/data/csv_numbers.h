// What a cell of a CSV file says as a number. Pure functions; any thread.
#pragma once

#include <cstdint>
#include <string_view>

namespace dtg {

// Whether the cell is a whole number that int64 holds.
bool parse_whole(std::string_view cell, int64_t& value);
// Whether it is a number. Those beyond double's range are numbers, too: too large ones infinite, too small ones zero.
bool parse_real(std::string_view cell, double& value);
// Whether it would be a number if its commas were what they are where decimals, or thousands, are written with them: 1,5 or 1,234.5.
bool is_number_with_comma(std::string_view cell);
// Whether the cell, which parse_real read as `value`, is finite as it is written, and not as float64, or as float32.
bool is_too_large(std::string_view cell, double value, bool as_double);

}  // namespace dtg
