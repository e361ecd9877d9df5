// Reads a stream of Arrow arrays: what a column is from its schema's format, pieces of it from each array, and one tensor of them in the
// end, or the memory of the only piece. See arrow.h.
#include "data/arrow.h"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <limits>
#include <unordered_map>

#include "base/json.h"
#include "base/reservation.h"
#include "base/spelling.h"
#include "data/exact.h"
#include "data/with_type.h"

namespace dtg {
namespace {

constexpr int64_t kRowsMax = int64_t{1} << 40;
constexpr int64_t kColumnsMax = 1 << 16;

long long ll(int64_t value) { return static_cast<long long>(value); }

// Owners of what the interface hands over.
struct OwnedSchema {
  ArrowSchema it{};
  ~OwnedSchema() {
    if (it.release) it.release(&it);
  }
};
struct OwnedArray final : RefCounted {
  ArrowArray it{};
  ~OwnedArray() override {
    if (it.release) it.release(&it);
  }
};
struct OwnedStream {
  ArrowArrayStream& it;
  ~OwnedStream() {
    it.release(&it);
    it.release = nullptr;
  }
};

// What the cells of a column are, by its format.
enum class Cells : uint8_t { numbers, bits, texts, long_texts };

// A cell of a fixed-width type at `index`, from memory that may not be aligned.
template <class T>
T cell_at(const void* buffer, int64_t index) {
  T value;
  std::memcpy(&value, static_cast<const char*>(buffer) + index * static_cast<int64_t>(sizeof(T)), sizeof(T));
  return value;
}

bool bit_at(const void* buffer, int64_t index) { return (static_cast<const uint8_t*>(buffer)[index / 8] >> (index % 8) & 1) != 0; }

bool is_present(const ArrowArray& array, int64_t index) {
  return array.null_count == 0 || array.n_buffers < 1 || !array.buffers[0] || bit_at(array.buffers[0], index);
}

// What one table has of a column. The values of fixed-size lists stand in an array of their own, inside.
struct Piece {
  Ref<OwnedArray> owner;
  const ArrowArray* rows_of = nullptr;    // whose bits say what is missing
  const ArrowArray* values_of = nullptr;  // the same, unless there are lists
  int64_t rows = 0;
  int64_t first_row = 0;    // from the beginning of the buffers
  int64_t first_value = 0;  // likewise
  bool has(int64_t row) const { return is_present(*rows_of, first_row + row); }
};

struct Growing {
  CsvColumn column;
  const CsvRule* rule = nullptr;
  size_t place = 0;  // among the children
  Cells cells = Cells::numbers;
  DType dtype = DType::invalid;  // of numbers; of a dictionary, of its indices
  bool has_dictionary = false;
  std::vector<int64_t> dims;  // of a fixed-size list
  int64_t width = 1;          // the product of those
  std::vector<Piece> pieces;
  std::unordered_map<std::string, int64_t> ids;
  bool has_names = false;  // given by a schema
  bool is_name() const { return has_dictionary || cells == Cells::texts || cells == Cells::long_texts; }
};

DType number_type(char format) {
  switch (format) {
    case 'c': return DType::i8;
    case 'C': return DType::u8;
    case 's': return DType::i16;
    case 'S': return DType::u16;
    case 'i': return DType::i32;
    case 'I': return DType::u32;
    case 'l': return DType::i64;
    case 'L': return DType::u64;
    case 'e': return DType::f16;
    case 'f': return DType::f32;
    case 'g': return DType::f64;
    default: return DType::invalid;
  }
}

class Reader {
 public:
  explicit Reader(const CsvOptions& options) : options_(options), label_(options.label), held_(options.budget, 0) {}

  Result<CsvTable> read(ArrowArrayStream& stream) {
    OwnedSchema schema;
    if (const int code = stream.get_schema(&stream, &schema.it); code != 0) return said(stream, code, "tell its schema");
    DTG_TRY(choose_columns(schema.it));
    for (;;) {
      auto table = make_ref<OwnedArray>();
      if (const int code = stream.get_next(&stream, &table->it); code != 0) return said(stream, code, "give its next table");
      if (!table->it.release) break;
      DTG_TRY(take(table));
    }
    DTG_TRY(choose_rows());
    CsvTable made;
    made.rows = left_;
    made.left_out = std::move(left_out_);
    for (Growing& growing : columns_) {
      DTG_TRY(finish(growing));
      made.columns.push_back(std::move(growing.column));
    }
    return made;
  }

