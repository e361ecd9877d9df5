// Buckets for strings: StringToHashBucket, -Fast and -Strong. The hashes are those that TensorFlow's are, so that what was trained there
// finds its buckets here: a MurmurHash2 of 64 bits with one last multiplication where bytes are left, FarmHash's fingerprint, SipHash-2-4.
#include <bit>
#include <cstring>

#include "base/keyed_hash.h"
#include "base/watched.h"
#include "ops/all.h"
#include "ops/integers.h"
#include "ops/texts.h"

namespace dtg::ops {
namespace {

uint64_t load64(const char* at) {
  uint64_t word = 0;
  std::memcpy(&word, at, 8);
  if constexpr (std::endian::native == std::endian::big) word = __builtin_bswap64(word);
  return word;
}

uint64_t load32(const char* at) {
  uint32_t word = 0;
  std::memcpy(&word, at, 4);
  if constexpr (std::endian::native == std::endian::big) word = __builtin_bswap32(word);
  return word;
}

// The last bytes, fewer than 8, as the low ones of a word.
uint64_t load_rest(std::string_view rest) {
  uint64_t word = 0;
  for (size_t i = 0; i < rest.size(); ++i) word |= uint64_t{static_cast<uint8_t>(rest[i])} << 8 * i;
  return word;
}

// ---- the plain one -----------------------------------------------------------------------------------------

uint64_t plain_hash(std::string_view text) {
  constexpr uint64_t kMul = 0xc6a4a7935bd1e995, kSeed = 0xdecafcaffe;
  uint64_t hash = kSeed ^ (text.size() * kMul);
  for (; text.size() >= 8; text.remove_prefix(8)) {
    uint64_t word = load64(text.data()) * kMul;
    word ^= word >> 47;
    hash = (hash ^ (word * kMul)) * kMul;
  }
  if (!text.empty()) hash = (hash ^ load_rest(text)) * kMul;
  hash = (hash ^ hash >> 47) * kMul;
  return hash ^ hash >> 47;
}

// ---- the fingerprint ---------------------------------------------------------------------------------------

constexpr uint64_t k0 = 0xc3a5c85c97cb3127, k1 = 0xb492b66fbe98f273, k2 = 0x9ae16a3b2f90404f;

uint64_t turn(uint64_t word, int bits) { return std::rotr(word, bits); }
uint64_t shift_mix(uint64_t word) { return word ^ word >> 47; }
uint64_t mix(uint64_t u, uint64_t v, uint64_t mul) {
  const uint64_t a = shift_mix((u ^ v) * mul);
  return shift_mix((v ^ a) * mul) * mul;
}

uint64_t print_to_16(const char* s, size_t n) {
  const uint64_t mul = k2 + n * 2;
  if (n >= 8) {
    const uint64_t a = load64(s) + k2, b = load64(s + n - 8);
    return mix(turn(b, 37) * mul + a, (turn(a, 25) + b) * mul, mul);
  }
  if (n >= 4) return mix(n + (load32(s) << 3), load32(s + n - 4), mul);
  if (n == 0) return k2;
  const auto at = [s](size_t i) { return uint32_t{static_cast<uint8_t>(s[i])}; };
  const uint32_t y = at(0) + (at(n >> 1) << 8), z = static_cast<uint32_t>(n) + (at(n - 1) << 2);
  return shift_mix(y * k2 ^ z * k0) * k2;
}

uint64_t print_to_32(const char* s, size_t n) {
  const uint64_t mul = k2 + n * 2;
  const uint64_t a = load64(s) * k1, b = load64(s + 8), c = load64(s + n - 8) * mul, d = load64(s + n - 16) * k2;
  return mix(turn(a + b, 43) + turn(c, 30) + d, a + turn(b + k2, 18) + c, mul);
}

uint64_t print_to_64(const char* s, size_t n) {
  const uint64_t mul = k2 + n * 2;
  const uint64_t a = load64(s) * k2, b = load64(s + 8), c = load64(s + n - 8) * mul, d = load64(s + n - 16) * k2;
  const uint64_t y = turn(a + b, 43) + turn(c, 30) + d, z = mix(y, a + turn(b + k2, 18) + c, mul);
  const uint64_t e = load64(s + 16) * mul, f = load64(s + 24);
  const uint64_t g = (y + load64(s + n - 32)) * mul, h = (z + load64(s + n - 24)) * mul;
  return mix(turn(e + f, 43) + turn(g, 30) + h, e + turn(f + a, 18) + g, mul);
}

struct Pair {
  uint64_t first = 0, second = 0;
};

Pair weak(const char* s, uint64_t a, uint64_t b) {
  const uint64_t x = load64(s + 8), y = load64(s + 16), z = load64(s + 24);
  a += load64(s);
  b = turn(b + a + z, 21);
  const uint64_t c = a;
  a += x + y;
  b += turn(a, 44);
  return {a + z, b + c};
}

uint64_t fingerprint(std::string_view text) {
  const char* s = text.data();
  const size_t n = text.size();
  if (n <= 16) return print_to_16(s, n);
  if (n <= 32) return print_to_32(s, n);
  if (n <= 64) return print_to_64(s, n);
  uint64_t x = 81 * k2 + load64(s), y = 81 * k1 + 113, z = shift_mix(y * k2 + 113) * k2;
  Pair v, w;
  const char* const end = s + (n - 1) / 64 * 64;
  const auto round = [&](uint64_t mul, uint64_t nine) {
    x = turn(x + y + v.first + load64(s + 8), 37) * mul;
    y = turn(y + v.second + load64(s + 48), 42) * mul;
    x ^= w.second * nine;
    y += v.first * nine + load64(s + 40);
    z = turn(z + w.first, 33) * mul;
    v = weak(s, v.second * mul, x + w.first);
    w = weak(s + 32, z + w.second, y + load64(s + 16));
    std::swap(z, x);
  };
  for (; s != end; s += 64) round(k1, 1);
  const uint64_t mul = k1 + ((z & 0xff) << 1);
  s = text.data() + n - 64;
  w.first += (n - 1) & 63;
  v.first += w.first;
  w.first += v.first;
  round(mul, 9);
  return mix(mix(v.first, w.first, mul) + shift_mix(y) * k0 + z, mix(v.second, w.second, mul) + x, mul);
}

// ---- the ops -----------------------------------------------------------------------------------------------

struct BucketArgs {
  int64_t count = 0;
  uint64_t buckets = 1;
  HashKey key;
};

template <class Hash>
Status fill_buckets(RunContext& c, Hash&& hash) {
  const auto& a = c.args<BucketArgs>();
  for (const int64_t i : watched(a.count, 20)) c.out<int64_t>(0)[i] = static_cast<int64_t>(hash(c.in<Text>(0)[i].view()) % a.buckets);
  return {};
}

Status plain_run(RunContext& c) { return fill_buckets(c, plain_hash); }
Status fast_run(RunContext& c) { return fill_buckets(c, fingerprint); }
Status strong_run(RunContext& c) {
  return fill_buckets(c, [&](std::string_view text) { return keyed_hash(text, c.args<BucketArgs>().key); });
}

Status prepare_buckets(PrepareContext& c) {
  auto* const a = c.args<BucketArgs>();
  a->count = c.input(0).shape.count();
  a->buckets = static_cast<uint64_t>(c.integer("num_buckets"));
  return {};
}

Status plain_prepare(PrepareContext& c) {
  DTG_TRY(prepare_buckets(c));
  return c.sync(plain_run);
}

Status fast_prepare(PrepareContext& c) {
  DTG_TRY(prepare_buckets(c));
  return c.sync(fast_run);
}

Status strong_prepare(PrepareContext& c) {
  DTG_TRY(prepare_buckets(c));
  const auto& key = c.attr<std::vector<int64_t>>("key");
  if (key.size() != 2) return c.error("key has %zu numbers; it must have 2", key.size());
  c.args<BucketArgs>()->key = {static_cast<uint64_t>(key[0]), static_cast<uint64_t>(key[1])};
  return c.sync(strong_run);
}

}  // namespace

void register_string_hash(OpTable& ops, KernelTable& kernels) {
  struct Row {
    const char* op;
    const char* input;
    PrepareFn prepare;
    const char* doc;
  };
  for (const Row& row :
       {Row{"StringToHashBucket", "string_tensor: string", plain_prepare, "A bucket below num_buckets for each string, by a plain hash."},
        Row{"StringToHashBucketFast", "input: string", fast_prepare,
            "A bucket below num_buckets for each string, by its FarmHash fingerprint."},
        Row{"StringToHashBucketStrong", "input: string", strong_prepare,
            "A bucket below num_buckets for each string, by SipHash under a key of two numbers: who does not know it "
            "cannot aim at a bucket."}}) {
    OpDef op = OpDef::make(row.op);
    std::move(op).input(row.input).output("output: int64").attr("num_buckets: int >= 1");
    if (row.prepare == strong_prepare) std::move(op).attr("key: list(int)");
    std::move(op).shape(unchanged_shape).no_gradient().doc(row.doc);
    ops.add(std::move(op));
    kernels.add({.op = row.op, .prepare = row.prepare});
  }
}

}  // namespace dtg::ops
