// Random pipelines of the stages that combine, keep and stack elements, against a plain oracle: what they hand out over several epochs, and
// what comes after going to each position of them in a pipeline made anew.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <future>
#include <random>
#include <thread>

#include "data/element_function.h"
#include "data/order.h"
#include "data/position.h"

namespace dtg {
namespace {

struct Value {
  std::vector<int64_t> dims;
  std::vector<int64_t> data;
  bool operator==(const Value& other) const { return dims == other.dims && data == other.data; }
};
using Row = std::vector<Value>;
using Rows = std::vector<Row>;

// One pipeline, twice: how the library makes it, and what each epoch of it is.
struct Recipe {
  std::function<DatasetPtr()> make;
  std::function<Rows(int64_t epoch)> rows;
  std::vector<int> ranks;
  bool ragged = false;
  bool varies = false;  // its order hangs on the epoch
  std::string text;
};

// The oracle's own stacking: by walking through every place of the result.
Value stack(const std::vector<Value>& values, int64_t padding) {
  std::vector<int64_t> dims = values[0].dims;
  for (const Value& value : values) {
    for (size_t d = 0; d < dims.size(); ++d) dims[d] = std::max(dims[d], value.dims[d]);
  }
  Value out;
  out.dims = {static_cast<int64_t>(values.size())};
  out.dims.insert(out.dims.end(), dims.begin(), dims.end());
  int64_t each = 1;
  for (const int64_t dim : dims) each *= dim;
  for (const Value& value : values) {
    for (int64_t place = 0; place < each; ++place) {
      int64_t left = place, from = 0, scale = 1;
      bool inside = true;
      for (size_t d = dims.size(); d-- > 0;) {
        const int64_t at = left % dims[d];
        left /= dims[d];
        inside = inside && at < value.dims[d];
        from += at * scale;
        scale *= value.dims[d];
      }
      out.data.push_back(inside ? value.data[static_cast<size_t>(from)] : padding);
    }
  }
  return out;
}

Row stack_rows(const Rows& rows, int64_t padding) {
  Row out;
  for (size_t i = 0; i < rows[0].size(); ++i) {
    std::vector<Value> values;
    for (const Row& row : rows) values.push_back(row[i]);
    out.push_back(stack(values, padding));
  }
  return out;
}

Row row_of(const Element& element) {
  Row row;
  for (const Tensor& tensor : element) {
    Value& value = row.emplace_back();
    value.dims.assign(tensor.shape().dims().begin(), tensor.shape().dims().end());
    for (int64_t i = 0; i < tensor.count(); ++i) value.data.push_back(tensor.as<int64_t>()[i]);
  }
  return row;
}

template <class T>
T must(Result<T> result) {
  if (!result.ok()) throw std::runtime_error(result.status().message());
  return result.take();
}

// A function as the stages see one: several calls at once, on threads, which end in whatever order they like.
class Formula final : public ElementFunction {
 public:
  using Change = std::function<Element(const Element&, std::pair<int64_t, int64_t> seed)>;
  Formula(std::vector<ComponentSpec> results, int64_t parallel, Change change)
      : results_(std::move(results)), parallel_(parallel), change_(std::move(change)) {}
  const std::vector<ComponentSpec>& results() const override { return results_; }
  Result<std::unique_ptr<Call>> start(const Element& arguments, const int64_t (&seed)[2]) override {
    class Later final : public Call {
     public:
      explicit Later(std::future<Element> made) : made_(std::move(made)) {}
      Status finish(Element& results) override {
        results = made_.get();
        return {};
      }

     private:
      std::future<Element> made_;
    };
    const auto how = parallel_ > 1 ? std::launch::async : std::launch::deferred;
    return std::unique_ptr<Call>(new Later(std::async(how, change_, arguments, std::pair(seed[0], seed[1]))));
  }
  int64_t parallel() const override { return parallel_; }
  std::string text() const override { return "formula"; }

 private:
  const std::vector<ComponentSpec> results_;
  const int64_t parallel_;
  const Change change_;
};

// Every number twice, and more by what the seed says; the oracle does the same to its rows.
int64_t changed(int64_t number, int64_t more) { return 2 * number + more; }
bool stays(const std::vector<int64_t>& numbers) {
  int64_t sum = 0;
  for (const int64_t number : numbers) sum += number;
  return sum % 3 != 0;
}

class Chef {
 public:
  explicit Chef(uint32_t seed) : random_(seed) {}