 private:
  static Status said(ArrowArrayStream& stream, int code, const char* what) {
    const char* const text = stream.get_last_error ? stream.get_last_error(&stream) : nullptr;
    return data_loss("read an Arrow stream: it could not %s: %.500s (error %d)", what, text ? text : "it does not say why", code);
  }
  static Status damaged(const Growing& growing, const char* problem) {
    return data_loss("read an Arrow stream: column %s: %s; the array is not what its schema says", quoted(growing.column.name).c_str(),
                     problem);
  }

  // ---- what the columns are ----

  Status choose_columns(const ArrowSchema& schema) {
    const bool is_table = schema.format && std::string_view(schema.format) == "+s";
    if (!is_table || schema.n_children < 1 || schema.n_children > kColumnsMax || !schema.children) {
      return invalid_argument(
          "read an Arrow stream: its format is \"%.20s\" with %lld columns; it must be one of tables (\"+s\"), with columns",
          schema.format ? schema.format : "", ll(schema.n_children));
    }
    std::vector<std::string_view> names;
    for (int64_t i = 0; i < schema.n_children; ++i) names.push_back(schema.children[i]->name ? schema.children[i]->name : "");
    if (options_.label_may_lack && std::ranges::find(names, options_.label) == names.end()) options_.leave_label_out();
    if (options_.columns.empty()) DTG_TRY(check_names_apart("an Arrow stream", names));
    DTG_TRY(check_once("an Arrow stream", options_.columns));
    for (const std::string& name : options_.columns) DTG_TRY(check_names_apart("an Arrow stream", names, &name));
    const auto find = [&](const std::string& name) -> Result<size_t> {
      const auto at = std::ranges::find(names, name);
      if (at != names.end()) return static_cast<size_t>(at - names.begin());
      return not_found("read an Arrow stream: no column %s; it has %s", quoted(name).c_str(), names_text(name, names).c_str());
    };
    std::vector<std::string> wanted = options_.columns;
    if (wanted.empty()) wanted.assign(names.begin(), names.end());
    for (const CsvRule& rule : options_.rules) DTG_TRY(find(rule.name).status());
    for (size_t i = 0; i < wanted.size(); ++i) {
      Growing& growing = columns_.emplace_back();
      growing.column.name = wanted[i];
      if (options_.columns.empty()) {
        growing.place = i;
      } else {
        DTG_ASSIGN(growing.place, find(wanted[i]));
      }
      DTG_TRY(read_format(*schema.children[growing.place], growing));
      DTG_TRY(apply_rule(growing));
    }
    children_ = schema.n_children;
    return {};
  }

  Status read_format(const ArrowSchema& schema, Growing& growing) const {
    const ArrowSchema* at = &schema;
    std::string_view format = at->format ? at->format : "";
    while (format.starts_with("+w:") && at->n_children == 1 && growing.dims.size() + 1 < kRankMax) {
      int64_t dim = -1;
      const auto [end, wrong] = std::from_chars(format.data() + 3, format.data() + format.size(), dim);
      if (wrong != std::errc() || end != format.data() + format.size() || dim < 0 ||
          __builtin_mul_overflow(growing.width, dim, &growing.width))
        return damaged(growing, "its lists have an impossible length");
      growing.dims.push_back(dim);
      at = at->children[0];
      format = at->format ? at->format : "";
    }
    growing.has_dictionary = at->dictionary != nullptr;
    const std::string_view texts = growing.has_dictionary && at->dictionary->format ? at->dictionary->format : format;
    growing.dtype = format.size() == 1 ? number_type(format[0]) : DType::invalid;
    bool known = growing.dtype != DType::invalid && growing.dtype != DType::f16;
    if (texts == "u" || texts == "U") {
      growing.cells = texts == "u" ? Cells::texts : Cells::long_texts;
      known = (!growing.has_dictionary || kIntegers.has(growing.dtype)) && growing.dims.empty();
    } else if (format == "b") {
      growing.cells = Cells::bits;
      growing.dtype = DType::boolean;
      known = true;
    }
    if (known && (!growing.has_dictionary || growing.is_name()) && !(growing.has_dictionary && texts == format)) return {};
    return unimplemented("read an Arrow stream: column %s has the format \"%.40s\"; numbers, bools, texts, dictionaries of texts, and "
                         "fixed-size lists of numbers are possible, so cast it%s",
                         quoted(growing.column.name).c_str(), schema.format ? schema.format : "",
                         schema.format && schema.format[0] == 't'
                             ? ": a date or time to a number, such as days since a day, or to columns of year, month and "
                               "weekday"
                             : "");
  }

