// See exact.h: of a cell the digits are looked at, as 1e10 was rounded by whoever wrote it.
#include "data/exact.h"

#include "data/csv_numbers.h"

namespace dtg {

bool is_rounded(std::string_view cell, double value, bool as_double) {
  if (!(std::abs(value) > (as_double ? 0x1p53 : 0x1p24))) return false;
  if (int64_t whole = 0; parse_whole(cell, whole)) return !is_exact(whole, as_double);
  if (cell.starts_with('+') || cell.starts_with('-')) cell.remove_prefix(1);
  return !cell.empty() && cell.find_first_not_of("0123456789") == cell.npos;
}

}  // namespace dtg
