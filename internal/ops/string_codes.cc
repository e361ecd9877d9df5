// Strings as other bytes: EncodeBase64, DecodeBase64, DecodeRaw, and the private pair that packs strings for the way to another task.
#include <algorithm>
#include <array>
#include <cstring>

#include "base/watched.h"
#include "ops/all.h"
#include "ops/integers.h"
#include "ops/texts.h"

namespace dtg::ops {
namespace {

using Long = long long;

// ---- base64, with the letters that are safe in addresses ----------------------------------------------------------------

constexpr char kLetters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

constexpr auto kValues = [] {
  std::array<int8_t, 256> values{};
  for (int8_t& value : values) value = -1;
  for (int8_t i = 0; i < 64; ++i) values[static_cast<uint8_t>(kLetters[i])] = i;
  return values;
}();

struct CodeArgs {
  int64_t count = 0;
  bool pad = false;
};

uint64_t encoded_size(uint64_t bytes, bool pad) { return pad ? (bytes + 2) / 3 * 4 : bytes / 3 * 4 + (bytes % 3 ? bytes % 3 + 1 : 0); }

char* encode(std::string_view text, bool pad, char* to) {
  for (; !text.empty(); text.remove_prefix(std::min<size_t>(text.size(), 3))) {
    const size_t have = std::min<size_t>(text.size(), 3);
    uint32_t bits = 0;
    for (size_t i = 0; i < 3; ++i) bits = bits << 8 | (i < have ? static_cast<uint8_t>(text[i]) : 0u);
    for (size_t i = 0; i < 4; ++i) {
      if (i <= have) *to++ = kLetters[bits >> (18 - 6 * i) & 63];
      else if (pad) *to++ = '=';
    }
  }
  return to;
}

Status encode_run(RunContext& c) {
  const auto& a = c.args<CodeArgs>();
  TextSpace space;
  for (const int64_t i : watched(a.count, 20)) space.want(encoded_size(c.in<Text>(0)[i].bytes, a.pad));
  DTG_TRY(space.take(c));
  for (const int64_t i : watched(a.count, 20)) {
    const std::string_view text = c.in<Text>(0)[i].view();
    const uint64_t size = encoded_size(text.size(), a.pad);
    char* const to = space.next(size);
    encode(text, a.pad, to);
    c.out<Text>(0)[i] = std::string_view(to, size);
  }
  return {};
}

Status encode_prepare(PrepareContext& c) {
  *c.args<CodeArgs>() = {c.input(0).shape.count(), c.boolean("pad")};
  return c.sync(encode_run);
}

// Without what it was padded with, which only the end of a whole number of fours can be.
std::string_view unpadded(std::string_view text) {
  if (text.empty() || text.size() % 4 != 0 || text.back() != '=') return text;
  text.remove_suffix(1);
  if (text.back() == '=') text.remove_suffix(1);
  return text;
}

bool decode(std::string_view text, char* to) {
  if (text.size() % 4 == 1) return false;
  uint32_t bits = 0;
  int have = 0;
  for (const char letter : text) {
    const int value = kValues[static_cast<uint8_t>(letter)];
    if (value < 0) return false;
    bits = bits << 6 | static_cast<uint32_t>(value);
    have += 6;
    if (have < 8) continue;
    have -= 8;
    *to++ = static_cast<char>(bits >> have & 0xff);
  }
  return true;
}

Status decode_run(RunContext& c) {
  const auto& a = c.args<CodeArgs>();
  TextSpace space;
  for (const int64_t i : watched(a.count, 20)) space.want(unpadded(c.in<Text>(0)[i].view()).size() * 3 / 4);
  DTG_TRY(space.take(c));
  for (const int64_t i : watched(a.count, 20)) {
    const std::string_view text = unpadded(c.in<Text>(0)[i].view());
    const uint64_t size = text.size() * 3 / 4;
    char* const to = space.next(size);
    if (!decode(text, to)) return c.error("string %lld is no base64 of the alphabet that is safe in addresses", static_cast<Long>(i));
    c.out<Text>(0)[i] = std::string_view(to, size);
  }
  return {};
}

Status decode_prepare(PrepareContext& c) {
  c.args<CodeArgs>()->count = c.input(0).shape.count();
  return c.sync(decode_run);
}

// ---- DecodeRaw ---------------------------------------------------------------------------------------------

Status raw_shape(InferContext& c) {
  PartialShape out = c.input(0);
  if (out.has_rank()) DTG_TRY(in_op(c.node(), out.append(-1)));
  c.output(0, out);
  return {};
}

struct RawArgs {
  Shape in;
  DType dtype = DType::invalid;
  int64_t swap = 1;  // bytes that are turned around together
  OutputSpec out;
};

// Bytes become elements; no bool is anything but true or false.
void write_raw(const RawArgs& a, std::string_view bytes, char* to) {
  if (bytes.empty()) return;
  std::memcpy(to, bytes.data(), bytes.size());
  const auto size = static_cast<size_t>(a.swap);
  for (size_t at = 0; size > 1 && at < bytes.size(); at += size) std::reverse(to + at, to + at + size);
  if (a.dtype != DType::boolean) return;
  for (size_t at = 0; at < bytes.size(); ++at) to[at] = to[at] != 0;
}

Status raw_run(RunContext& c) {
  const auto& a = c.args<RawArgs>();
  const int64_t count = a.in.count(), size = dtype_size(a.dtype);
  const uint64_t bytes = count > 0 ? c.in<Text>(0)[0].bytes : 0;
  if (bytes % static_cast<uint64_t>(size) != 0) {
    return c.error("the strings have %llu bytes, no whole number of %s", static_cast<unsigned long long>(bytes), dtype_name(a.dtype));
  }
  for (int64_t i = 1; i < count; ++i) {
    if (c.in<Text>(0)[i].bytes == bytes) continue;
    return c.error("string %lld has %llu bytes, those before it %llu", static_cast<Long>(i),
                   static_cast<unsigned long long>(c.in<Text>(0)[i].bytes), static_cast<unsigned long long>(bytes));
  }
  int64_t dims[kRankMax + 1];
  std::copy(a.in.dims().begin(), a.in.dims().end(), dims);
  dims[a.in.rank()] = static_cast<int64_t>(bytes) / size;
  const auto shape = Shape::make({dims, static_cast<size_t>(a.in.rank()) + 1});
  if (!shape.ok()) return c.error("%s", shape.status().message().c_str());
  DTG_ASSIGN(char* out, a.out.memory(c, shape.value()));
  for (int64_t i = 0; i < count; ++i) write_raw(a, c.in<Text>(0)[i].view(), out + i * static_cast<int64_t>(bytes));
  return {};
}

Status raw_prepare(PrepareContext& c) {
  auto* const a = c.args<RawArgs>();
  a->in = c.input(0).shape;
  a->dtype = c.output(0).dtype;
  const int64_t size = dtype_size(a->dtype);
  if (!c.boolean("little_endian")) a->swap = kComplex.has(a->dtype) ? size / 2 : size;
  a->out.prepare(c, 0);
  return c.sync(raw_run);
}

// ---- packing: rank and dimensions, then what tensor/text.h says --------------------------------------------------------

struct PackArgs {
  Shape shape;
  OutputSpec out;
};

int64_t head_bytes(int rank) { return 8 * (1 + int64_t{rank}); }

Status packed_shape(InferContext& c) {
  c.output(0, PartialShape::vector(-1));
  return {};
}

Status pack_run(RunContext& c) {
  const auto& a = c.args<PackArgs>();
  const std::span<const Text> texts(c.in<Text>(0), static_cast<size_t>(a.shape.count()));
  const int64_t bytes = packed_bytes(texts), head = head_bytes(a.shape.rank());
  if (bytes < 0 || bytes > INT64_MAX / 4)
    return resource_exhausted("%s: the strings together are larger than any memory", c.node().op->name().c_str());
  DTG_ASSIGN(char* out, a.out.memory(c, Shape::of({head + bytes})));
  const auto put = [&](int64_t word) {
    for (int i = 0; i < 8; ++i) *out++ = static_cast<char>(static_cast<uint64_t>(word) >> 8 * i & 0xff);
  };
  put(a.shape.rank());
  for (const int64_t dim : a.shape.dims()) put(dim);
  pack_texts(texts, out);
  return {};
}

Status pack_prepare(PrepareContext& c) {
  auto* const a = c.args<PackArgs>();
  a->shape = c.input(0).shape;
  a->out.prepare(c, 0);
  return c.sync(pack_run);
}

Status unpacked_shape(InferContext& c) {
  DTG_TRY(c.require_rank(0, 1));
  c.output(0, c.attr<PartialShape>("shape"));
  return {};
}

struct UnpackArgs {
  PartialShape shape;
  int64_t bytes = 0;
  OutputSpec out;
};

// The shape in front, which is foreign: no more elements than the rest has room for.
Result<Shape> packed_head(std::string_view& bytes) {
  const auto take = [&](uint64_t* word) {
    if (bytes.size() < 8) return false;
    *word = 0;
    for (size_t i = 0; i < 8; ++i) *word |= uint64_t{static_cast<uint8_t>(bytes[i])} << 8 * i;
    bytes.remove_prefix(8);
    return true;
  };
  uint64_t rank = 0, dims[kRankMax] = {};
  bool good = take(&rank) && rank <= kRankMax;
  for (uint64_t d = 0; good && d < rank; ++d) good = take(&dims[d]) && dims[d] <= INT64_MAX;
  if (!good) return data_loss("packed strings without a shape in front");
  int64_t known[kRankMax];
  std::copy(dims, dims + kRankMax, known);
  auto shape = Shape::make({known, static_cast<size_t>(rank)});
  if (!shape.ok() || static_cast<uint64_t>(shape.value().count()) > bytes.size() / 8) {
    return data_loss("packed strings of a shape with more elements than there are bytes");
  }
  return shape;
}

Status unpack_run(RunContext& c) {
  const auto& a = c.args<UnpackArgs>();
  // What came in may lie in memory that is used again before the run ends.
  TextSpace space;
  space.want(static_cast<uint64_t>(a.bytes));
  DTG_TRY(space.take(c));
  const char* const copy = space.here();
  space.put({c.in<char>(0), static_cast<size_t>(a.bytes)});
  std::string_view bytes = space.since(copy).view();
  DTG_ASSIGN(const Shape shape, packed_head(bytes));
  if (!a.shape.admits(shape)) return data_loss("strings of shape %s came, %s was expected", shape.text().c_str(), a.shape.text().c_str());
  DTG_ASSIGN(char* out, a.out.memory(c, shape));
  return unpack_texts(bytes, {reinterpret_cast<Text*>(out), static_cast<size_t>(shape.count())});
}

Status unpack_prepare(PrepareContext& c) {
  auto* const a = c.args<UnpackArgs>();
  a->shape = c.attr<PartialShape>("shape");
  a->bytes = c.input(0).shape.count();
  a->out.prepare(c, 0);
  return c.sync(unpack_run);
}

void register_packing(OpTable& ops, KernelTable& kernels) {
  ops.add(OpDef::make("_PackStrings")
              .input("strings: string")
              .output("packed: uint8")
              .role(Role::pack)
              .shape(packed_shape)
              .no_gradient()
              .doc("Private: strings and their shape as plain bytes, for the way to another task."));
  kernels.add({.op = "_PackStrings", .prepare = pack_prepare});
  ops.add(OpDef::make("_UnpackStrings")
              .input("packed: uint8", {.rank = 1})
              .output("strings: string")
              .attr("shape: shape = unknown")
              .role(Role::unpack)
              .shape(unpacked_shape)
              .no_gradient()
              .doc("Private: the strings that _PackStrings packed; bytes that are anything else are DATA_LOSS."));
  kernels.add({.op = "_UnpackStrings", .prepare = unpack_prepare});
}

}  // namespace

void register_string_codes(OpTable& ops, KernelTable& kernels) {
  ops.add(OpDef::make("EncodeBase64")
              .input("input: string")
              .output("output: string")
              .attr("pad: bool = false")
              .shape(unchanged_shape)
              .no_gradient()
              .doc("Each string in base64, with the letters that are safe in addresses, padded where it is asked for."));
  kernels.add({.op = "EncodeBase64", .prepare = encode_prepare});
  ops.add(OpDef::make("DecodeBase64")
              .input("input: string")
              .output("output: string")
              .shape(unchanged_shape)
              .no_gradient()
              .doc("What EncodeBase64 made each string from, padded or not."));
  kernels.add({.op = "DecodeBase64", .prepare = decode_prepare});
  ops.add(OpDef::make("DecodeRaw")
              .input("bytes: string")
              .output("output: out_type")
              .attr("out_type: {half, float, double, int32, uint16, uint8, int16, int8, int64, complex64, complex128, bool, bfloat16}")
              .attr("little_endian: bool = true")
              .shape(raw_shape)
              .no_gradient()
              .doc("The bytes of each string as elements of a type, in a dimension behind the others; all strings are as long."));
  kernels.add({.op = "DecodeRaw", .types = {{"out_type", kPlain}}, .prepare = raw_prepare});
  register_packing(ops, kernels);
}

}  // namespace dtg::ops
