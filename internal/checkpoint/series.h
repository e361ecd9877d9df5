// CheckpointSeries: the checkpoints of one training run in one directory, each a set of one or more
// safetensors files, one per task that holds variables. There is no list and no "latest" pointer that
// could disagree with the files: a set counts when all of its parts are there, and each part came into
// being whole. Several tasks may save their parts at the same time; one of them prunes.
//
//   step-000000001200-00001-of-00003.safetensors
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "checkpoint/safetensors.h"

namespace dtg {

struct CheckpointPart {
  int64_t step = 0;
  int part = 0;  // 0 to parts - 1
  int parts = 1;
  // The same number for all parts of one save and another for the next save, also of the same step: so a
  // set that mixes two attempts is found out. Drawn by whoever starts the save.
  uint64_t save_id = 0;
};

struct Checkpoint {
  int64_t step = 0;
  TensorFile content;  // of all parts; metadata of the first
};

class CheckpointSeries {
 public:
  static constexpr int kPartsMax = 99999;

  // `disk` must outlive the series.
  CheckpointSeries(Disk& disk, std::string directory) : disk_(disk), directory_(std::move(directory)) {}

  // Writes one part; makes the directory if need be.
  Status save(const CheckpointPart& part, std::span<const NamedTensor> tensors, const TextPairs& metadata = {});

  // Steps of which every part is there, rising. Empty when the directory does not exist.
  Result<std::vector<int64_t>> steps();

  // All parts of that step as one, however many there were: who restores may be more or fewer tasks than
  // saved. Nothing is returned unless everything was read and verified.
  Result<Checkpoint> restore(int64_t step, const ReadTensorsOptions& options = {});

  // The newest. When it is damaged: with `fall_back` the newest that is not, without it the error.
  // NOT_FOUND when there is none at all.
  Result<Checkpoint> restore_latest(bool fall_back, const ReadTensorsOptions& options = {});

  // Removes what is older than the `keep` newest whole sets, torn sets and leftovers of failed writes
  // included. The newest set always stays.
  Status prune(int keep);

 private:
  struct Found;
  Result<std::vector<Found>> find();
  std::string path_of(const CheckpointPart& part) const;
  Disk& disk_;
  const std::string directory_;
};

}  // namespace dtg
