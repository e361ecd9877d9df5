// A small set that tests save and look for: two shards, of which every byte hangs on one number.
#pragma once

#include <cstring>
#include <string>
#include <vector>

#include "base/random.h"
#include "checkpoint/restore.h"

namespace dtg {

// Random bytes that repeat.
class CountingRandom final : public Random {
 public:
  void fill(void* bytes, size_t count) const override {
    for (size_t i = 0; i < count; ++i) static_cast<unsigned char*>(bytes)[i] = static_cast<unsigned char>(state_ = state_ * 5 + 77);
  }

 private:
  mutable unsigned state_ = 1;
};

inline std::vector<ShardTensor> sample_tensors(int shard, float value) {
  const float w[] = {value, 2 * value, -value};
  const auto vector = [&] { return Tensor::of<float>(Shape::of({3}), std::span<const float>(w)).take(); };
  std::vector<ShardTensor> tensors;
  if (shard == 0) {
    tensors.push_back({"w", vector(), TensorRole::variable, "", ""});
    tensors.push_back({"w/momentum", vector(), TensorRole::slot, "w", "momentum"});
  } else {
    Tensor flags = Tensor::allocate(DType::boolean, Shape::of({2})).take();
    std::memcpy(flags.data(), "\x01\x00", 2);
    tensors.push_back({"flags", flags, TensorRole::variable, "", ""});
    tensors.push_back({"global_step", Tensor::scalar<int64_t>(static_cast<int64_t>(value)).take(), TensorRole::step, "", ""});
  }
  return tensors;
}

// Saves as two tasks and a chief would.
inline Result<SetId> save_sample(CheckpointDirectory& directory, int64_t step, float value) {
  DTG_ASSIGN(const SetId id, directory.begin(step));
  std::vector<ShardReceipt> receipts;
  for (int shard = 0; shard < 2; ++shard) {
    auto receipt = directory.write(id, {shard, 2}, sample_tensors(shard, value));
    if (!receipt.ok()) {
      directory.give_up(id);
      return receipt.status();
    }
    receipts.push_back(receipt.take());
  }
  DTG_TRY(directory.publish(id, receipts, {{{"worker 0", 1, step, 0, ""}}, {{"note", std::to_string(value)}}}));
  return id;
}

// The number that a restored set was saved with; -1 unless all of it is whole and of one piece.
inline float sample_value(const RestoredSet& set) {
  const Tensor* const w = set.find("w");
  if (!w || set.tensors.size() != 4 || set.manifest.tensors.size() != 4 || set.manifest.rows.size() != 1) return -1;
  const float value = w->as<float>()[0];
  for (int shard = 0; shard < 2; ++shard) {
    for (const ShardTensor& wanted : sample_tensors(shard, value)) {
      const Tensor* const found = set.find(wanted.name);
      if (!found || found->text() != wanted.tensor.text()) return -1;
      if (std::memcmp(found->data(), wanted.tensor.data(), static_cast<size_t>(found->bytes())) != 0) return -1;
    }
  }
  return set.manifest.metadata == TextPairs{{"note", std::to_string(value)}} ? value : -1;
}

}  // namespace dtg
