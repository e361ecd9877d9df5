// Schedules: functions that add the nodes of a learning rate which follows the count of steps. `step` is an int64
// scalar, usually the global step. Formulas are those of tf.keras.optimizers.schedules. Results are float32 scalars.
// Called by the thread that builds the graph.
#pragma once

#include <span>
#include <vector>

#include "nn/model.h"

namespace dtg {

// A rate that is this number wherever a run does not feed another one.
Result<Value> adjustable_rate(Graph& graph, double rate);
// rate * factor^(step / every); with `staircase` the exponent is rounded down.
Result<Value> exponential_decay(Graph& graph, Value step, double rate, double every, double factor, bool staircase);
// From rate down to rate * floor along half a cosine over `steps`, then constant. The first `warmup` steps
// rise from 0 to rate in a line.
Result<Value> cosine_decay(Graph& graph, Value step, double rate, double steps, double floor, double warmup);
// values[i] while step <= boundaries[i], the last value after the last boundary.
Result<Value> piecewise_constant(Graph& graph, Value step, std::span<const int64_t> boundaries, std::span<const double> values);

// Keras' schedules under Keras' names; which numbers count stands beside each kind in dtg/optimizers.h.
struct Schedule {
  enum class Kind : int32_t {
    exponential_decay,
    inverse_time_decay,
    polynomial_decay,
    piecewise_constant,
    cosine_decay,
    cosine_decay_restarts
  };
  Kind kind = Kind::exponential_decay;
  bool staircase = false;
  bool cycle = false;
  bool warms_up = false;
  double rate = 0;
  double steps = 0;
  double decay_rate = 0;
  double end_rate = 0;
  double power = 1;
  double alpha = 0;
  double warmup_target = 0;
  double warmup_steps = 0;
  double t_mul = 2;
  double m_mul = 1;
  std::vector<int64_t> boundaries = {};
  std::vector<double> values = {};
};
Result<Value> add_schedule(Graph& graph, Value step, const Schedule& schedule);

}  // namespace dtg