  Status apply_rule(Growing& growing) const {
    CsvColumn& column = growing.column;
    for (const CsvRule& rule : options_.rules) {
      if (rule.name == column.name) growing.rule = &rule;
    }
    const CsvRule* const rule = growing.rule;
    const bool is_real = growing.dtype == DType::f32 || growing.dtype == DType::f64;
    column.kind = growing.is_name() ? CsvKind::category : is_real ? CsvKind::real : CsvKind::whole;
    column.policy = options_.missing_of(column.name, rule);
    if (rule && rule->kind && *rule->kind != column.kind && !(column.kind == CsvKind::whole && *rule->kind == CsvKind::real)) {
      return invalid_argument("read an Arrow stream: column %s holds %s, and the schema gives it another kind", quoted(column.name).c_str(),
                              growing.is_name() ? "names" : dtype_name(growing.dtype));
    }
    if (rule && rule->shape && *rule->shape != growing.dims) {
      return invalid_argument("read an Arrow stream: rows of column %s have the shape %s, and the schema says %s",
                              quoted(column.name).c_str(), dims_text(growing.dims).c_str(), dims_text(*rule->shape).c_str());
    }
    if (rule && rule->kind) column.kind = *rule->kind;
    if (!rule || !rule->names) return {};
    growing.has_names = true;
    column.categories = *rule->names;
    for (const std::string& name : column.categories) growing.ids.emplace(name, static_cast<int64_t>(growing.ids.size()));
    return {};
  }

  // ---- one table ----

  Status take(const Ref<OwnedArray>& table) {
    const ArrowArray& array = table->it;
    if (array.n_children != children_ || !array.children || array.length < 0 || array.offset < 0 || array.length > kRowsMax - rows_ ||
        array.offset > kRowsMax) {
      return data_loss("read an Arrow stream: a table of %lld rows and %lld columns came; its schema has %lld columns", ll(array.length),
                       ll(array.n_children), ll(children_));
    }
    for (int64_t i = 0; array.null_count != 0 && i < array.length; ++i) {
      if (is_present(array, array.offset + i)) continue;
      return data_loss("read an Arrow stream: row %lld as a whole is missing; drop such rows before", ll(rows_ + i));
    }
    for (Growing& growing : columns_) DTG_TRY(take_column(growing, table));
    rows_ += array.length;
    return {};
  }

  Status take_column(Growing& growing, const Ref<OwnedArray>& table) {
    const ArrowArray* at = table->it.children[growing.place];
    Piece piece{table, at, at, table->it.length, 0, 0};
    DTG_TRY(check_extent(growing, at, table->it.offset, piece.rows));
    int64_t count = piece.rows, first = piece.first_row = at->offset + table->it.offset;
    for (const int64_t dim : growing.dims) {
      if (at->n_children != 1 || !at->children) return damaged(growing, "a list without its values");
      if (__builtin_mul_overflow(count, dim, &count) || __builtin_mul_overflow(first, dim, &first))
        return damaged(growing, "it is too long");
      at = at->children[0];
      DTG_TRY(check_extent(growing, at, first, count));
      first += at->offset;
      for (int64_t i = 0; at->null_count != 0 && i < count; ++i) {
        if (is_present(*at, first + i) || !piece.has(i * piece.rows / count)) continue;
        return data_loss("read an Arrow stream: column %s lacks a value inside a list; lists must be whole",
                         quoted(growing.column.name).c_str());
      }
    }
    piece.values_of = at;
    piece.first_value = first;
    DTG_TRY(check_buffers(growing, *at, count));
    growing.pieces.push_back(std::move(piece));
    return {};
  }

  static Status check_buffers(const Growing& growing, const ArrowArray& values, int64_t count) {
    const bool texts = growing.is_name() && !growing.has_dictionary;
    if (values.n_buffers != (texts ? 3 : 2) || !values.buffers || (count > 0 && !values.buffers[1]))
      return damaged(growing, "it lacks a buffer");
    if (!growing.has_dictionary) return {};
    const ArrowArray* const names = values.dictionary;
    if (!names || names->n_buffers != 3 || !names->buffers || names->length < 0 || names->offset < 0 ||
        (names->length > 0 && !names->buffers[1])) {
      return damaged(growing, "it lacks its dictionary");
    }
    return {};
  }

