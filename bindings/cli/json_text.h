// JSON as text. Names of files may hold any bytes; those that are not UTF-8 are shown as U+FFFD, since JSON has no other way. Any thread.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace dtg::cli {

// In one line, or with each level indented by two spaces.
inline std::string one_line(const nlohmann::json& json) { return json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace); }
inline std::string lines(const nlohmann::json& json) { return json.dump(2, ' ', false, nlohmann::json::error_handler_t::replace); }

}  // namespace dtg::cli
