// Schedules: functions that add the nodes of a learning rate which follows the count of steps. `step` is an int64
// scalar, usually the global step. Formulas are those of tf.keras.optimizers.schedules. Results are float32 scalars.
// Called by the thread that builds the graph.
#pragma once

#include <span>

#include "nn/model.h"

namespace dtg {

// rate * factor^(step / every); with `staircase` the exponent is rounded down.
Result<Value> exponential_decay(Graph& graph, Value step, double rate, double every, double factor, bool staircase);
// From rate down to rate * floor along half a cosine over `steps`, then constant. The first `warmup` steps
// rise from 0 to rate in a line.
Result<Value> cosine_decay(Graph& graph, Value step, double rate, double steps, double floor, double warmup);
// values[i] while step <= boundaries[i], the last value after the last boundary.
Result<Value> piecewise_constant(Graph& graph, Value step, std::span<const int64_t> boundaries, std::span<const double> values);

}  // namespace dtg