  static Status check_extent(const Growing& growing, const ArrowArray* array, int64_t first, int64_t count) {
    if (!array || array->offset < 0 || array->length < 0 || array->length > kRowsMax || array->offset > kRowsMax || first > array->length ||
        count > array->length - first) {
      return damaged(growing, "it is shorter than its table");
    }
    const bool has_map = array->n_buffers >= 1 && array->buffers;
    if ((array->null_count != 0 && !has_map) || (array->null_count > 0 && !array->buffers[0])) return damaged(growing, "it lacks a buffer");
    return {};
  }

  // ---- all of them ----

  // Calls fn(piece, row of the piece, row of the table) for the rows that are kept, or for all.
  template <class Fn>
  Status each_row(const Growing& growing, Fn&& fn) const {
    int64_t at = 0;
    for (const Piece& piece : growing.pieces) {
      for (int64_t row = 0; row < piece.rows; ++row, ++at) {
        if (dropped_.empty() || !dropped_[static_cast<size_t>(at)]) DTG_TRY(fn(piece, row, at));
      }
    }
    return {};
  }

  Status choose_rows() {
    std::vector<bool> dropped;
    for (const Growing& growing : columns_) {
      const CsvMissing policy = growing.column.policy;
      if (policy != CsvMissing::refuse && policy != CsvMissing::drop_row) continue;
      DTG_TRY(each_row(growing, [&](const Piece& piece, int64_t row, int64_t at) -> Status {
        if (piece.has(row)) return {};
        if (policy == CsvMissing::refuse) {
          return data_loss("read an Arrow stream: row %lld has no value in column %s; %s", ll(at), quoted(growing.column.name).c_str(),
                           options_.missing_advice(growing.column.name, growing.rule).c_str());
        }
        dropped.resize(static_cast<size_t>(rows_));
        if (dropped[static_cast<size_t>(at)]) return {};
        dropped[static_cast<size_t>(at)] = true;
        left_out_.add([&] {
          return format("read an Arrow stream: row %lld has no value in column %s; it was dropped", ll(at),
                        quoted(growing.column.name).c_str());
        });
        return {};
      }));
    }
    dropped_ = std::move(dropped);
    left_ = rows_ - std::ranges::count(dropped_, true);
    if (left_ > 0) return {};
    return data_loss("read an Arrow stream: none of its %lld rows is left", ll(rows_));
  }

  Status finish(Growing& growing) {
    CsvColumn& column = growing.column;
    column.missing = 0;
    DTG_TRY(each_row(growing, [&](const Piece& piece, int64_t row, int64_t) {
      column.missing += !piece.has(row);
      return Status();
    }));
    const bool widens = column.kind == CsvKind::whole && column.missing > 0;
    if (widens) column.kind = CsvKind::real;
    DTG_TRY(find_fill(growing));
    if (growing.is_name()) return finish_names(growing);
    const bool was_whole = growing.dtype != DType::f32 && growing.dtype != DType::f64;
    const DType dtype = column.kind == CsvKind::real && was_whole ? DType::f32 : growing.dtype;
    std::vector<int64_t> dims{left_};
    dims.insert(dims.end(), growing.dims.begin(), growing.dims.end());
    DTG_ASSIGN(const Shape shape, Shape::make(dims));
    const bool narrows = dtype == DType::f32 ? was_whole || growing.dtype == DType::f64 : !label_.empty() && column.name != label_;
    if (narrows && growing.cells == Cells::numbers) with_type(growing.dtype, [&](auto type) { note_rounded<decltype(type)>(growing); });
    DTG_ASSIGN(column.values, share(growing, dtype, shape));
    if (column.values.valid()) return {};
    DTG_TRY(held_.grow(shape.count() * dtype_size(dtype), "an Arrow stream"));
    DTG_ASSIGN(column.values, Tensor::allocate(dtype, shape));
    with_type(growing.dtype, [&](auto from) { with_type(dtype, [&](auto to) { copy<decltype(from), decltype(to)>(growing); }); });
    if (column.policy == CsvMissing::keep) column.fill = 0;
    return {};
  }

