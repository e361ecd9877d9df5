// Losses and metrics: functions that add the nodes of a scalar: one that training makes small, or one for people to
// look at. Means are over the whole batch of the graph; dividing by the number of workers is left to strategy/. Called
// by the thread that builds the graph.
#pragma once

#include "nn/model.h"

namespace dtg {

// Mean over the rows of -log softmax(logits)[label]; logits [batch, classes], labels int32 or int64 [batch] or [batch, 1].
Result<Value> sparse_softmax_cross_entropy(Graph& graph, Value labels, Value logits);
// The same for labels that are distributions [batch, classes].
Result<Value> softmax_cross_entropy(Graph& graph, Value labels, Value logits);
// Mean over all elements of -z log sigmoid(x) - (1 - z) log(1 - sigmoid(x)); labels z like logits x.
Result<Value> sigmoid_cross_entropy(Graph& graph, Value labels, Value logits);
// Mean of (labels - predictions)^2 over all elements.
Result<Value> mean_squared_error(Graph& graph, Value labels, Value predictions);

// The share of rows whose greatest logit is at the label, float32. Labels int32 or int64 [batch].
Result<Value> accuracy(Graph& graph, Value labels, Value logits);
// How many they are, int64; for accuracy over several batches.
Result<Value> correct_count(Graph& graph, Value labels, Value logits);

}  // namespace dtg
