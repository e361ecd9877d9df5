// Data pipelines at the size of Fashion-MNIST: 60,000 images of 784 bytes, shuffled, as batches of floats.
// The goal is less than 3 % of a training step, which for a small perceptron and 128 images is about 1 ms.
#include <benchmark/benchmark.h>

#include "base/crc32c.h"
#include "base/hash.h"
#include "data/dataset.h"

namespace dtg {
namespace {

Result<DatasetPtr> images(int64_t batch, bool prefetch) {
  DTG_ASSIGN(Tensor pixels, Tensor::allocate(DType::u8, Shape::of({60000, 28, 28})));
  for (int64_t i = 0; i < pixels.count(); ++i) pixels.as<uint8_t>()[i] = static_cast<uint8_t>(hash_mix(static_cast<uint64_t>(i)));
  DTG_ASSIGN(Tensor labels, Tensor::allocate(DType::u8, Shape::of({60000})));
  for (int64_t i = 0; i < labels.count(); ++i) labels.as<uint8_t>()[i] = static_cast<uint8_t>(i % 10);
  const Tensor tensors[] = {pixels, labels};
  DTG_ASSIGN(auto data, make_slices(tensors));
  DTG_ASSIGN(data, make_scale(std::move(data), 0, 255));
  DTG_ASSIGN(data, make_cast(std::move(data), 1, DType::i64));
  DTG_ASSIGN(data, make_shuffle(std::move(data), 0, 1));
  DTG_ASSIGN(data, make_repeat(std::move(data), -1));
  DTG_ASSIGN(data, make_batch(std::move(data), batch, true));
  return prefetch ? make_prefetch(std::move(data), 4) : Result<DatasetPtr>(std::move(data));
}

void batches(benchmark::State& state, bool prefetch) {
  auto data = images(state.range(0), prefetch);
  if (!data.ok()) return state.SkipWithError(data.status().message().c_str());
  Element element;
  for (auto _ : state) {
    auto more = data.value()->next(element);
    if (!more.ok()) return state.SkipWithError(more.status().message().c_str());
    benchmark::DoNotOptimize(element[0].data());
  }
  state.SetItemsProcessed(state.iterations() * state.range(0));
}
BENCHMARK_CAPTURE(batches, plain, false)->Arg(32)->Arg(128)->Arg(1024);
BENCHMARK_CAPTURE(batches, prefetched, true)->Arg(128);

void checksum(benchmark::State& state) {
  const std::string bytes(size_t{1} << 20, 'x');
  for (auto _ : state) benchmark::DoNotOptimize(crc32c(bytes));
  state.SetBytesProcessed(state.iterations() * static_cast<int64_t>(bytes.size()));
}
BENCHMARK(checksum);

void content_hash(benchmark::State& state) {
  const std::string bytes(size_t{1} << 20, 'x');
  for (auto _ : state) benchmark::DoNotOptimize(hash_content(bytes));
  state.SetBytesProcessed(state.iterations() * static_cast<int64_t>(bytes.size()));
}
BENCHMARK(content_hash);

}  // namespace
}  // namespace dtg
