// Parses and merges device names. The strict grammar is a chain of prefixes that may repeat (the last one wins); the
// lenient one splits at '/' and ':'. Pure functions; any thread.
#include "graph/device_name.h"

#include <array>
#include <limits>

namespace dtg {
namespace {

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_space(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

Status malformed(std::string_view text, const char* why) {
  return invalid_argument("read the device name \"%.*s\": %s; the form is \"/job:NAME/replica:N/task:N/device:TYPE:N\", "
                          "each part optional",
                          int(text.size()), text.data(), why);
}

bool take_prefix(std::string_view& rest, std::string_view prefix) {
  if (!rest.starts_with(prefix)) return false;
  rest.remove_prefix(prefix.size());
  return true;
}

// A letter, then letters, digits and underscores.
bool take_word(std::string_view& rest, std::optional<std::string>& word) {
  if (rest.empty() || !is_letter(rest[0])) return false;
  size_t end = 1;
  while (end < rest.size() && (is_letter(rest[end]) || is_digit(rest[end]) || rest[end] == '_')) ++end;
  word = std::string(rest.substr(0, end));
  rest.remove_prefix(end);
  return true;
}

template <class Int>
bool take_number(std::string_view& rest, std::optional<Int>& number) {
  if (rest.empty() || !is_digit(rest[0])) return false;
  constexpr Int limit = std::numeric_limits<Int>::max();
  Int value = 0;
  while (!rest.empty() && is_digit(rest[0])) {
    const Int digit = static_cast<Int>(rest[0] - '0');
    if (value > (limit - digit) / 10) return false;
    value = static_cast<Int>(value * 10 + digit);
    rest.remove_prefix(1);
  }
  number = value;
  return true;
}

bool take_word_or_star(std::string_view& rest, std::optional<std::string>& word) {
  word.reset();
  return take_prefix(rest, "*") || take_word(rest, word);
}

template <class Int>
bool take_number_or_star(std::string_view& rest, std::optional<Int>& number) {
  number.reset();
  return take_prefix(rest, "*") || take_number(rest, number);
}

// A whole field of the lenient grammar: blanks around it and a sign are allowed.
template <class Int>
bool read_number(std::string_view field, std::optional<Int>& number) {
  while (!field.empty() && is_space(field.front())) field.remove_prefix(1);
  while (!field.empty() && is_space(field.back())) field.remove_suffix(1);
  const bool negative = take_prefix(field, "-");
  if (!negative) take_prefix(field, "+");
  if (!take_number(field, number) || !field.empty()) return false;
  if (negative) number = static_cast<Int>(-*number);
  return true;
}

// Splits into at most parts.size() pieces; the number of pieces, or one more than fits.
size_t split(std::string_view text, char separator, std::array<std::string_view, 3>& parts) {
  size_t count = 0;
  while (true) {
    const size_t end = text.find(separator);
    if (count == parts.size()) return count + 1;
    parts[count++] = text.substr(0, end);
    if (end == std::string_view::npos) return count;
    text.remove_prefix(end + 1);
  }
}

std::string upper(std::string_view word) {
  std::string result(word);
  for (char& c : result) {
    if (c >= 'a' && c <= 'z') c = static_cast<char>(c - 'a' + 'A');
  }
  return result;
}

// Types that may stand alone, without "device:" before them.
bool is_short_type(const std::string& type) { return type == "CPU" || type == "GPU" || type == "TPU" || type == "CUSTOM"; }

// One part of a lenient name, "task:1" for example, already cut at ':'. Null when understood.
const char* read_part(DeviceName& name, const std::array<std::string_view, 3>& part, size_t count) {
  if (count == 1 && part[0].empty()) return nullptr;
  if (count == 2 && part[0] == "job") {
    name.job = std::string(part[1]);
    return nullptr;
  }
  if (count == 2 && part[0] == "replica") return read_number(part[1], name.replica) ? nullptr : "bad replica number";
  if (count == 2 && part[0] == "task") return read_number(part[1], name.task) ? nullptr : "bad task number";
  const bool is_short = count <= 2 && is_short_type(upper(part[0]));
  if (!is_short && !(count == 3 && part[0] == "device")) return "unknown part";
  if (name.type) return "more than one device type";
  const std::string_view type = is_short ? part[0] : part[1];
  name.type = is_short || type == "cpu" || type == "gpu" ? upper(type) : std::string(type);
  if (count == 1 || part[count - 1] == "*") return nullptr;
  return read_number(part[count - 1], name.id) ? nullptr : "bad device number";
}

// Keeps the value both agree on, or the only one. False when they differ.
template <class T>
bool meet(std::optional<T>& into, const std::optional<T>& other) {
  if (!other) return true;
  if (into && *into != *other) return false;
  into = other;
  return true;
}

template <class T>
bool says(const std::optional<T>& own, const std::optional<T>& asked) {
  return !asked || own == asked;
}

}  // namespace

Result<DeviceName> DeviceName::parse(std::string_view text) {
  DeviceName name;
  if (text == "/") return name;
  std::string_view rest = text;
  while (!rest.empty()) {
    if (take_prefix(rest, "/job:")) {
      if (!take_word_or_star(rest, name.job)) return malformed(text, "a job is a letter, then letters, digits and '_'");
    } else if (take_prefix(rest, "/replica:")) {
      if (!take_number_or_star(rest, name.replica)) return malformed(text, "a replica is a number");
    } else if (take_prefix(rest, "/task:")) {
      if (!take_number_or_star(rest, name.task)) return malformed(text, "a task is a number");
    } else if (take_prefix(rest, "/device:")) {
      if (!take_word_or_star(rest, name.type)) return malformed(text, "a device type is a word");
      name.id.reset();
      if (take_prefix(rest, ":") && !take_number_or_star(rest, name.id)) {
        return malformed(text, "a device id is a number");
      }
    } else if (take_prefix(rest, "/cpu:") || take_prefix(rest, "/CPU:")) {
      name.type = "CPU";
      if (!take_number_or_star(rest, name.id)) return malformed(text, "a device id is a number");
    } else if (take_prefix(rest, "/gpu:") || take_prefix(rest, "/GPU:")) {
      name.type = "GPU";
      if (!take_number_or_star(rest, name.id)) return malformed(text, "a device id is a number");
    } else {
      return malformed(text, "unknown part");
    }
  }
  return name;
}

Result<DeviceName> DeviceName::parse_spec(std::string_view text) {
  DeviceName name;
  std::string_view rest = text;
  while (true) {
    const size_t end = rest.find('/');
    std::array<std::string_view, 3> part;
    const size_t count = split(rest.substr(0, end), ':', part);
    const char* why = count > part.size() ? "unknown part" : read_part(name, part, count);
    if (why) return malformed(text, why);
    if (end == std::string_view::npos) return name;
    rest.remove_prefix(end + 1);
  }
}

Result<DeviceName> DeviceName::parse_given(std::string_view text) {
  DTG_ASSIGN(DeviceName name, parse_spec(text));
  if (name.job && name.job->empty()) return malformed(text, "the job has no name");
  if (name.replica.value_or(0) < 0 || name.task.value_or(0) < 0 || name.id.value_or(0) < 0) return malformed(text, "a number is below 0");
  if (!parse(name.text()).ok()) return malformed(text, "a job or a type is a letter, then letters, digits and '_'");
  return name;
}

std::string DeviceName::text() const {
  std::string result;
  if (job) result += "/job:" + *job;
  if (replica) result += "/replica:" + std::to_string(*replica);
  if (task) result += "/task:" + std::to_string(*task);
  if (type || id) result += "/device:" + type.value_or("*") + ":" + (id ? std::to_string(*id) : "*");
  return result;
}

void DeviceName::merge(const DeviceName& inner) {
  if (inner.job) job = inner.job;
  if (inner.replica) replica = inner.replica;
  if (inner.task) task = inner.task;
  if (inner.type) type = inner.type;
  if (inner.id) id = inner.id;
}

bool DeviceName::specialises(const DeviceName& wider) const {
  return says(job, wider.job) && says(replica, wider.replica) && says(task, wider.task) && says(type, wider.type) && says(id, wider.id);
}

Result<DeviceName> DeviceName::intersect(const DeviceName& a, const DeviceName& b) {
  DeviceName both = a;
  const char* field = nullptr;
  if (!meet(both.job, b.job)) field = "job";
  if (!meet(both.replica, b.replica)) field = "replica";
  if (!meet(both.task, b.task)) field = "task";
  if (!meet(both.type, b.type)) field = "device type";
  if (!meet(both.id, b.id)) field = "device id";
  if (!field) return both;
  return invalid_argument("no device is both \"%s\" and \"%s\": they name a different %s", a.text().c_str(), b.text().c_str(), field);
}

void DeviceName::drop_type_and_id() {
  type.reset();
  id.reset();
}

}  // namespace dtg
