// Arrow streams: random tables of random pieces, against what went into them; what stays where it lay, and that everything is given back;
// arrays that are not what their schemas say. pyarrow's own streams are tests/bindings/arrow_test.py's.
#include "data/arrow.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <memory>
#include <optional>
#include <random>

#include "base/log.h"

namespace dtg {
namespace {

// What a producer hands over: schema or array, with everything that hangs on it.
template <class C>
struct Node {
  C it{};
  std::string format, name;
  std::vector<std::string> buffers;
  std::vector<const void*> pointers;
  std::vector<std::unique_ptr<Node>> children;
  std::vector<C*> child_pointers;
  std::unique_ptr<Node> dictionary;
  int* released = nullptr;

  void connect() {
    for (auto& child : children) {
      child->connect();
      child_pointers.push_back(&child->it);
    }
    it.n_children = static_cast<int64_t>(children.size());
    it.children = child_pointers.data();
    if (dictionary) {
      dictionary->connect();
      it.dictionary = &dictionary->it;
    }
    if constexpr (std::is_same_v<C, ArrowSchema>) {
      it.format = format.c_str();
      it.name = name.c_str();
    } else {
      for (const std::string& buffer : buffers) pointers.push_back(buffer.empty() ? nullptr : buffer.data());
      it.n_buffers = static_cast<int64_t>(pointers.size());
      it.buffers = pointers.data();
    }
    it.private_data = this;
    it.release = [](C* gone) {
      Node* const self = static_cast<Node*>(gone->private_data);
      gone->release = nullptr;
      if (!self->released) return;  // a child, which goes with its parent
      ++*self->released;
      delete self;
    };
  }
};
using SchemaNode = Node<ArrowSchema>;
using ArrayNode = Node<ArrowArray>;

template <class T>
std::string bytes_of(const std::vector<T>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)};
}

// The cells of a column: what went in.
struct Cells {
  std::string name, format;
  std::vector<std::optional<double>> numbers;     // by row and place in the list
  std::vector<std::optional<std::string>> texts;  // by row
  int64_t width = 1;
  size_t rows() const { return texts.empty() ? numbers.size() / static_cast<size_t>(width) : texts.size(); }
};

std::string bits_of(const std::vector<bool>& bits) {
  std::string out(bits.size() / 8 + 1, '\0');
  for (size_t i = 0; i < bits.size(); ++i) out[i / 8] = static_cast<char>(out[i / 8] | (bits[i] ? 1 << (i % 8) : 0));
  return out;
}

std::string numbers_of(char format, const std::vector<double>& values) {
  const auto as = [&](auto type) { return bytes_of(std::vector<decltype(type)>(values.begin(), values.end())); };
  if (format == 'b') return bits_of(std::vector<bool>(values.begin(), values.end()));
  return format == 'c'   ? as(int8_t{})
         : format == 'S' ? as(uint16_t{})
         : format == 'i' ? as(int32_t{})
         : format == 'l' ? as(int64_t{})
         : format == 'f' ? as(float{})
                         : as(double{});
}

// A producer with random offsets: rows that nobody may look at lie in front.
class Producer {
 public:
  explicit Producer(uint32_t seed) : random_(seed) {}
  ~Producer() { EXPECT_EQ(released, handed_out); }

  void column(Cells cells) { columns.push_back(std::move(cells)); }
  ArrowArrayStream stream() {
    ArrowArrayStream made{};
    made.private_data = this;
    made.get_schema = [](ArrowArrayStream* s, ArrowSchema* out) { return static_cast<Producer*>(s->private_data)->give_schema(*out); };
    made.get_next = [](ArrowArrayStream* s, ArrowArray* out) { return static_cast<Producer*>(s->private_data)->give_table(*out); };
    made.get_last_error = [](ArrowArrayStream*) { return "the disk is on fire"; };
    made.release = [](ArrowArrayStream* s) { s->release = nullptr; };
    return made;
  }
  int below(int bound) { return static_cast<int>(random_() % static_cast<uint32_t>(bound)); }

