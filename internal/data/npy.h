// Sources of a data set: NumPy's files, .npy (one array) and .npz (a zip of them). All types of a fixed size that tensors have, in
// either order of memory; what Python would have to unpickle is refused. Pure functions; any thread except the network loop.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "base/budget.h"
#include "base/disk.h"
#include "data/dataset.h"

namespace dtg {

constexpr int64_t kNpyBytesMax = int64_t{16} << 30;

// One array, of which nothing may follow in `file`. `path` names it in errors. An array whose header announces more than `bytes_max` is
// refused before its memory is taken.
Result<Tensor> read_npy(FileReader& file, const std::string& path, int64_t bytes_max = kNpyBytesMax, MemoryBudget* budget = nullptr);

// One component per .npy file, plain or gzip, with equal numbers of rows.
Result<DatasetPtr> make_npy(Disk& disk, std::span<const std::string> paths, MemoryBudget* budget = nullptr);
// One component per array of that name in the .npz file, in that order; without names, all there are, in the order of the file.
Result<DatasetPtr> make_npz(Disk& disk, const std::string& path, std::span<const std::string> names, MemoryBudget* budget = nullptr);
// The same from the bytes of the file.
Result<std::vector<Tensor>> parse_npz(std::string_view bytes, const std::string& path, std::span<const std::string> names,
                                      int64_t bytes_max = kNpyBytesMax, MemoryBudget* budget = nullptr);

}  // namespace dtg
