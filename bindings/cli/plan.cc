// Everything that a graph is for, planned on a session of this process. Placeholders are fed as they were declared.
#include "plan.h"

#include <algorithm>
#include <deque>
#include <nlohmann/json.hpp>
#include <string_view>
#include <vector>

#include "console.h"
#include "json_text.h"

namespace dtg::cli {
namespace {

using nlohmann::json;

constexpr int32_t kMostDims = 32;

// What the run would be fed: one entry per placeholder.
struct Feeds {
  bool open = false;  // some dimension was taken as what --dim says
  std::vector<dtg_value> values;
  std::vector<dtg_dtype> dtypes;
  std::deque<std::vector<int64_t>> shapes;  // where `dims` points
  std::vector<const int64_t*> dims;
  std::vector<size_t> ranks;
};

dtg_error* add_placeholder(const dtg_graph* graph, dtg_value value, int64_t open, Feeds* feeds) {
  const char* op = "";
  size_t length = 0;
  if (dtg_error* error = dtg_value_op(graph, value, &op, &length)) return error;
  if (std::string_view(op, length) != "Placeholder") return nullptr;
  dtg_dtype dtype = 0;
  int64_t dims[kMostDims];
  int32_t rank = -1;
  if (dtg_error* error = dtg_value_dtype(graph, value, &dtype)) return error;
  if (dtg_error* error = dtg_value_shape(graph, value, dims, kMostDims, &rank)) return error;
  // One of unknown rank is fed a scalar.
  std::vector<int64_t>& shape = feeds->shapes.emplace_back(dims, dims + std::clamp(rank, 0, kMostDims));
  for (int64_t& dim : shape) {
    if (dim >= 0) continue;
    dim = open;
    feeds->open = true;
  }
  feeds->values.push_back(value);
  feeds->dtypes.push_back(dtype);
  feeds->dims.push_back(shape.data());
  feeds->ranks.push_back(shape.size());
  return nullptr;
}

dtg_error* find_feeds(const dtg_graph* graph, int64_t open, Feeds* feeds) {
  const size_t count = dtg_graph_node_count(graph);
  for (size_t i = 0; i < count; i++) {
    dtg_value value;
    if (dtg_error* error = dtg_graph_node_at(graph, i, &value)) return error;
    if (dtg_error* error = add_placeholder(graph, value, open, feeds)) return error;
  }
  return nullptr;
}

dtg_error* ask(dtg_graph* graph, const PlanWish& wish, Owned<dtg_string>* out, Feeds& feeds) {
  if (dtg_error* error = find_feeds(graph, wish.dim, &feeds)) return error;
  dtg_session_options options = DTG_SESSION_OPTIONS_INIT;
  options.cpu_devices = static_cast<int32_t>(wish.devices);
  options.soft_placement = 1;  // the graph may have been made for other devices
  dtg_session* made = nullptr;
  if (dtg_error* error = dtg_session_connect(nullptr, "local", DTG_STRLEN, graph, &options, &made)) return error;
  const Owned<dtg_session> session(made);
  dtg_plan_args args = DTG_PLAN_ARGS_INIT;
  args.feeds = feeds.values.data();
  args.feed_dtypes = feeds.dtypes.data();
  args.feed_dims = feeds.dims.data();
  args.feed_ranks = feeds.ranks.data();
  args.num_feeds = feeds.values.size();
  args.pass = wish.pass.empty() ? nullptr : wish.pass.c_str();
  dtg_string* text = nullptr;
  dtg_error* error = dtg_session_plan_text(session.get(), &args, &text);
  out->reset(text);
  return error;
}

// The pages of a text: a line "== NAME" begins one. A text of one page is the page that was asked for.
json pages_of(std::string_view text, const std::string& wanted) {
  json pages = json::array();
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    const std::string line(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
    const bool heading = line.rfind("== ", 0) == 0;
    if (heading || pages.empty()) pages.push_back({{"pass", heading ? line.substr(3) : wanted}, {"text", json::array()}});
    if (!heading) pages.back()["text"].push_back(line);
  }
  return pages;
}

std::string painted(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size() - 1) + 1;
    const std::string_view line = text.substr(0, end);
    out += line.rfind("== ", 0) == 0 ? paint(Color::bold, line.substr(0, end - 1)) + "\n" : std::string(line);
    text.remove_prefix(end);
  }
  return out;
}

// --pass names none; the message lists those that there are.
bool is_no_pass(const dtg_error* error) {
  return std::string_view(dtg_error_message(error, nullptr)).find("there is no pass") != std::string_view::npos;
}

// What to do about an error, where the message does not say it.
std::string next_step(const dtg_error* error, const PlanWish& wish, const Feeds& feeds) {
  const std::string_view message = dtg_error_message(error, nullptr);
  if (is_no_pass(error)) return {};
  if (message.find("no device matches") != std::string_view::npos)
    return "it is planned as a local session would; graphs for the tasks of a cluster are planned by a session of theirs";
  if (message.find("nothing is asked for") != std::string_view::npos)
    return "no node of the graph has an effect or a value that nobody takes";
  if (!feeds.open) return {};
  return "open dimensions of placeholders were taken as " + std::to_string(wish.dim) + "; --dim N says otherwise";
}

}  // namespace

int show_plan(dtg_graph* graph, const PlanWish& wish) {
  Owned<dtg_string> text;
  Feeds feeds;
  if (dtg_error* error = ask(graph, wish, &text, feeds)) {
    const std::string next = next_step(error, wish, feeds);
    return is_no_pass(error) ? report_on_words(error, wish.as_json, next) : report(error, wish.as_json, next);
  }
  const json object = {{"file", wish.file}, {"passes", pages_of(view(text.get()), wish.pass)}};
  return print(wish.as_json ? lines(object) + "\n" : painted(view(text.get()))) ? kOk : kFailed;
}

}  // namespace dtg::cli
