// Deals the rows of a table out to two sources that stand on it: nothing is copied but row numbers. See split.h for threads.
#include "data/split.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

#include "base/hash.h"
#include "data/order.h"

namespace dtg {
namespace {

using Rows = std::vector<int64_t>;

// Some rows of a table, in the order of a list.
class Chosen final : public Dataset {
 public:
  Chosen(const Ref<Table>& table, Rows rows) : rows_(std::move(rows)) { stand_on(table); }
  Status restart() override {
    at_ = 0;
    return {};
  }
  int64_t cardinality() const override { return static_cast<int64_t>(rows_.size()); }
  Result<bool> pull(Item& item) override {
    if (at_ >= rows_.size()) return false;
    item.row = rows_[at_++];
    return true;
  }
  Result<int64_t> skip(int64_t count) override {
    const size_t passed = std::min(static_cast<size_t>(std::max<int64_t>(count, 0)), rows_.size() - at_);
    at_ += passed;
    return static_cast<int64_t>(passed);
  }
  std::string stage() const override {
    uint64_t hash = 0;
    for (const int64_t row : rows_) hash = hash_combine(hash, static_cast<uint64_t>(row));
    return format("%zu rows (%016llx) of %lld of", rows_.size(), static_cast<unsigned long long>(hash),
                  static_cast<long long>(table()->rows())) +
           spec_text();
  }