  std::vector<Cells> columns;
  std::vector<size_t> tables;  // rows of each
  std::function<void(ArrayNode&)> spoil;
  int released = 0, fails_at = -1;
  const void* last_values = nullptr;

 private:
  int give_schema(ArrowSchema& out) {
    auto* const top = new SchemaNode;
    top->format = "+s";
    for (const Cells& cells : columns) {
      auto& child = top->children.emplace_back(std::make_unique<SchemaNode>());
      child->name = cells.name;
      child->format = cells.format == "dictionary" ? "c" : cells.format;
      if (cells.format == "dictionary") {
        child->dictionary = std::make_unique<SchemaNode>();
        child->dictionary->format = "u";
      }
      if (cells.format.starts_with("+w")) {
        child->children.push_back(std::make_unique<SchemaNode>());
        child->children[0]->format = "f";
      }
    }
    top->released = &released;
    top->connect();
    out = top->it;
    ++handed_out;
    return 0;
  }

  int give_table(ArrowArray& out) {
    if (static_cast<int>(given_) == fails_at) return 5;
    out = {};
    if (given_ == tables.size()) return 0;
    auto* const top = new ArrayNode;
    top->it.length = static_cast<int64_t>(tables[given_]);
    top->it.offset = below(3);
    top->buffers = {""};
    for (const Cells& cells : columns) top->children.push_back(piece(cells, static_cast<size_t>(top->it.offset)));
    top->released = &released;
    top->connect();
    if (spoil) spoil(*top);
    last_values = top->children[0]->pointers.back();
    out = top->it;
    first_ += tables[given_++];
    ++handed_out;
    return 0;
  }

  std::unique_ptr<ArrayNode> piece(const Cells& cells, size_t before) {
    auto node = std::make_unique<ArrayNode>();
    const size_t rows = tables[given_], offset = static_cast<size_t>(below(9)), pad = offset + before;
    node->it.length = static_cast<int64_t>(rows + before);
    node->it.offset = static_cast<int64_t>(offset);
    std::vector<bool> present(pad, true);
    for (size_t i = 0; i < rows; ++i) {
      present.push_back(cells.texts.empty() ? cells.numbers[(first_ + i) * static_cast<size_t>(cells.width)].has_value()
                                            : cells.texts[first_ + i].has_value());
    }
    node->it.null_count = std::ranges::count(present, false);
    const std::string bits = node->it.null_count > 0 ? bits_of(present) : "";
    if (!cells.texts.empty()) {
      fill_texts(cells, *node, pad, rows);
      node->buffers[0] = bits;
      return node;
    }
    std::vector<double> values(pad * static_cast<size_t>(cells.width), 99);
    for (size_t i = first_ * static_cast<size_t>(cells.width); i < (first_ + rows) * static_cast<size_t>(cells.width); ++i) {
      values.push_back(cells.numbers[i].value_or(77));
    }
    if (cells.width == 1) {
      node->buffers = {bits, numbers_of(cells.format[0], values)};
      return node;
    }
    node->buffers = {bits};
    auto& child = node->children.emplace_back(std::make_unique<ArrayNode>());
    child->it.length = static_cast<int64_t>(values.size());
    child->it.offset = below(4);
    values.insert(values.begin(), static_cast<size_t>(child->it.offset), 55);
    child->buffers = {"", numbers_of('f', values)};
    return node;
  }

