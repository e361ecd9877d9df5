// What the classes are called that a model tells apart: kept among the texts of its file, so that whoever loads it has words for its
// numbers. Pure; any thread.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "checkpoint/safetensors.h"
#include "graph/graph.h"

namespace dtg {

// The keys among those texts: names as a JSON list, of all outputs or of one, and the schema of the data trained on, whose label has some.
inline constexpr const char* kClassesKey = "classes";
inline constexpr const char* kSchemaKey = "schema";
inline std::string classes_key(std::string_view output) { return output.empty() ? kClassesKey : kClassesKey + ("/" + std::string(output)); }

// INVALID_ARGUMENT for names that are none.
Result<std::string> class_list(const std::vector<std::string>& names);

// INVALID_ARGUMENT where that output, by its name, has names of its own among the texts which are not as many as it tells apart.
Status check_classes(const TextPairs& texts, const std::string& output, const ValueInfo& info);

// Where an output that is none of these has names of its own among the texts: that, with the outputs there are. Else "".
std::string unknown_classes(const TextPairs& texts, const std::vector<std::string_view>& outputs);

// Those of an output, by its name and by what the graph knows of it; empty: nobody has named them. Names of all outputs are of those that
// have a number for each, or are numbers of classes themselves.
std::vector<std::string> class_names(const TextPairs& texts, std::string_view output, const ValueInfo* info);

}  // namespace dtg
