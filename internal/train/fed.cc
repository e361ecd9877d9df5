// What is looked at before anything is fed: whether data fit the feeds, whether an element is one of equally many examples, and, where the
// loss would not tell of it, whether its numbers are some. See trainer.h for threads.
#include <algorithm>

#include "base/json.h"
#include "data/csv.h"
#include "graph/function.h"
#include "session/first_ill.h"
#include "train/finite.h"
#include "train/trainer.h"

namespace dtg {
namespace {

bool agree(const PartialShape& a, const PartialShape& b) {
  if (!a.has_rank() || !b.has_rank()) return true;
  if (a.rank() != b.rank()) return false;
  for (int i = 0; i < a.rank(); ++i) {
    if (a.dim(i) >= 0 && b.dim(i) >= 0 && a.dim(i) != b.dim(i)) return false;
  }
  return true;
}

std::string names_of(const std::vector<std::string>& columns) {
  std::string names;
  for (size_t i = 0; i < columns.size() && i < 12; ++i) names += (i > 0 ? ", " : "") + quoted(columns[i], 60);
  return names + (columns.size() > 12 ? ", ..." : "");
}

// Of a table that was read without a label, where it happens to have as many columns as are fed; empty: it is none.
std::string apart_advice(const Reading& data) {
  const std::vector<std::string> columns = columns_apart(data.schema());
  if (columns.empty() || columns.size() != data.data().spec().size()) return "";
  return format(
      "the table was read without a label, so each of its %zu columns, %s, is a component of its own: name the column of the label by the "
      "option `label`, or read by the schema of training, and the others are one component of float32",
      columns.size(), names_of(columns).c_str());
}

// What to do about a component of another shape than its feed.
std::string shape_advice(const Reading& data, const PartialShape& has, const PartialShape& fed, size_t component) {
  if (std::string apart = apart_advice(data); !apart.empty()) return apart;
  if (has.rank() + 1 == fed.rank() && data.data().batch_rank() == 0) return "a batch has one dimension more: add batch() to the data set";
  if (has.rank() + 1 == fed.rank() && component > 0 && fed.dim(fed.rank() - 1) == 1)
    return "it has one number for each example: leave the last dimension of 1 out of the placeholder";
  if (has.rank() == fed.rank() + 1 && data.data().batch_rank() > 1)
    return "the data set is batched twice, its stages are " + data.text() + ": leave one of the batches out";
  const std::vector<std::string> features = component == 0 ? feature_names(data.schema()) : std::vector<std::string>();
  if (features.empty()) return "make the placeholder of the shape of the data, or read other data";
  return format(
      "its features are the %zu columns %s: read the columns that the model is made for, by the option `columns` or by the schema "
      "of training, or make the model for these",
      features.size(), names_of(features).c_str());
}

}  // namespace

Status Trainer::check_data(const Reading& data, const char* what, size_t needed) const {
  const std::vector<ComponentSpec>& spec = data.data().spec();
  if (spec.size() != feed_count() && spec.size() != needed) {
    const char* advice = "";
    if (spec.size() > needed)
      advice = "; a table read without a label has a component for each column: name it, or read by the schema of training";
    else if (!data.schema().empty())
      advice =
          "; features alone come from a table that lacks the column of the label, as one to be predicted does: read one that has it, and "
          "name it by the option `label` or by the schema";
    return invalid_argument("%s: an element of the data set has %zu components, and %zu values are fed%s", what, spec.size(), needed,
                            advice);
  }
  const Graph& graph = model_->graph();
  for (size_t i = 0; i < needed; ++i) {
    const ValueInfo& info = graph.info(options_.feeds[i]);
    if (spec[i].dtype != info.dtype) {
      // Of the right shape it is one column that is meant.
      const std::string apart = agree(spec[i].shape, info.shape) ? "" : apart_advice(data);
      return invalid_argument("%s: component %zu of the data set is %s, and \"%s\" which it is fed to is %s; %s", what, i,
                              dtype_name(spec[i].dtype), graph.value_name(options_.feeds[i]).c_str(), dtype_name(info.dtype),
                              !apart.empty()                ? apart.c_str()
                              : info.dtype == DType::string ? "data sets give no texts: feed what looks the texts up, its numbers"
                                                            : "cast or scale the data set");
    }
    if (agree(spec[i].shape, info.shape)) continue;
    return invalid_argument("%s: component %zu of the data set is %s%s, and \"%s\" which it is fed to is %s%s; %s", what, i,
                            dtype_name(spec[i].dtype), spec[i].shape.text().c_str(), graph.value_name(options_.feeds[i]).c_str(),
                            dtype_name(info.dtype), info.shape.text().c_str(), shape_advice(data, spec[i].shape, info.shape, i).c_str());
  }
  return {};
}

// Placeholders of any number of examples get equally many: a loss would broadcast the only label of a batch.
Status Trainer::check_element(std::span<const Tensor> element, const char* what) const {
  const Graph& graph = model_->graph();
  const Tensor* first = nullptr;
  for (size_t i = 0; i < element.size(); ++i) {
    const PartialShape& shape = graph.info(options_.feeds[i]).shape;
    if (!shape.has_rank() || shape.rank() == 0 || shape.dim(0) >= 0 || element[i].shape().rank() == 0) continue;
    if (!first) first = &element[i];
    if (first->shape().dim(0) == element[i].shape().dim(0)) continue;
    return invalid_argument("%s: \"%s\" is fed %s and \"%s\" %s; they are one batch, so both have as many rows", what,
                            graph.value_name(options_.feeds[static_cast<size_t>(first - element.data())]).c_str(), first->text().c_str(),
                            graph.value_name(options_.feeds[i]).c_str(), element[i].text().c_str());
  }
  return {};
}

namespace {

bool has_max_pool(const Graph& graph) {
  for (NodeId id = 0; id < graph.node_count(); ++id) {
    const Node& node = graph.node(id);
    bool has = node.op->name().starts_with("MaxPool");
    for_each_function(node, [&](const Function& function) { has = has || has_max_pool(function.graph()); });
    if (has) return true;
  }
  return false;
}

}  // namespace

// As TensorFlow's on a CPU the maximum of a window is that of its numbers, and so is the loss, while gradients are not.
bool Trainer::hides_nan() const { return has_max_pool(model_->graph()); }

Status Trainer::check_fed_numbers(std::span<const Tensor> element) const {
  for (size_t i = 0; i < element.size(); ++i) {
    if (is_finite(element[i])) continue;
    return invalid_argument(
        "make a step: \"%s\" is fed %s; maximum pooling passes over what is no number, so the loss would be one, but the "
        "gradients not, and then no weight; mend the data, or drop such rows",
        model_->graph().value_name(options_.feeds[i]).c_str(), not_finite(element[i]).c_str());
  }
  return {};
}

bool Trainer::learns_labels() const {
  return std::any_of(options_.feeds.begin() + static_cast<std::ptrdiff_t>(options_.inputs), options_.feeds.end(), [&](Value feed) {
    return dtype_is_integer(model_->graph().info(feed).dtype) && depends_on(model_->graph(), options_.loss, feed);
  });
}

}  // namespace dtg
