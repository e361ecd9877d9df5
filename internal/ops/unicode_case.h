// Upper and lower case of Unicode text by its full mappings: one letter may become several ("ß" becomes "SS"), and a capital sigma at
// the end of a word becomes the small one of word ends. Bytes that are no UTF-8 become U+FFFD. Pure functions; any thread.
#pragma once

#include <string>
#include <string_view>

namespace dtg::ops {

std::string lower_case(std::string_view text);
std::string upper_case(std::string_view text);

}  // namespace dtg::ops