  void fill_texts(const Cells& cells, ArrayNode& node, size_t pad, size_t rows) {
    std::vector<std::string> all(pad, "junk");
    for (size_t i = 0; i < rows; ++i) all.push_back(cells.texts[first_ + i].value_or("nothing"));
    const auto texts = [](const std::vector<std::string>& list, auto type) {
      std::vector<decltype(type)> ends{0};
      std::string data;
      for (const std::string& text : list) ends.push_back(static_cast<decltype(type)>((data += text).size()));
      return std::vector<std::string>{"", bytes_of(ends), data};
    };
    if (cells.format != "dictionary") {
      node.buffers = cells.format == "u" ? texts(all, int32_t{}) : texts(all, int64_t{});
      return;
    }
    std::vector<std::string> words{"never"};
    std::vector<int8_t> indices;
    for (const std::string& text : all) {
      if (std::ranges::find(words, text) == words.end()) words.push_back(text);
      indices.push_back(static_cast<int8_t>(std::ranges::find(words, text) - words.begin()));
    }
    node.buffers = {"", bytes_of(indices)};
    node.dictionary = std::make_unique<ArrayNode>();
    node.dictionary->it.length = static_cast<int64_t>(words.size());
    node.dictionary->buffers = texts(words, int32_t{});
  }

  std::mt19937 random_;
  size_t given_ = 0, first_ = 0;
  int handed_out = 0;
};

double number_of(const Tensor& tensor, int64_t i) {
  switch (tensor.dtype()) {
    case DType::i8: return tensor.as<int8_t>()[i];
    case DType::u16: return tensor.as<uint16_t>()[i];
    case DType::i32: return tensor.as<int32_t>()[i];
    case DType::i64: return static_cast<double>(tensor.as<int64_t>()[i]);
    case DType::f32: return tensor.as<float>()[i];
    case DType::f64: return tensor.as<double>()[i];
    case DType::boolean: return tensor.as<bool>()[i];
    default: return -1e9;
  }
}

void draw_columns(Producer& producer, bool nulls) {
  const size_t rows = 1 + static_cast<size_t>(producer.below(20));
  for (size_t left = rows; left > 0;) {
    producer.tables.push_back(std::min(left, static_cast<size_t>(producer.below(8))));
    left -= producer.tables.back();
  }
  const auto lacks = [&] { return nulls && producer.below(4) == 0; };
  int number = 0;
  for (const char* const format : {"c", "S", "i", "l", "f", "g", "b", "+w:3", "u", "U", "dictionary"}) {
    Cells cells{.name = "c" + std::to_string(number++), .format = format, .numbers = {}, .texts = {}};
    cells.width = format[0] == '+' ? 3 : 1;
    for (size_t row = 0; row < rows; ++row) {
      const bool missing = lacks();
      if (*format == 'u' || *format == 'U' || *format == 'd') {
        cells.texts.push_back(missing ? std::nullopt : std::optional("word" + std::to_string(producer.below(6))));
      } else {
        for (int64_t k = 0; k < cells.width; ++k) {
          cells.numbers.push_back(missing ? std::nullopt : std::optional<double>(producer.below(*format == 'b' ? 2 : 100)));
        }
      }
    }
    producer.column(std::move(cells));
  }
}

// Row by row, column by column, what the data set hands out against what went in; -1 or NaN where a value is missing.
void expect_cells(Dataset& data, const std::vector<Cells>& columns, const std::vector<bool>& dropped) {
  std::vector<std::vector<std::string>> names(columns.size());
  for (size_t c = 0; c < columns.size(); ++c) {
    for (size_t row = 0; row < columns[c].texts.size(); ++row) {
      if (columns[c].texts[row] && !dropped[row]) names[c].push_back(*columns[c].texts[row]);
    }
    std::ranges::sort(names[c]);
    names[c].erase(std::unique(names[c].begin(), names[c].end()), names[c].end());
  }
  Element element;
  for (size_t row = 0; row < columns[0].rows(); ++row) {
    if (dropped[row]) continue;
    ASSERT_TRUE(data.next(element).value());
    for (size_t c = 0; c < columns.size(); ++c) {
      const Cells& cells = columns[c];
      if (!cells.texts.empty()) {
        const auto at = cells.texts[row] ? std::ranges::find(names[c], *cells.texts[row]) - names[c].begin() : -1;
        EXPECT_EQ(number_of(element[c], 0), at) << cells.format << " " << row;
        continue;
      }
      ASSERT_EQ(element[c].count(), cells.width);
      for (int64_t k = 0; k < cells.width; ++k) {
        const auto wanted = cells.numbers[row * static_cast<size_t>(cells.width) + static_cast<size_t>(k)];
        if (wanted) EXPECT_EQ(number_of(element[c], k), *wanted) << cells.format << " " << row;
        else EXPECT_TRUE(std::isnan(number_of(element[c], k))) << cells.format << " " << row;
      }
    }
  }
  EXPECT_FALSE(data.next(element).value());
}