  Recipe cook(int depth) {
    Recipe recipe = source();
    for (int steps = below(4); steps >= 0; --steps) recipe = step(std::move(recipe), depth);
    return recipe;
  }

 private:
  int below(int bound) { return static_cast<int>(random_() % static_cast<uint32_t>(bound)); }

  Recipe source() {
    const int64_t count = below(8), first = below(100);
    const bool is_table = below(2) == 0;
    Recipe made;
    made.text = std::to_string(count) + (is_table ? " rows" : " numbers");
    made.ranks = is_table ? std::vector<int>{1, 0} : std::vector<int>{0};
    made.rows = [=](int64_t) {
      Rows rows;
      for (int64_t i = first; i < first + count; ++i) {
        rows.push_back(is_table ? Row{{{2}, {i, -i}}, {{}, {3 * i}}} : Row{{{}, {i}}});
      }
      return rows;
    };
    made.make = [=] {
      if (!is_table) return must(make_range(first, first + count, 1));
      Tensor pairs = must(Tensor::allocate(DType::i64, Shape::of({count, 2})));
      Tensor single = must(Tensor::allocate(DType::i64, Shape::of({count})));
      for (int64_t i = 0; i < count; ++i) {
        pairs.as<int64_t>()[2 * i] = first + i;
        pairs.as<int64_t>()[2 * i + 1] = -(first + i);
        single.as<int64_t>()[i] = 3 * (first + i);
      }
      const Tensor both[] = {pairs, single};
      return must(make_slices(both));
    };
    return made;
  }

  using Make = std::function<Result<DatasetPtr>(DatasetPtr)>;
  using Change = std::function<Rows(const Rows&, int64_t epoch)>;

  // A stage on top of one pipeline, whose epochs are a function of the source's.
  static Recipe over(const Recipe& from, const std::string& text, Make make, Change change) {
    Recipe made = from;
    made.text += ", " + text;
    made.make = [=] { return must(make(from.make())); };
    made.rows = [=](int64_t epoch) { return change(from.rows(epoch), epoch); };
    return made;
  }

  Recipe step(const Recipe& from, int depth) {
    const int64_t n = 1 + below(4), m = 1 + below(3);
    const bool drop = below(2) == 0;
    switch (below(15)) {
      case 12:
      case 13: return map(from, m);
      case 14: return filter(from, n);
      case 0: return shuffle(from, n, static_cast<uint64_t>(m));
      case 1:
        return over(
            from, "take", [=](DatasetPtr data) { return make_take(std::move(data), 2 * n); },
            [=](Rows rows, int64_t) {
              rows.resize(std::min<size_t>(rows.size(), static_cast<size_t>(2 * n)));
              return rows;
            });
      case 2:
        return over(
            from, "skip", [=](DatasetPtr data) { return make_skip(std::move(data), m); },
            [=](const Rows& rows, int64_t) {
              return Rows(rows.begin() + std::min<std::ptrdiff_t>(m, static_cast<std::ptrdiff_t>(rows.size())), rows.end());
            });
      case 3: return repeat(from, m);
      case 4:
        return over(
            from, "prefetch", [=](DatasetPtr data) { return make_prefetch(std::move(data), n); },
            [](const Rows& rows, int64_t) { return rows; });
      case 5: {
        Recipe made = over(
            from, "cache", [](DatasetPtr data) { return make_cache(std::move(data)); }, [](const Rows& rows, int64_t) { return rows; });
        made.rows = [from](int64_t) { return from.rows(0); };
        made.varies = false;
        return made;
      }
      case 6: return window(from, {.size = n, .shift = m, .stride = 1 + below(2), .drop_remainder = drop});
      case 7: return batch(from, n, drop);
      case 8: return buckets(from);
      default: return depth > 0 ? combine(from, depth) : from;
    }
  }