  // The memory of the only piece, where nothing has to be changed; invalid: it cannot be that.
  Result<Tensor> share(const Growing& growing, DType dtype, const Shape& shape) const {
    if (growing.pieces.size() != 1 || growing.cells != Cells::numbers || growing.column.missing > 0 || !dropped_.empty() ||
        dtype != growing.dtype || shape.count() == 0) {
      return Tensor();
    }
    const Piece& piece = growing.pieces[0];
    const int64_t size = dtype_size(dtype);
    const void* const data = static_cast<const char*>(piece.values_of->buffers[1]) + piece.first_value * size;
    if (reinterpret_cast<uintptr_t>(data) % static_cast<uintptr_t>(size) != 0) return Tensor();
    Ref<OwnedArray> owner = piece.owner;
    // A table is only read.
    Ref<Buffer> buffer = Buffer::borrow(const_cast<void*>(data), shape.count() * size, &give_back, owner.get());
    owner.leak();
    return Tensor::wrap(std::move(buffer), 0, dtype, shape);
  }
  static void give_back(void*, size_t, void* owner) { static_cast<OwnedArray*>(owner)->release(); }

  // What float32 has no room for.
  template <class T>
  void note_rounded(Growing& growing) const {
    (void)each_row(growing, [&](const Piece& piece, int64_t row, int64_t at) {
      const int64_t first = piece.first_value + row * growing.width;
      for (int64_t k = 0; k < growing.width && piece.has(row); ++k) {
        const T value = cell_at<T>(piece.values_of->buffers[1], first + k);
        if (!is_exact(value)) growing.column.rounded.add(at, format("%.0Lf", static_cast<long double>(value)));
      }
      return Status();
    }).ok();
  }

  template <class From, class To>
  void copy(Growing& growing) const {
    To* to = growing.column.values.template as<To>();
    const bool bits = growing.cells == Cells::bits;
    (void)each_row(growing, [&](const Piece& piece, int64_t row, int64_t) {
      const void* const values = piece.values_of->buffers[1];
      const int64_t first = piece.first_value + row * growing.width;
      const bool has = piece.has(row);
      for (int64_t k = 0; k < growing.width; ++k, ++to) {
        if (!has) *to = static_cast<To>(growing.column.fill);
        else *to = bits ? static_cast<To>(bit_at(values, first + k)) : static_cast<To>(cell_at<From>(values, first + k));
      }
      return Status();
    }).ok();
  }

  // What stands for missing numbers; NaN where they are kept, which finish() takes back.
  Status find_fill(Growing& growing) const {
    CsvColumn& column = growing.column;
    if (column.policy == CsvMissing::keep) column.fill = std::numeric_limits<double>::quiet_NaN();
    const bool by_mean = column.policy == CsvMissing::mean;
    if (!by_mean && column.policy != CsvMissing::constant) return {};
    if (growing.is_name()) {
      if (!(growing.rule && growing.rule->missing) && column.missing == 0) {
        column.policy = CsvMissing::refuse;
        return {};
      }
      return invalid_argument("read an Arrow stream: missing values of column %s cannot be a number: it holds names; drop such rows "
                              "or keep them",
                              quoted(column.name).c_str());
    }
    if (growing.rule && growing.rule->value) {
      column.fill = *growing.rule->value;
      return {};
    }
    if (!growing.dims.empty() && column.missing > 0) {
      return invalid_argument("read an Arrow stream: column %s holds lists, of which there is no mean; drop such rows, or say a "
                              "constant",
                              quoted(column.name).c_str());
    }
    if (!growing.dims.empty()) return {};
    double sum = 0;
    with_type(growing.dtype, [&](auto type) { sum = sum_of<decltype(type)>(growing); });
    if (left_ == column.missing) {
      return data_loss("read an Arrow stream: column %s has no value that a mean could be taken of", quoted(column.name).c_str());
    }
    column.fill = sum / static_cast<double>(left_ - column.missing);
    return {};
  }

  template <class T>
  double sum_of(const Growing& growing) const {
    double sum = 0;
    (void)each_row(growing, [&](const Piece& piece, int64_t row, int64_t) {
      const void* const values = piece.values_of->buffers[1];
      const int64_t at = piece.first_value + row;
      if (piece.has(row)) sum += growing.cells == Cells::bits ? bit_at(values, at) : static_cast<double>(cell_at<T>(values, at));
      return Status();
    }).ok();
    return sum;
  }

  // ---- names ----

  Result<std::string_view> text_at(const Growing& growing, const ArrowArray& array, int64_t index) const {
    int64_t from = 0, to = 0;
    if (growing.cells == Cells::long_texts) {
      from = cell_at<int64_t>(array.buffers[1], index);
      to = cell_at<int64_t>(array.buffers[1], index + 1);
    } else {
      from = cell_at<int32_t>(array.buffers[1], index);
      to = cell_at<int32_t>(array.buffers[1], index + 1);
    }
    if (from < 0 || to < from || (to > from && !array.buffers[2])) return damaged(growing, "a text ends before it begins");
    const std::string_view text(static_cast<const char*>(array.buffers[2]) + from, static_cast<size_t>(to - from));
    if (is_utf8(text)) return text;
    return invalid_argument(
        "read an Arrow stream: column %s has the text %s, which is no UTF-8; Arrow's texts are UTF-8, so decode it where "
        "the table is made",
        quoted(growing.column.name).c_str(), quoted(text).c_str());
  }

