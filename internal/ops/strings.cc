// Strings, element by element: length, letters, white space, parts, equality. Bytes that are only looked at are not copied: the
// result points into the operand, whose bytes stay as long as the run.
#include <algorithm>
#include <unordered_map>

#include "base/watched.h"
#include "ops/all.h"
#include "ops/integers.h"
#include "ops/texts.h"
#include "ops/unicode_case.h"

namespace dtg::ops {

std::string_view stripped(std::string_view text) {
  while (!text.empty() && is_space(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_space(text.back())) text.remove_suffix(1);
  return text;
}

char32_t next_char(std::string_view& text) {
  constexpr char32_t kBad = 0xfffd;
  const auto lead = static_cast<unsigned char>(text.front());
  text.remove_prefix(1);
  if (lead < 0x80) return lead;
  const int more = lead >= 0xf0 ? 3 : lead >= 0xe0 ? 2 : 1;
  if (lead < 0xc2 || lead > 0xf4) return kBad;
  char32_t c = lead & (0x3fu >> more);
  for (int i = 0; i < more; ++i) {
    if (text.empty() || !is_trail(text.front())) return kBad;
    // The first byte behind the lead rules out what is too long, too large, or half of a pair.
    const auto byte = static_cast<unsigned char>(text.front());
    if (i == 0 && ((lead == 0xe0 && byte < 0xa0) || (lead == 0xed && byte > 0x9f) || (lead == 0xf0 && byte < 0x90) ||
                   (lead == 0xf4 && byte > 0x8f))) {
      return kBad;
    }
    c = c << 6 | (byte & 0x3fu);
    text.remove_prefix(1);
  }
  return c;
}

void append_char(std::string& text, char32_t c) {
  if (c < 0x80) {
    text += static_cast<char>(c);
    return;
  }
  const int more = c < 0x800 ? 1 : c < 0x10000 ? 2 : 3;
  constexpr unsigned kLeads[] = {0, 0xc0, 0xe0, 0xf0};
  text += static_cast<char>(kLeads[more] | c >> 6 * more);
  for (int i = more; i-- > 0;) text += static_cast<char>(0x80u | (c >> 6 * i & 0x3fu));
}

namespace {

using Long = long long;

struct TextArgs {
  int64_t count = 0;
  bool utf8 = false;
  bool upper = false;
};

// ---- StringLength, StringStrip -----------------------------------------------------------------------------

Status length_run(RunContext& c) {
  const auto& a = c.args<TextArgs>();
  for (const int64_t i : watched(a.count, 20)) {
    const std::string_view text = c.in<Text>(0)[i].view();
    const auto length = a.utf8 ? std::ranges::count_if(text, [](char byte) { return !is_trail(byte); }) : static_cast<int64_t>(text.size());
    if (length > INT32_MAX)
      return c.error("string %lld has %lld characters, more than int32 holds", static_cast<Long>(i), static_cast<Long>(length));
    c.out<int32_t>(0)[i] = static_cast<int32_t>(length);
  }
  return {};
}

Status length_prepare(PrepareContext& c) {
  *c.args<TextArgs>() = {c.input(0).shape.count(), c.attr<std::string>("unit") == "UTF8_CHAR", false};
  return c.sync(length_run);
}

Status strip_run(RunContext& c) {
  const auto& a = c.args<TextArgs>();
  for (const int64_t i : watched(a.count, 20)) c.out<Text>(0)[i] = stripped(c.in<Text>(0)[i].view());
  return {};
}

Status strip_prepare(PrepareContext& c) {
  c.args<TextArgs>()->count = c.input(0).shape.count();
  c.may_overwrite(0, 0);
  return c.sync(strip_run);
}

// ---- StringLower, StringUpper ------------------------------------------------------------------------------

char other_case(char c, bool upper) {
  const char from = upper ? 'a' : 'A';
  return c >= from && c <= from + 25 ? static_cast<char>(c ^ 0x20) : c;
}

// Letters of ASCII only; whatever else there is stays.
Status ascii_case_run(RunContext& c) {
  const auto& a = c.args<TextArgs>();
  TextSpace space;
  for (const int64_t i : watched(a.count, 20)) space.want(c.in<Text>(0)[i].bytes);
  DTG_TRY(space.take(c));
  for (const int64_t i : watched(a.count, 20)) {
    const std::string_view text = c.in<Text>(0)[i].view();
    char* const to = space.next(text.size());
    std::ranges::transform(text, to, [&](char byte) { return other_case(byte, a.upper); });
    c.out<Text>(0)[i] = std::string_view(to, text.size());
  }
  return {};
}

Status unicode_case_run(RunContext& c) {
  const auto& a = c.args<TextArgs>();
  return put_texts(c, a.count, [&](int64_t i) {
    const std::string_view text = c.in<Text>(0)[i].view();
    return a.upper ? upper_case(text) : lower_case(text);
  });
}

Status case_prepare(PrepareContext& c) {
  const auto& encoding = c.attr<std::string>("encoding");
  if (!encoding.empty() && encoding != "utf-8") return c.error("encoding \"%s\"; it must be \"\" (ASCII) or \"utf-8\"", encoding.c_str());
  *c.args<TextArgs>() = {c.input(0).shape.count(), false, c.node().op->name() == "StringUpper"};
  return c.sync(encoding.empty() ? ascii_case_run : unicode_case_run);
}

// ---- Substr ------------------------------------------------------------------------------------------------

Status substr_shape(InferContext& c) {
  auto both = PartialShape::merge(c.input(1), c.input(2), "pos and len");
  if (!both.ok()) return c.error("%s", both.status().message().c_str());
  auto out = broadcast_shapes(c.input(0), both.value());
  if (!out.ok()) return c.error("%s", out.status().message().c_str());
  c.output(0, out.take());
  return {};
}

struct SubstrArgs {
  int64_t count = 0;
  DType dtype = DType::i32;
  bool utf8 = false;
  Spread text, place;
};

// Where the character number `chars` begins, counted from the front; false where there are fewer.
bool forward(std::string_view text, int64_t chars, size_t* at) {
  int64_t seen = 0;
  while (seen < chars && *at < text.size()) {
    do ++*at;
    while (*at < text.size() && is_trail(text[*at]));
    ++seen;
  }
  return seen >= chars;
}

// The same from the end backwards.
bool backward(std::string_view text, int64_t chars, size_t* at) {
  int64_t seen = 0;
  *at = text.size();
  while (seen<chars&& * at> 0) {
    do --*at;
    while (*at > 0 && is_trail(text[*at]));
    ++seen;
  }
  return seen >= chars;
}

bool part_of(std::string_view text, int64_t pos, int64_t length, bool utf8, Text* part) {
  size_t begin = 0;
  if (!utf8) {
    const auto size = static_cast<int64_t>(text.size());
    if (pos > size || pos < -size) return false;
    begin = static_cast<size_t>(pos < 0 ? pos + size : pos);
    *part = text.substr(begin, length < 0 ? text.npos : static_cast<size_t>(length));
    return true;
  }
  if (pos >= 0 ? !forward(text, pos, &begin) : pos == INT64_MIN || !backward(text, -pos, &begin)) return false;
  size_t end = begin;
  forward(text, length, &end);
  *part = text.substr(begin, end - begin);
  return true;
}

Status substr_run(RunContext& c) {
  const auto& a = c.args<SubstrArgs>();
  for (const int64_t i : watched(a.count, 20)) {
    const int64_t at = a.place.at(i), pos = integer_at(c.in<char>(1), a.dtype, at), length = integer_at(c.in<char>(2), a.dtype, at);
    if (part_of(c.in<Text>(0)[a.text.at(i)].view(), pos, length, a.utf8, c.out<Text>(0) + i)) continue;
    return c.error("pos %lld lies outside of string %lld", static_cast<Long>(pos), static_cast<Long>(i));
  }
  return {};
}

Status substr_prepare(PrepareContext& c) {
  auto* const a = c.args<SubstrArgs>();
  if (!(c.input(1).shape == c.input(2).shape)) {
    return c.error("pos has shape %s, len %s; they must agree", c.input(1).shape.text().c_str(), c.input(2).shape.text().c_str());
  }
  const Shape& out = c.output(0).shape;
  *a = {out.count(), c.input(1).dtype, c.attr<std::string>("unit") == "UTF8_CHAR", Spread(c.input(0).shape, out),
        Spread(c.input(1).shape, out)};
  return c.sync(substr_run);
}

// ---- Equal, NotEqual, SelectV2 -----------------------------------------------------------------------------

struct PairArgs {
  int64_t count = 0;
  bool equal = true, fit = true;
  Spread a, b;
};

Status equal_run(RunContext& c) {
  const auto& p = c.args<PairArgs>();
  if (!p.fit) *c.out<bool>(0) = !p.equal;
  for (int64_t i = 0; p.fit && i < p.count; ++i) {
    c.out<bool>(0)[i] = (c.in<Text>(0)[p.a.at(i)].view() == c.in<Text>(1)[p.b.at(i)].view()) == p.equal;
  }
  return {};
}

Status equal_prepare(PrepareContext& c) {
  auto* const p = c.args<PairArgs>();
  const Shape &a = c.input(0).shape, &b = c.input(1).shape, &out = c.output(0).shape;
  p->equal = c.node().op->name() == "Equal";
  // Shapes that do not broadcast are an answer here; the shape function refuses them where they are not.
  p->fit = broadcast_shapes(a, b).ok();
  if (p->fit) *p = {out.count(), p->equal, true, Spread(a, out), Spread(b, out)};
  return c.sync(equal_run);
}

struct ChoiceArgs {
  int64_t count = 0;
  Spread condition, yes, no;
};

Status choice_run(RunContext& c) {
  const auto& a = c.args<ChoiceArgs>();
  for (const int64_t i : watched(a.count, 20)) {
    c.out<Text>(0)[i] = c.in<bool>(0)[a.condition.at(i)] ? c.in<Text>(1)[a.yes.at(i)] : c.in<Text>(2)[a.no.at(i)];
  }
  return {};
}

// Select: a vector of conditions names rows; it is the column [n, 1, ...] to broadcasting.
Result<Shape> condition_shape(const PrepareContext& c, const Shape& out) {
  const Shape& condition = c.input(0).shape;
  if (c.node().op->name() == "SelectV2" || condition.rank() != 1 || out.rank() <= 1) return condition;
  int64_t dims[kRankMax] = {condition.dim(0)};
  std::fill(dims + 1, dims + kRankMax, 1);
  return Shape::make({dims, static_cast<size_t>(out.rank())});
}

Status choice_prepare(PrepareContext& c) {
  const Shape& out = c.output(0).shape;
  DTG_ASSIGN(const Shape condition, condition_shape(c, out));
  *c.args<ChoiceArgs>() = {out.count(), Spread(condition, out), Spread(c.input(1).shape, out), Spread(c.input(2).shape, out)};
  return c.sync(choice_run);
}

// ---- Add: one string after the other -----------------------------------------------------------------------

Status add_run(RunContext& c) {
  const auto& p = c.args<PairArgs>();
  TextSpace space;
  for (int64_t i = 0; i < p.count; ++i) {
    space.want(c.in<Text>(0)[p.a.at(i)].bytes);
    space.want(c.in<Text>(1)[p.b.at(i)].bytes);
  }
  DTG_TRY(space.take(c));
  for (int64_t i = 0; i < p.count; ++i) {
    const char* const from = space.here();
    space.put(c.in<Text>(0)[p.a.at(i)].view());
    space.put(c.in<Text>(1)[p.b.at(i)].view());
    c.out<Text>(0)[i] = space.since(from);
  }
  return {};
}

Status add_prepare(PrepareContext& c) {
  const Shape& out = c.output(0).shape;
  *c.args<PairArgs>() = {out.count(), true, true, Spread(c.input(0).shape, out), Spread(c.input(1).shape, out)};
  return c.sync(add_run);
}

// ---- Unique, UniqueWithCounts ------------------------------------------------------------------------------

struct DistinctArgs {
  int64_t count = 0;
  DType index_dtype = DType::i32;
  OutputSpec values, counts;
};

void store_index(char* out, DType dtype, size_t i, int64_t value) {
  if (dtype == DType::i32) reinterpret_cast<int32_t*>(out)[i] = static_cast<int32_t>(value);
  else reinterpret_cast<int64_t*>(out)[i] = value;
}

Status distinct_run(RunContext& c) {
  const auto& a = c.args<DistinctArgs>();
  std::unordered_map<std::string_view, size_t> numbers;
  std::vector<Text> found;
  std::vector<int64_t> often;
  for (const int64_t i : watched(a.count, 20)) {
    const auto [at, fresh] = numbers.emplace(c.in<Text>(0)[i].view(), found.size());
    if (fresh) found.push_back(c.in<Text>(0)[i]), often.push_back(0);
    ++often[at->second];
    store_index(c.out<char>(1), a.index_dtype, static_cast<size_t>(i), static_cast<int64_t>(at->second));
  }
  const Shape shape = Shape::of({static_cast<int64_t>(found.size())});
  DTG_ASSIGN(char* values, a.values.memory(c, shape));
  std::ranges::copy(found, reinterpret_cast<Text*>(values));
  if (a.counts.dtype == DType::invalid) return {};
  DTG_ASSIGN(char* counts, a.counts.memory(c, shape));
  for (size_t u = 0; u < often.size(); ++u) store_index(counts, a.index_dtype, u, often[u]);
  return {};
}

Status distinct_prepare(PrepareContext& c) {
  auto* const a = c.args<DistinctArgs>();
  if (c.input(0).shape.rank() != 1) return c.error("the input must be a vector, but has shape %s", c.input(0).shape.text().c_str());
  a->count = c.input(0).shape.count();
  if (a->count >= INT32_MAX) return c.error("%lld values are too many", static_cast<Long>(a->count));
  a->index_dtype = c.output(1).dtype;
  a->values.prepare(c, 0);
  if (c.num_outputs() > 2) a->counts.prepare(c, 2);
  return c.sync(distinct_run);
}

void register_element_ops(OpTable& ops, KernelTable& kernels) {
  ops.add(OpDef::make("StringLength")
              .input("input: string")
              .output("output: int32")
              .attr("unit: {'BYTE', 'UTF8_CHAR'} = 'BYTE'")
              .shape(unchanged_shape)
              .no_gradient()
              .doc("How many bytes, or characters of UTF-8, each string has."));
  kernels.add({.op = "StringLength", .prepare = length_prepare});
  ops.add(OpDef::make("StringStrip")
              .input("input: string")
              .output("output: string")
              .shape(unchanged_shape)
              .no_gradient()
              .doc("Each string without the white space of ASCII at its ends."));
  kernels.add({.op = "StringStrip", .prepare = strip_prepare});
  for (const char* op : {"StringLower", "StringUpper"}) {
    ops.add(OpDef::make(op)
                .input("input: string")
                .output("output: string")
                .attr("encoding: string = ''")
                .shape(unchanged_shape)
                .no_gradient()
                .doc("Each string in the other case: letters of ASCII, or with encoding 'utf-8' those of Unicode."));
    kernels.add({.op = op, .prepare = case_prepare});
  }
}

}  // namespace

void register_strings(OpTable& ops, KernelTable& kernels) {
  register_element_ops(ops, kernels);
  ops.add(OpDef::make("Substr")
              .input("input: string")
              .input("pos: T")
              .input("len: T")
              .output("output: string")
              .attr("T: {int32, int64}")
              .attr("unit: {'BYTE', 'UTF8_CHAR'} = 'BYTE'")
              .shape(substr_shape)
              .no_gradient()
              .doc("The part of each string that begins at pos, which may count from the end, and is at most len long; pos and len "
                   "have one shape and broadcast against the input."));
  kernels.add({.op = "Substr", .prepare = substr_prepare});
  // Ops of other families on strings.
  for (const char* op : {"Equal", "NotEqual"}) kernels.add({.op = op, .types = {{"T", DTypeSet{DType::string}}}, .prepare = equal_prepare});
  for (const char* op : {"Select", "SelectV2"})
    kernels.add({.op = op, .types = {{"T", DTypeSet{DType::string}}}, .prepare = choice_prepare});
  for (const char* op : {"Unique", "UniqueWithCounts"}) {
    kernels.add({.op = op, .types = {{"T", DTypeSet{DType::string}}}, .prepare = distinct_prepare});
  }
  kernels.add({.op = "Add", .types = {{"T", DTypeSet{DType::string}}}, .prepare = add_prepare});
  register_string_join(ops, kernels);
  register_string_numbers(ops, kernels);
  register_string_hash(ops, kernels);
  register_string_codes(ops, kernels);
  register_string_regex(ops, kernels);
}

}  // namespace dtg::ops