TEST(Arrow, RandomTablesComeAsTheyWentIn) {
  for (uint32_t seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE(seed);
    Producer producer(seed);
    draw_columns(producer, seed % 3 != 0);
    ArrowArrayStream stream = producer.stream();
    CsvOptions options;
    options.missing = seed % 3 == 1 ? CsvMissing::keep : CsvMissing::drop_row;
    std::vector<bool> dropped(producer.columns[0].rows());
    for (const Cells& cells : producer.columns) {
      for (size_t row = 0; row < dropped.size() && options.missing == CsvMissing::drop_row; ++row) {
        const size_t first = row * static_cast<size_t>(cells.width);
        if (cells.texts.empty() ? !cells.numbers[first] : !cells.texts[row]) dropped[row] = true;
      }
    }
    std::string schema;
    LeftOut left_out;
    auto data = make_arrow(stream, options, &schema, &left_out);
    EXPECT_EQ(stream.release, nullptr);
    if (std::ranges::count(dropped, false) == 0) {
      EXPECT_EQ(data.status().code(), Code::data_loss);
      continue;
    }
    ASSERT_TRUE(data.ok()) << data.status().message();
    expect_cells(*data.value(), producer.columns, dropped);
    EXPECT_EQ(left_out.count, std::ranges::count(dropped, true));
    CsvOptions again;
    EXPECT_TRUE(read_csv_schema(schema, again).ok()) << schema;
  }
}

TEST(Arrow, APieceWithoutGapsStaysWhereItLies) {
  Producer producer(1);
  producer.tables = {4};
  producer.column({.name = "x", .format = "l", .numbers = {1, 2, 3, 4}, .texts = {}});
  ArrowArrayStream stream = producer.stream();
  auto data = make_arrow(stream, {});
  ASSERT_TRUE(data.ok()) << data.status().message();
  const auto at = reinterpret_cast<uintptr_t>(data.value()->table()->columns()[0].values.data());
  const auto lay = reinterpret_cast<uintptr_t>(producer.last_values);
  EXPECT_TRUE(at >= lay && at < lay + 200) << "it was copied";
  EXPECT_EQ(producer.released, 1) << "the schema only: the array is in use";
}

