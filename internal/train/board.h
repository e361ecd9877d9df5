// Board: what TensorBoard shows of a fit, written as it goes on: tensorboard/train and tensorboard/validation below the run directory, with
// Keras' names ("epoch_loss", "batch_loss", "epoch_learning_rate"). The axis is the number of steps in both, so that a training which went
// on from a checkpoint can say from where on readers are to drop what an earlier process had written.
//
// Files are made when there is something to write. A disk that refuses costs the curves and not the training: it is told once, and the
// board stays silent. Owner: a course; the thread that trains.
#pragma once

#include <memory>
#include <string>

#include "base/json.h"
#include "base/log.h"
#include "monitor/event_file.h"
#include "tensor/tensor.h"
#include "train/record.h"

namespace dtg {

class Board {
 public:
  // `after`: the step that training goes on from; -1: it starts.
  Board(Disk& disk, const Clock& clock, LogSink* log, std::string directory, int64_t after);
  ~Board();
  // The settings, once, where a training starts: as a text, and as a row of the table of hyperparameters.
  void settings(const Json& settings);
  void step(int64_t step, double loss);
  // Values with "val_" before their names are those of the validation, under the name without it.
  void epoch(int64_t step, const Record& values, double examples_per_s);
  // Of numbers; of anything else, nothing.
  void weights(int64_t step, const std::string& name, const Tensor& value);
  // What there is so far can be looked at.
  void flush();
  void finished(bool success);

 private:
  enum Role { train, validation };
  // Null: it cannot be written, or could not before.
  EventWriter* writer(Role role);
  void look(const Status& written);

  Disk& disk_;
  const Clock& clock_;
  LogSink* const log_;
  const std::string directory_;
  const int64_t after_;
  bool lost_ = false;
  std::unique_ptr<EventWriter> writers_[2];
};

}  // namespace dtg