  Recipe shuffle(const Recipe& from, int64_t buffer, uint64_t seed) {
    Recipe made = over(
        from, "shuffle", [=](DatasetPtr data) { return make_shuffle(std::move(data), buffer, seed); },
        [=](const Rows& rows, int64_t epoch) {
          Order order(seed, static_cast<uint64_t>(epoch));
          Rows waiting, out;
          for (size_t at = 0; at < rows.size() || !waiting.empty();) {
            while (at < rows.size() && static_cast<int64_t>(waiting.size()) < buffer) waiting.push_back(rows[at++]);
            const size_t drawn = order.below(waiting.size());
            out.push_back(waiting[drawn]);
            waiting[drawn] = waiting.back();
            waiting.pop_back();
          }
          return out;
        });
    made.varies = true;
    return made;
  }

  Recipe map(const Recipe& from, int64_t parallel) {
    const bool seeded = below(2) == 0;
    const auto more = [seeded](int64_t epoch, int64_t index) { return seeded ? 100 * epoch + index : 0; };
    Recipe made = over(
        from, seeded ? "seeded map" : "map",
        [=](DatasetPtr data) {
          const auto change = [=](const Element& element, std::pair<int64_t, int64_t> seed) {
            Element out;
            for (const Tensor& tensor : element) {
              Tensor& doubled = out.emplace_back(must(Tensor::allocate(DType::i64, tensor.shape())));
              for (int64_t i = 0; i < tensor.count(); ++i) {
                doubled.as<int64_t>()[i] = changed(tensor.as<int64_t>()[i], more(seed.first, seed.second));
              }
            }
            return out;
          };
          auto formula = make_ref<Formula>(data->spec(), parallel, change);
          return make_map(std::move(data), std::move(formula));
        },
        [=](Rows rows, int64_t epoch) {
          for (size_t r = 0; r < rows.size(); ++r) {
            for (Value& value : rows[r]) {
              for (int64_t& number : value.data) number = changed(number, more(epoch, static_cast<int64_t>(r)));
            }
          }
          return rows;
        });
    made.varies |= seeded;
    return made;
  }

  static Recipe filter(const Recipe& from, int64_t parallel) {
    return over(
        from, "filter",
        [=](DatasetPtr data) {
          const auto verdict = [](const Element& element, std::pair<int64_t, int64_t>) {
            const int64_t* numbers = element[0].as<int64_t>();
            return Element{must(Tensor::scalar<bool>(stays({numbers, numbers + element[0].count()})))};
          };
          return make_filter(std::move(data),
                             make_ref<Formula>(std::vector<ComponentSpec>{{DType::boolean, PartialShape::scalar()}}, parallel, verdict));
        },
        [](const Rows& rows, int64_t) {
          Rows out;
          for (const Row& row : rows) {
            if (stays(row[0].data)) out.push_back(row);
          }
          return out;
        });
  }

  // Of what varies the epochs would have to be counted; that is another test's.
  Recipe repeat(const Recipe& from, int64_t count) {
    if (from.varies) return from;
    return over(
        from, "repeat", [=](DatasetPtr data) { return make_repeat(std::move(data), count); },
        [=](const Rows& rows, int64_t) {
          Rows out;
          for (int64_t i = 0; i < count; ++i) out.insert(out.end(), rows.begin(), rows.end());
          return out;
        });
  }

  Recipe window(const Recipe& from, WindowOptions options) {
    if (from.ragged || from.ranks[0] > 2) return from;
    Recipe made = over(
        from, "window", [=](DatasetPtr data) { return make_window(std::move(data), options); },
        [=](const Rows& rows, int64_t) {
          Rows out;
          for (size_t first = 0; first < rows.size(); first += static_cast<size_t>(options.shift)) {
            Rows chosen;
            for (int64_t i = 0; i < options.size; ++i) {
              const size_t at = first + static_cast<size_t>(i * options.stride);
              if (at < rows.size()) chosen.push_back(rows[at]);
            }
            if (options.drop_remainder && static_cast<int64_t>(chosen.size()) < options.size) break;
            out.push_back(stack_rows(chosen, 0));
          }
          return out;
        });
    made.ragged = !options.drop_remainder;
    for (int& rank : made.ranks) ++rank;
    return made;
  }