TEST(Arrow, MeansConstantsLabelsAndVocabularies) {
  const auto make = [](Producer& producer) {
    producer.tables = {2, 2};
    producer.column({.name = "x", .format = "i", .numbers = {1, std::nullopt, 3, 5}, .texts = {}});
    producer.column({.name = "y", .format = "u", .numbers = {}, .texts = {"b", "a", "b", "b"}});
    return producer.stream();
  };
  Producer first(1);
  ArrowArrayStream stream = make(first);
  CsvOptions options;
  options.missing = CsvMissing::mean;
  options.label = "y";
  std::string schema;
  auto data = make_arrow(stream, options, &schema);
  ASSERT_TRUE(data.ok()) << data.status().message();
  Element element;
  for (const auto& [x, y] : std::vector<std::pair<float, int64_t>>{{1, 1}, {3, 0}, {3, 1}, {5, 1}}) {
    ASSERT_TRUE(data.value()->next(element).value());
    EXPECT_EQ(element[0].as<float>()[0], x);
    EXPECT_EQ(element[1].as<int64_t>()[0], y);
  }
  Producer second(2);
  stream = make(second);
  second.columns[1].texts[0] = "c";
  CsvOptions by_schema;
  ASSERT_TRUE(read_csv_schema(schema, by_schema).ok());
  EXPECT_EQ(make_arrow(stream, by_schema).status().code(), Code::invalid_argument) << "a name that the schema does not have";
  // What is to be predicted has no label.
  Producer third(3);
  third.tables = {2};
  third.column({.name = "x", .format = "i", .numbers = {std::nullopt, 7}, .texts = {}});
  stream = third.stream();
  const auto unlabelled = make_arrow(stream, by_schema);
  ASSERT_TRUE(unlabelled.ok()) << unlabelled.status().message();
  for (const float x : {3.0f, 7.0f}) {
    ASSERT_TRUE(unlabelled.value()->next(element).value());
    ASSERT_EQ(element.size(), 1u);
    EXPECT_EQ(element[0].as<float>()[0], x);
  }
  Producer fourth(4);
  fourth.tables = {1};
  fourth.column({.name = "x", .format = "i", .numbers = {1}, .texts = {}});
  stream = fourth.stream();
  EXPECT_EQ(make_arrow(stream, options).status().code(), Code::not_found) << "a label that no schema tells";
}

// As in the other formats: digits that float32 has no room for are told, and texts are UTF-8.
TEST(Arrow, WhatIsLostIsTold) {
  struct Lines final : LogSink {
    std::string all;
    void write(LogLevel, std::string_view, std::string_view message) override { all += std::string(message) + "\n"; }
  } lines;
  const auto read = [&](const char* format, const char* label, std::optional<double> last) {
    Producer producer(5);
    producer.tables = {2, 2};
    producer.column({.name = "day", .format = format, .numbers = {1, 2, 20240101, last}, .texts = {}});
    producer.column({.name = "y", .format = "l", .numbers = {99999999, 0, 1, 1}, .texts = {}});
    ArrowArrayStream stream = producer.stream();
    CsvOptions options;
    options.label = label;
    options.missing = CsvMissing::keep;
    options.log = &lines;
    lines.all.clear();
    EXPECT_TRUE(make_arrow(stream, options).ok());
    return lines.all;
  };
  for (const char* const format : {"l", "i", "g"}) {
    EXPECT_NE(read(format, "y", 3).find("column \"day\" has whole numbers that float32 rounds, 1 of them: row 2 has 20240101"),
              std::string::npos)
        << format << lines.all;
    EXPECT_EQ(lines.all.find("\"y\""), std::string::npos) << lines.all;
  }
  EXPECT_NE(read("l", "", std::nullopt).find("row 2 has 20240101"), std::string::npos) << "missing ones make it float32";
  EXPECT_EQ(read("l", "", 3), "");
  Producer latin(6);
  latin.tables = {2};
  latin.column({.name = "city", .format = "u", .numbers = {}, .texts = {"Bonn", "K\xf6ln"}});
  ArrowArrayStream stream = latin.stream();
  const Status status = make_arrow(stream, {}).status();
  EXPECT_EQ(status.code(), Code::invalid_argument);
  EXPECT_NE(status.message().find("column \"city\" has the text \"K\xef\xbf\xbdln\", which is no UTF-8"), std::string::npos)
      << status.message();
}

