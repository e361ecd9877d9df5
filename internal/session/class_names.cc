// Names of classes, from the texts of a model. See class_names.h.
#include "session/class_names.h"

#include <algorithm>
#include <unordered_set>

#include "base/spelling.h"
#include "data/csv.h"

namespace dtg {
namespace {

const std::string* text_of(const TextPairs& texts, std::string_view key) {
  const auto at = std::ranges::find(texts, key, [](const auto& pair) -> std::string_view { return pair.first; });
  return at != texts.end() ? &at->second : nullptr;
}

// Empty for what is no list of texts: other programs may have meant something else by the key.
std::vector<std::string> read_list(const std::string& text) {
  const auto json = parse_json(text, "names of classes", {.bytes_max = size_t{1} << 28, .values_max = size_t{1} << 24});
  const Json::Array* const items = json.ok() ? json.value().array() : nullptr;
  std::vector<std::string> names;
  for (size_t i = 0; items && i < items->size(); ++i) {
    const std::string* const name = (*items)[i].string();
    if (!name) return {};
    names.push_back(*name);
  }
  return names;
}

// Whether so many classes are what an output tells apart: scores, one for each, or one for the second of two; or the number of one.
bool tells_apart(const ValueInfo& info, size_t classes) {
  if (info.dtype == DType::boolean) return classes == 2;
  if (dtype_is_integer(info.dtype)) return true;
  if (!dtype_is_floating(info.dtype)) return false;
  if (!info.shape.has_rank()) return true;
  const int rank = info.shape.rank();
  const int64_t last = rank > 0 ? info.shape.dim(rank - 1) : 1;
  return last == static_cast<int64_t>(classes) || (rank > 1 && last < 0) || (classes == 2 && (rank < 2 || last == 1));
}

}  // namespace

Result<std::string> class_list(const std::vector<std::string>& names) {
  if (names.empty()) return invalid_argument("name classes: no names; give one for each class, in the order of their numbers");
  std::unordered_set<std::string_view> seen;
  for (size_t i = 0; i < names.size(); ++i) {
    if (!is_utf8(names[i])) return invalid_argument("name classes: name %zu is not UTF-8", i);
    if (!seen.insert(names[i]).second) return invalid_argument("name classes: \"%.100s\" is there twice", names[i].c_str());
  }
  return Json(Json::Array(names.begin(), names.end())).text();
}

Status check_classes(const TextPairs& texts, const std::string& output, const ValueInfo& info) {
  const std::string* const own = output.empty() ? nullptr : text_of(texts, classes_key(output));
  const size_t count = own ? read_list(*own).size() : 0;
  if (count == 0 || tells_apart(info, count)) return {};
  return invalid_argument("name classes: %zu names for the output \"%s\", which is %s%s; give one name for each class that it tells apart",
                          count, output.c_str(), dtype_name(info.dtype), info.shape.text().c_str());
}

std::string unknown_classes(const TextPairs& texts, const std::vector<std::string_view>& outputs) {
  const std::string mark = classes_key("") + "/";
  for (const auto& [key, value] : texts) {
    if (!key.starts_with(mark) || read_list(value).empty()) continue;
    const std::string_view output = std::string_view(key).substr(mark.size());
    if (std::ranges::find(outputs, output) != outputs.end()) continue;
    return "there are names of classes for an output \"" + std::string(output.substr(0, 200)) +
           "\", which is none of the model's: " + names_text(output, outputs);
  }
  return "";
}

std::vector<std::string> class_names(const TextPairs& texts, std::string_view output, const ValueInfo* info) {
  if (const std::string* const own = output.empty() ? nullptr : text_of(texts, classes_key(output))) return read_list(*own);
  std::vector<std::string> names;
  if (const std::string* const all = text_of(texts, kClassesKey)) names = read_list(*all);
  else if (const std::string* const schema = text_of(texts, kSchemaKey)) names = label_names(*schema);
  if (info && !tells_apart(*info, names.size())) names.clear();
  return names;
}

}  // namespace dtg
