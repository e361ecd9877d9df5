// Layers that are cut over the model axis of a mesh, in the step that is open. A value of a step is on the first device of its group; it is
// sent to the others where a layer needs it there, and what they make is added up or put together on the first one. The way back goes the
// other way: what is sent forward is added up there, and what is added up is sent.
//
//   column  Each device has some columns of a kernel and makes as many columns of the product, which stay where they are: for what is
//           element by element, and for a row layer behind it.
//   row     Each device has the rows that go with the columns it has of the input; the products are added up.
//
// A weight that is cut is a part of a whole of the name and shape that the plain layer has. Numbers need not divide: the first devices have
// one column, row or head more. On a model axis of 1 these are the plain layers.
// Functions over a mesh; the thread that builds.
#pragma once

#include <span>
#include <vector>

#include "nn/attention.h"
#include "nn/layers.h"
#include "strategy/mesh.h"

namespace dtg {

// One value per device of the model axis.
Result<std::vector<Value>> column_dense(Mesh& mesh, Value x, const DenseLayer& layer);
Result<Value> row_dense(Mesh& mesh, std::span<const Value> parts, const DenseLayer& layer);
// Parts put one behind the other along an axis, on the first device.
Result<Value> together(Mesh& mesh, std::span<const Value> parts, int32_t axis);

// How the table of an embedding is cut.
enum class TableCut : int32_t {
  rows,     // each id is looked up on the device that has its row
  columns,  // each device has a piece of every row
};
Result<Value> parallel_embedding(Mesh& mesh, Value ids, const EmbeddingLayer& layer, TableCut by);

// Each device has some of the heads.
Result<Value> parallel_attention(Mesh& mesh, Value query, Value value, Value key, const AttentionLayer& layer);

}  // namespace dtg