 private:
  const Rows rows_;
  size_t at_ = 0;
};

// The rows that one epoch hands out.
Result<Rows> rows_of(Dataset& data) {
  if (!data.table()) {
    return invalid_argument("split a data set: its elements are no rows of tensors or of files; split before batch and prefetch");
  }
  std::vector<bool> seen(static_cast<size_t>(data.table()->rows()));
  Rows rows;
  Dataset::Item item;
  for (;;) {
    DTG_ASSIGN(const bool more, data.pull(item));
    if (!more) return rows;
    if (item.row < 0) return internal_error("split a data set: an element is no row of its table");
    if (seen[static_cast<size_t>(item.row)]) {
      return invalid_argument("split a data set: row %lld comes twice and could land on both sides; split before repeat",
                              static_cast<long long>(item.row));
    }
    seen[static_cast<size_t>(item.row)] = true;
    rows.push_back(item.row);
  }
}

Result<int64_t> class_at(const Tensor& values, int64_t row) {
  switch (values.dtype()) {
    case DType::i64: return values.as<int64_t>()[row];
    case DType::i32: return values.as<int32_t>()[row];
    case DType::i16: return values.as<int16_t>()[row];
    case DType::i8: return values.as<int8_t>()[row];
    case DType::u8: return values.as<uint8_t>()[row];
    case DType::u16: return values.as<uint16_t>()[row];
    case DType::u32: return values.as<uint32_t>()[row];
    case DType::boolean: return values.as<bool>()[row] ? 1 : 0;
    default:
      return invalid_argument("split a data set by classes: they are %s; whole numbers or bools are needed", dtype_name(values.dtype()));
  }
}

// Places in `rows`, class by class; one list where no classes are asked for.
Result<std::vector<Rows>> strata_of(const Dataset& data, const Rows& rows, int classes) {
  std::map<int64_t, Rows> strata;
  if (classes >= static_cast<int>(data.spec().size())) {
    return invalid_argument("split a data set by the classes of component %d: its elements have %zu components", classes,
                            data.spec().size());
  }
  if (classes >= 0 && data.spec()[static_cast<size_t>(classes)].shape.rank() != 0) {
    return invalid_argument("split a data set by classes: component %d is %s%s; one whole number per row is needed", classes,
                            dtype_name(data.spec()[static_cast<size_t>(classes)].dtype),
                            data.spec()[static_cast<size_t>(classes)].shape.text().c_str());
  }
  for (size_t place = 0; place < rows.size(); ++place) {
    int64_t of = 0;
    if (classes >= 0) {
      DTG_ASSIGN(of, class_at(data.table()->columns()[static_cast<size_t>(classes)].values, rows[place]));
    }
    strata[of].push_back(static_cast<int64_t>(place));
  }
  std::vector<Rows> lists;
  for (auto& [of, places] : strata) lists.push_back(std::move(places));
  return lists;
}

void shuffle(Rows& places, Order& order) {
  for (size_t left = places.size(); left > 1; --left) std::swap(places[left - 1], places[order.below(left)]);
}

// How many of each class are held out: the share rounded down, and one more where most was lost until the total is right.
std::vector<size_t> shares(const std::vector<Rows>& strata, size_t total, double fraction) {
  std::vector<size_t> counts;
  std::vector<double> lost;
  size_t given = 0;
  for (const Rows& stratum : strata) {
    const double exact = static_cast<double>(stratum.size()) * fraction;
    counts.push_back(static_cast<size_t>(exact));
    lost.push_back(exact - std::floor(exact));
    given += counts.back();
  }
  std::vector<size_t> by_loss(strata.size());
  std::iota(by_loss.begin(), by_loss.end(), size_t{0});
  std::ranges::stable_sort(by_loss, [&](size_t a, size_t b) { return lost[a] > lost[b]; });
  for (size_t i = 0; i < by_loss.size() && given < total; ++i, ++given) ++counts[by_loss[i]];
  return counts;
}

Status check(const SplitOptions& o) {
  if (o.folds == 0 && !(o.fraction > 0 && o.fraction < 1)) {
    return invalid_argument("split a data set: the fraction is %g; give the share that is held out, between 0 and 1", o.fraction);
  }
  if (o.folds != 0 && (o.folds < 2 || o.fold < 0 || o.fold >= o.folds)) {
    return invalid_argument("split a data set: fold %d of %d; there are 2 folds or more, counted from 0", o.fold, o.folds);
  }
  return {};
}

// Which places are held out.
std::vector<bool> choose(std::vector<Rows> strata, size_t count, const SplitOptions& options) {
  std::vector<bool> held_out(count);
  Order order(options.seed, 0);
  const auto total = static_cast<size_t>(std::llround(static_cast<double>(count) * options.fraction));
  const std::vector<size_t> share = shares(strata, total, options.fraction);
  size_t dealt = 0;  // folds go on from class to class, so that they are of like size
  for (size_t s = 0; s < strata.size(); ++s) {
    shuffle(strata[s], order);
    for (size_t i = 0; i < strata[s].size(); ++i, ++dealt) {
      const bool out = options.folds ? dealt % static_cast<size_t>(options.folds) == static_cast<size_t>(options.fold) : i < share[s];
      held_out[static_cast<size_t>(strata[s][i])] = out;
    }
  }
  return held_out;
}

Result<Split> split(Dataset& data, const SplitOptions& options) {
  DTG_ASSIGN(const Rows rows, rows_of(data));
  DTG_ASSIGN(std::vector<Rows> strata, strata_of(data, rows, options.classes));
  const std::vector<bool> held_out = choose(std::move(strata), rows.size(), options);
  Rows parts[2];
  for (size_t place = 0; place < rows.size(); ++place) parts[held_out[place] ? 1 : 0].push_back(rows[place]);
  if (parts[0].empty() || parts[1].empty()) {
    return invalid_argument(
        "split a data set of %zu rows: one of the two parts is empty; more rows, another fraction or fewer folds are needed", rows.size());
  }
  return Split{DatasetPtr(new Chosen(data.table(), std::move(parts[0]))), DatasetPtr(new Chosen(data.table(), std::move(parts[1])))};
}

}  // namespace

Result<Split> split_rows(Reading& data, const SplitOptions& options) {
  DTG_TRY(check(options));
  if (!data.valid()) return failed_precondition("split a data set: a transform of it has failed");
  if (data.data().cardinality() == Dataset::kInfinite) return invalid_argument("split a data set: it never ends; split before repeat");
  DTG_ASSIGN(const DataPosition before, data.position());
  DTG_TRY(data.restart());
  Result<Split> made = split(data.data(), options);
  DTG_TRY(data.move_to(before));
  return made;
}

}  // namespace dtg
