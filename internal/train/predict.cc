// Predicting: the outputs of each element, then all of them one below the other. See trainer.h for threads.
#include <algorithm>
#include <cstring>

#include "train/trainer.h"

namespace dtg {
namespace {

// Batches of one output, which may differ in their number of rows only.
Result<Tensor> join(const std::vector<std::vector<Tensor>>& batches, size_t output, std::span<const int64_t> rows, MemoryBudget* budget) {
  const Tensor& first = batches[0][output];
  if (first.dtype() == DType::string) return unimplemented("predict: output %zu is a string; fetch it batch by batch", output);
  if (first.shape().rank() == 0) {
    return invalid_argument("predict: output %zu is a scalar; an output has a row for each example", output);
  }
  std::vector<int64_t> dims(first.shape().dims().begin(), first.shape().dims().end());
  dims[0] = 0;
  for (size_t i = 0; i < batches.size(); ++i) {
    const Tensor& each = batches[i][output];
    if (each.shape().rank() != first.shape().rank() || !std::equal(dims.begin() + 1, dims.end(), each.shape().dims().begin() + 1)) {
      return invalid_argument("predict: output %zu is %s for one batch and %s for another; they cannot be put together", output,
                              first.text().c_str(), each.text().c_str());
    }
    if (each.shape().dim(0) != rows[i]) {
      return invalid_argument("predict: output %zu is %s for a batch of %lld examples; an output has a row for each example", output,
                              each.text().c_str(), static_cast<long long>(rows[i]));
    }
    dims[0] += rows[i];
  }
  DTG_ASSIGN(const Shape shape, Shape::make(dims));
  // Only asked: who keeps the tensor keeps the books.
  const int64_t bytes = shape.count() * dtype_size(first.dtype());
  DTG_TRY(budget->reserve(bytes, "predictions"));
  budget->release(bytes);
  DTG_ASSIGN(Tensor all, Tensor::allocate(first.dtype(), shape));
  char* at = all.as<char>();
  for (const auto& batch : batches) {
    const size_t size = static_cast<size_t>(batch[output].bytes());
    if (size > 0) std::memcpy(at, batch[output].data(), size);
    at += size;
  }
  return all;
}

}  // namespace

std::vector<Endpoint> Trainer::endpoints() const {
  std::vector<Endpoint> all;
  const Graph& graph = model_->graph();
  for (size_t i = 0; i < options_.inputs; ++i) {
    const Value value = options_.feeds[i];
    const bool named = i < options_.input_names.size();
    all.push_back({named ? options_.input_names[i] : std::string(graph.node(value.node()).name), value, true});
  }
  for (size_t i = 0; i < options_.outputs.size(); ++i) {
    const bool named = i < options_.output_names.size();
    const std::string plain = i == 0 ? "output" : "output_" + std::to_string(i);
    all.push_back({named ? options_.output_names[i] : plain, options_.outputs[i], false});
  }
  return all;
}

Result<ModelExport> Trainer::exported() const {
  if (options_.outputs.empty())
    return failed_precondition(
        "export a model: the trainer was made without outputs; set `outputs` where it is made, to what the model is to answer");
  ModelExport what;
  what.endpoints = endpoints();
  if (options_.training.valid()) what.fixed.emplace_back(options_.training, no_);
  DTG_TRY(check_export(*model_, what));
  return what;
}

Result<std::vector<Tensor>> Trainer::predict(Reading& data, Cancellation* cancellation) {
  if (options_.outputs.empty())
    return failed_precondition("predict: the trainer was made without outputs; set `outputs` where it is made, to what is to be predicted");
  DTG_TRY(check_data(data, "predict", input_count()));
  if (data.data().cardinality() == Dataset::kInfinite) return invalid_argument("predict: the data set is endless; take() a part of it");
  DTG_TRY(prepare());
  DTG_TRY(begin_epoch(data));
  std::vector<std::vector<Tensor>> batches;
  std::vector<int64_t> rows;
  // Of one that ended early.
  predict_.fetched.assign(output_count(), Tensor());
  while (true) {
    DTG_ASSIGN(const bool more, data.next(element_));
    if (!more) break;
    DTG_TRY(run(predict_, element_, input_count(), cancellation, "predict"));
    batches.push_back(predict_.fetched);
    rows.push_back(rows_of(element_));
    predict_.fetched.assign(output_count(), Tensor());
  }
  element_.clear();
  if (batches.empty()) return data.no_elements("predict");
  std::vector<Tensor> joined;
  for (size_t i = 0; i < output_count(); ++i) {
    DTG_ASSIGN(Tensor all, join(batches, i, rows, session().runtime().seams().budget));
    joined.push_back(std::move(all));
  }
  return joined;
}

}  // namespace dtg