// Each producer that is wrong is told so, and gets everything back.
TEST(Arrow, NamesAreOfOneColumnEachAndShapesAsTheSchemaSays) {
  const auto read = [](const char* second, const CsvOptions& options) {
    Producer producer(1);
    producer.tables = {2};
    producer.column({.name = "x", .format = "l", .numbers = {1, 2}, .texts = {}});
    producer.column({.name = second, .format = "l", .numbers = {1, 2}, .texts = {}});
    ArrowArrayStream stream = producer.stream();
    return make_arrow(stream, options).status();
  };
  EXPECT_EQ(read("x", {}).message(),
            "read an Arrow stream: columns 1 and 2 (the first is 1) are both called \"x\"; name them apart, or say "
            "which columns to read, without those");
  CsvOptions options;
  ASSERT_TRUE(read_csv_schema(R"({"rules": [{"name": "y", "shape": [3]}]})", options).ok());
  EXPECT_NE(read("y", options).message().find("rows of column \"y\" have the shape [], and the schema says [3]"), std::string::npos);
}

TEST(Arrow, WhatCannotBeIsAnError) {
  const auto refused = [](Code code, const char* format, std::function<void(ArrayNode&)> spoil, int fails_at = -1) {
    Producer producer(3);
    producer.tables = {3, 2};
    const bool texts = *format == 'u' || *format == 'U' || *format == 'd';
    Cells cells{.name = "x", .format = format, .numbers = {}, .texts = {}};
    if (texts) cells.texts = {"a", "b", "a", "c", "a"};
    else cells.numbers = {1, 2, 3, 4, 5};
    producer.column(std::move(cells));
    producer.spoil = std::move(spoil);
    producer.fails_at = fails_at;
    ArrowArrayStream stream = producer.stream();
    const Status status = make_arrow(stream, {}).status();
    EXPECT_EQ(status.code(), code) << status.message();
    EXPECT_EQ(stream.release, nullptr);
    return std::string(status.message());
  };
  refused(Code::data_loss, "i", [](ArrayNode& top) { top.it.length = -1; });
  refused(Code::data_loss, "i", [](ArrayNode& top) { top.it.length = 1000; });
  refused(Code::data_loss, "i", [](ArrayNode& top) { top.it.offset = INT64_MAX; });
  refused(Code::data_loss, "i", [](ArrayNode& top) { top.it.n_children = 2; });
  refused(Code::data_loss, "i", [](ArrayNode& top) { top.children[0]->it.offset = INT64_MAX - 1; });
  refused(Code::data_loss, "i", [](ArrayNode& top) { top.children[0]->it.n_buffers = 1; });
  refused(Code::data_loss, "i", [](ArrayNode& top) { top.children[0]->pointers[1] = nullptr; });
  // In place: the pointers are made already.
  const auto overwrite = [](ArrayNode& node, char byte) { std::memset(node.buffers[1].data(), byte, node.buffers[1].size()); };
  refused(Code::data_loss, "u", [&](ArrayNode& top) { overwrite(*top.children[0], '\xfb'); });
  refused(Code::data_loss, "U", [&](ArrayNode& top) { overwrite(*top.children[0], '\x81'); });
  refused(Code::data_loss, "dictionary", [&](ArrayNode& top) { overwrite(*top.children[0], '\x70'); });
  refused(Code::data_loss, "dictionary", [&](ArrayNode& top) { overwrite(*top.children[0], '\x80'); });
  refused(Code::data_loss, "dictionary", [](ArrayNode& top) { top.children[0]->it.dictionary = nullptr; });
  EXPECT_NE(refused(Code::data_loss, "i", {}, 1).find("on fire"), std::string::npos);
  EXPECT_NE(refused(Code::unimplemented, "tdD", {}).find("tdD"), std::string::npos);
  ArrowArrayStream gone{};
  EXPECT_EQ(make_arrow(gone, {}).status().code(), Code::invalid_argument);
  Producer producer(4);
  producer.column({.name = "x", .format = "i", .numbers = {1, std::nullopt}, .texts = {}});
  producer.tables = {2};
  ArrowArrayStream stream = producer.stream();
  const Status status = make_arrow(stream, {}).status();
  EXPECT_EQ(status.code(), Code::data_loss);
  EXPECT_NE(status.message().find("row 1"), std::string::npos) << status.message();
}

}  // namespace
}  // namespace dtg