  Result<std::string_view> name_at(const Growing& growing, const Piece& piece, int64_t row) const {
    const int64_t at = piece.first_value + row;
    if (!growing.has_dictionary) return text_at(growing, *piece.values_of, at);
    int64_t index = -1;
    with_type(growing.dtype, [&](auto type) { index = static_cast<int64_t>(cell_at<decltype(type)>(piece.values_of->buffers[1], at)); });
    const ArrowArray& names = *piece.values_of->dictionary;
    if (index < 0 || index >= names.length) return damaged(growing, "a number is not in its dictionary");
    if (!is_present(names, names.offset + index)) return damaged(growing, "a name is missing in its dictionary");
    return text_at(growing, names, names.offset + index);
  }

  Status finish_names(Growing& growing) {
    CsvColumn& column = growing.column;
    DTG_TRY(held_.grow(left_ * 8, "an Arrow stream"));
    DTG_ASSIGN(column.values, Tensor::allocate(DType::i64, Shape::of({left_})));
    int64_t* const first = column.values.as<int64_t>();
    int64_t* to = first;
    const Status numbered = each_row(growing, [&](const Piece& piece, int64_t row, int64_t at) -> Status {
      *to = -1;
      if (piece.has(row)) {
        DTG_ASSIGN(const std::string_view name, name_at(growing, piece, row));
        auto known = growing.ids.find(std::string(name));
        if (known == growing.ids.end()) {
          if (growing.has_names) return unknown_name(growing, name, at);
          DTG_TRY(held_.grow(static_cast<int64_t>(name.size()) + 64, "an Arrow stream"));
          known = growing.ids.emplace(name, static_cast<int64_t>(growing.ids.size())).first;
        }
        *to = known->second;
      }
      ++to;
      return {};
    });
    DTG_TRY(numbered);
    column.fill = 0;
    if (!growing.has_names) sort_names(growing, {first, static_cast<size_t>(left_)});
    return {};
  }

  static Status unknown_name(const Growing& growing, std::string_view name, int64_t row) {
    const std::vector<std::string_view> names(growing.column.categories.begin(), growing.column.categories.end());
    return invalid_argument("read an Arrow stream: row %lld has %s in column %s, which is none of its %zu names: %s", ll(row),
                            quoted(name).c_str(), quoted(growing.column.name).c_str(), names.size(), names_text(name, names).c_str());
  }

  // Numbers by name instead of by appearance, so that shuffled copies of a table agree on them.
  static void sort_names(Growing& growing, std::span<int64_t> numbers) {
    std::vector<std::string>& names = growing.column.categories;
    for (const auto& [name, id] : growing.ids) names.push_back(name);
    std::ranges::sort(names);
    std::vector<int64_t> renamed(names.size());
    for (size_t i = 0; i < names.size(); ++i) renamed[static_cast<size_t>(growing.ids.find(names[i])->second)] = static_cast<int64_t>(i);
    for (int64_t& number : numbers) {
      if (number >= 0) number = renamed[static_cast<size_t>(number)];
    }
  }

  CsvOptions options_;
  const std::string label_;
  Reservation held_;
  std::vector<Growing> columns_;
  int64_t children_ = 0;
  int64_t rows_ = 0;
  int64_t left_ = 0;
  std::vector<bool> dropped_;  // by row; empty: none
  LeftOut left_out_;
};

}  // namespace

Result<DatasetPtr> make_arrow(ArrowArrayStream& stream, const CsvOptions& options, std::string* schema, LeftOut* left_out) {
  if (!stream.release || !stream.get_schema || !stream.get_next) {
    return invalid_argument("read an Arrow stream: it was released, or never filled");
  }
  const OwnedStream owned{stream};
  const CsvOptions all = options.with_label();
  DTG_ASSIGN(CsvTable table, Reader(all).read(stream));
  if (left_out) *left_out = std::move(table.left_out);
  if (schema) *schema = csv_schema_text(table, options.label);
  return slices_of(table, options, "an Arrow stream", "row");
}

}  // namespace dtg