  Recipe batch(const Recipe& from, int64_t size, bool drop) {
    if (from.ranks[0] > 2) return from;
    const auto padding = static_cast<int64_t>(below(3)) - 1;
    const bool padded = from.ragged || below(2) == 0;
    Recipe made = over(
        from, padded ? "padded_batch" : "batch",
        [=](DatasetPtr data) {
          return padded ? make_padded_batch(std::move(data), size, drop, static_cast<double>(padding))
                        : make_batch(std::move(data), size, drop);
        },
        [=](const Rows& rows, int64_t) {
          Rows out;
          for (size_t first = 0; first < rows.size(); first += static_cast<size_t>(size)) {
            const size_t end = std::min(rows.size(), first + static_cast<size_t>(size));
            if (drop && end - first < static_cast<size_t>(size)) break;
            out.push_back(stack_rows(
                Rows(rows.begin() + static_cast<std::ptrdiff_t>(first), rows.begin() + static_cast<std::ptrdiff_t>(end)), padding));
          }
          return out;
        });
    made.ragged = true;
    for (int& rank : made.ranks) ++rank;
    return made;
  }

  Recipe buckets(const Recipe& from) {
    if (from.ranks[0] < 1 || from.ranks[0] > 2) return from;
    const BucketOptions options{.component = 0,
                                .boundaries = {2, 3},
                                .sizes = {1 + below(3), 1 + below(3), 1 + below(3)},
                                .drop_remainder = below(3) == 0,
                                .padding = 7};
    Recipe made = over(
        from, "buckets", [=](DatasetPtr data) { return make_buckets(std::move(data), options); },
        [=](const Rows& rows, int64_t) {
          Rows out, waiting[3];
          for (const Row& row : rows) {
            const int64_t length = row[0].dims[0];
            const size_t bucket = length < 2 ? 0 : length < 3 ? 1 : 2;
            waiting[bucket].push_back(row);
            if (static_cast<int64_t>(waiting[bucket].size()) < options.sizes[bucket]) continue;
            out.push_back(stack_rows(waiting[bucket], 7));
            waiting[bucket].clear();
          }
          for (const Rows& left : waiting) {
            if (!left.empty() && !options.drop_remainder) out.push_back(stack_rows(left, 7));
          }
          return out;
        });
    made.ragged = true;
    for (int& rank : made.ranks) ++rank;
    return made;
  }

  Recipe combine(const Recipe& from, int depth) {
    const int kind = below(3);
    std::vector<Recipe> parts{from};
    for (int more = 1 + below(2); more > 0; --more) parts.push_back(cook(depth - 1));
    // Side by side all sorts may stand; one after the other only those of one kind.
    if (kind > 0) std::erase_if(parts, [&](const Recipe& part) { return part.ranks != from.ranks; });
    const int64_t block = 1 + below(3);
    Recipe made;
    for (const Recipe& part : parts) {
      made.text += (made.text.empty() ? "{" : "; ") + part.text;
      made.ragged |= part.ragged || kind > 0;
      made.varies |= part.varies;
      if (kind == 0) made.ranks.insert(made.ranks.end(), part.ranks.begin(), part.ranks.end());
    }
    if (kind > 0) made.ranks = from.ranks;
    made.text += kind == 0 ? "} zip" : kind == 1 ? "} concatenate" : "} interleave";
    made.make = [=] {
      std::vector<DatasetPtr> all;
      for (const Recipe& part : parts) all.push_back(part.make());
      return must(kind == 0   ? make_zip(std::move(all))
                  : kind == 1 ? make_concatenate(std::move(all))
                              : make_interleave(std::move(all), block));
    };
    made.rows = [=](int64_t epoch) {
      std::vector<Rows> all;
      for (const Recipe& part : parts) all.push_back(part.rows(epoch));
      return kind == 0 ? zip(all) : kind == 1 ? interleave(all, INT64_MAX) : interleave(all, block);
    };
    return made;
  }

  static Rows zip(const std::vector<Rows>& all) {
    Rows out;
    for (size_t i = 0; std::ranges::all_of(all, [i](const Rows& rows) { return i < rows.size(); }); ++i) {
      Row& row = out.emplace_back();
      for (const Rows& rows : all) row.insert(row.end(), rows[i].begin(), rows[i].end());
    }
    return out;
  }

  static Rows interleave(std::vector<Rows> all, int64_t block) {
    Rows out;
    std::vector<size_t> at(all.size());
    for (bool any = true; any;) {
      any = false;
      for (size_t p = 0; p < all.size(); ++p) {
        for (int64_t i = 0; i < block && at[p] < all[p].size(); ++i, any = true) out.push_back(all[p][at[p]++]);
      }
    }
    return out;
  }

  std::mt19937 random_;
};

// What is left of the epoch, and all of the next.
void expect_rest(Reading& reading, const Recipe& recipe, int64_t epoch, size_t from, const std::string& what) {
  for (const int64_t e : {epoch, epoch + 1}) {
    const Rows rows = recipe.rows(e);
    Element element;
    for (size_t i = e == epoch ? from : 0; i < rows.size(); ++i) {
      auto more = reading.next(element);
      ASSERT_TRUE(more.ok()) << what << more.status().message();
      ASSERT_TRUE(more.value()) << what << ": epoch " << e << " has " << rows.size() << " elements, not " << i;
      ASSERT_TRUE(row_of(element) == rows[i]) << what << ": element " << i << " of epoch " << e;
    }
    ASSERT_FALSE(reading.next(element).value()) << what << ": more than " << rows.size() << " elements in epoch " << e;
    ASSERT_TRUE(reading.restart().ok());
  }
}

TEST(Pipelines, RandomOnesHandOutAndGoOnAsTheOracleSays) {
  int64_t positions = 0;
  for (uint32_t seed = 0; seed < 250; ++seed) {
    const Recipe recipe = Chef(seed).cook(2);
    SCOPED_TRACE(std::to_string(seed) + ": " + recipe.text);
    Reading reading(recipe.make());
    std::vector<std::pair<int64_t, DataPosition>> marks;
    for (int64_t epoch = 0; epoch < 3; ++epoch) {
      const Rows rows = recipe.rows(epoch);
      if (reading.data().cardinality() >= 0) {
        ASSERT_EQ(reading.data().cardinality(), static_cast<int64_t>(rows.size()));
      }
      Element element;
      for (size_t i = 0; i <= rows.size(); ++i) {
        marks.emplace_back(epoch, reading.position().value());
        auto more = reading.next(element);
        ASSERT_TRUE(more.ok()) << more.status().message();
        ASSERT_EQ(more.value(), i < rows.size()) << "element " << i << " of epoch " << epoch;
        if (i == rows.size()) break;
        ASSERT_TRUE(row_of(element) == rows[i]) << "element " << i << " of epoch " << epoch;
        ASSERT_EQ(element.size(), reading.data().spec().size());
        for (size_t c = 0; c < element.size(); ++c) {
          ASSERT_TRUE(reading.data().spec()[c].shape.has_rank() || recipe.ragged);
        }
      }
      ASSERT_TRUE(reading.restart().ok());
    }
    for (const auto& [epoch, mark] : marks) {
      Reading fresh(recipe.make());
      EXPECT_EQ(fresh.text(), reading.text());
      ASSERT_TRUE(fresh.move_to(mark).ok());
      expect_rest(fresh, recipe, epoch, static_cast<size_t>(mark.elements), "anew");
      // And back, in one that has gone on.
      ASSERT_TRUE(reading.move_to(mark).ok());
      const Rows rows = recipe.rows(epoch);
      const auto next = static_cast<size_t>(mark.elements);
      Element element;
      ASSERT_EQ(reading.next(element).value(), next < rows.size());
      if (next < rows.size()) {
        ASSERT_TRUE(row_of(element) == rows[next]) << "back at element " << next << " of epoch " << epoch;
      }
      if (HasFatalFailure()) return;
      ++positions;
    }
  }
  EXPECT_GT(positions, 2000);
}

// What the cache holds comes from an epoch of a stage that has been begun many times since.
TEST(Pipelines, ACacheOverEpochsGoesOnAsItWas) {
  const auto make = [] {
    auto data = must(make_shuffle(must(make_range(0, 5, 1)), 0, 3));
    return must(make_repeat(must(make_cache(must(make_prefetch(must(make_repeat(std::move(data), 3)), 2)))), 2));
  };
  Reading reading(make());
  std::vector<Row> first;
  Element element;
  while (reading.next(element).value()) first.push_back(row_of(element));
  ASSERT_EQ(first.size(), 30u);
  EXPECT_TRUE(Rows(first.begin(), first.begin() + 15) == Rows(first.begin() + 15, first.end()));
  for (int epoch = 0; epoch < 3; ++epoch) {
    ASSERT_TRUE(reading.restart().ok());
    for (size_t i = 0; i <= first.size(); ++i) {
      const DataPosition at = reading.position().value();
      Reading fresh(make());
      ASSERT_TRUE(fresh.move_to(at).ok());
      for (size_t k = i; k < first.size(); ++k) {
        ASSERT_TRUE(fresh.next(element).value());
        ASSERT_TRUE(row_of(element) == first[k]) << epoch << " " << i << " " << k;
      }
      if (i == first.size()) break;
      ASSERT_TRUE(reading.next(element).value());
    }
  }
}

// Errors of elements that were asked for ahead come in their turn, and what stands behind them can still be had.
TEST(Pipelines, AnErrorComesWhereItsElementWould) {
  class Moody final : public ElementFunction {
   public:
    const std::vector<ComponentSpec>& results() const override { return results_; }
    Result<std::unique_ptr<Call>> start(const Element& arguments, const int64_t (&)[2]) override {
      class Given final : public Call {
       public:
        explicit Given(Element element) : element_(std::move(element)) {}
        Status finish(Element& results) override {
          if (*element_[0].as<int64_t>() == 4) return data_loss("four, in the end");
          results = element_;
          return {};
        }

       private:
        Element element_;
      };
      if (*arguments[0].as<int64_t>() == 2) return data_loss("two, at once");
      return std::unique_ptr<Call>(new Given(arguments));
    }
    int64_t parallel() const override { return 4; }
    std::string text() const override { return "moody"; }

   private:
    std::vector<ComponentSpec> results_{{DType::i64, PartialShape::scalar()}};
  };
  Reading reading(must(make_map(must(make_range(0, 6, 1)), make_ref<Moody>())));
  Element element;
  for (const int64_t i : {0, 1, 2, 3, 4, 5}) {
    auto more = reading.next(element);
    ASSERT_EQ(more.ok(), i != 2 && i != 4) << i;
    if (more.ok()) {
      ASSERT_EQ(*element[0].as<int64_t>(), i);
    }
  }
  EXPECT_FALSE(reading.next(element).value());
  ASSERT_TRUE(reading.restart().ok());
  EXPECT_EQ(reading.data().skip(6).value(), 6) << "what is passed over is not asked about";
  ASSERT_TRUE(reading.restart().ok());
  ASSERT_TRUE(reading.next(element).value());
  EXPECT_EQ(reading.data().skip(3).status().code(), Code::data_loss) << "the third was asked about ahead, and failed";
}

TEST(Pipelines, WhatCannotBeIsSaid) {
  const auto range = [](int64_t count) { return must(make_range(0, count, 1)); };
  const auto parts = [&](DatasetPtr first, DatasetPtr second) {
    std::vector<DatasetPtr> all;
    all.push_back(std::move(first));
    all.push_back(std::move(second));
    return all;
  };
  EXPECT_EQ(make_zip({}).status().code(), Code::invalid_argument);
  EXPECT_EQ(make_interleave(parts(range(1), range(2)), 0).status().code(), Code::invalid_argument);
  EXPECT_EQ(make_concatenate(parts(range(1), must(make_cast(range(2), 0, DType::f32)))).status().code(), Code::invalid_argument);
  EXPECT_EQ(make_cache(must(make_repeat(range(1), -1))).status().code(), Code::invalid_argument);
  EXPECT_EQ(make_window(range(1), {.size = 0}).status().code(), Code::invalid_argument);
  EXPECT_EQ(make_window(range(1), {.size = 1 << 20, .stride = 1 << 20}).status().code(), Code::invalid_argument);
  EXPECT_EQ(make_padded_batch(range(1), 2, false, 0.5).status().code(), Code::invalid_argument);
  EXPECT_EQ(make_padded_batch(range(1), 0, false, 0).status().code(), Code::invalid_argument);
  EXPECT_EQ(make_buckets(range(1), {.boundaries = {2, 2}, .sizes = {1, 1, 1}}).status().code(), Code::invalid_argument);
  EXPECT_EQ(make_buckets(range(1), {.boundaries = {2}, .sizes = {1}}).status().code(), Code::invalid_argument);
  EXPECT_EQ(make_buckets(range(1), {.component = 1, .sizes = {1}}).status().code(), Code::out_of_range);
  Element element;
  auto scalars = must(make_buckets(range(1), {.sizes = {1}}));
  EXPECT_EQ(scalars->next(element).status().code(), Code::invalid_argument);
}

}  // namespace
}  // namespace dtg
