// Samples from Philox blocks. A group of samples comes from one block, or from a reserved stretch of blocks where the
// distribution rejects; where group g of a tensor starts follows from g alone.
#include "device/cpu/philox.h"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace dtg::cpu {

Philox::Block Philox::next() {
  uint32_t c0 = static_cast<uint32_t>(low_), c1 = static_cast<uint32_t>(low_ >> 32);
  uint32_t c2 = static_cast<uint32_t>(high_), c3 = static_cast<uint32_t>(high_ >> 32);
  uint32_t k0 = static_cast<uint32_t>(key_), k1 = static_cast<uint32_t>(key_ >> 32);
  for (int round = 0; round < 10; ++round) {
    const uint64_t a = uint64_t{0xD2511F53u} * c0, b = uint64_t{0xCD9E8D57u} * c2;
    c0 = static_cast<uint32_t>(b >> 32) ^ c1 ^ k0;
    c2 = static_cast<uint32_t>(a >> 32) ^ c3 ^ k1;
    c1 = static_cast<uint32_t>(b);
    c3 = static_cast<uint32_t>(a);
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
  skip(1);
  return {c0, c1, c2, c3};
}

namespace {

// Bits of the mantissa under an exponent that gives [1, 2), minus 1.
float uniform_float(uint32_t x) {
  const uint32_t bits = 127u << 23 | (x & 0x7fffffu);
  float value;
  std::memcpy(&value, &bits, sizeof value);
  return value - 1.0f;
}
double uniform_double(uint32_t x0, uint32_t x1) {
  const uint64_t bits = uint64_t{1023} << 52 | (uint64_t{x0} & 0xfffffu) << 32 | x1;
  double value;
  std::memcpy(&value, &bits, sizeof value);
  return value - 1.0;
}

template <class U, class Draw>
U below_of(U n, const Draw& draw) {
  if ((n & (n - 1)) == 0) return draw() & (n - 1);
  const U skewed = static_cast<U>(~U(0) % n + 1);
  U word = draw();
  while (word < skewed) word = draw();
  return word % n;
}

// Two normal samples from two uniform ones, by Box and Muller.
void normal_pair(uint32_t x0, uint32_t x1, float* f) {
  const float u = std::max(uniform_float(x0), 1.0e-7f);
  const float angle = 2.0f * static_cast<float>(M_PI) * uniform_float(x1);
  const float radius = std::sqrt(-2.0f * std::log(u));
  f[0] = std::sin(angle) * radius;
  f[1] = std::cos(angle) * radius;
}
void normal_pair(uint32_t x0, uint32_t x1, uint32_t x2, uint32_t x3, double* f) {
  const double u = std::max(uniform_double(x0, x1), 1.0e-7);
  const double angle = 2 * M_PI * uniform_double(x2, x3);
  const double radius = std::sqrt(-2.0 * std::log(u));
  f[0] = std::sin(angle) * radius;
  f[1] = std::cos(angle) * radius;
}

// A type with 64 bits takes two words of a block for each sample.
template <class T>
constexpr int kGroup = sizeof(T) == 8 ? 2 : 4;

template <class T>
struct Uniform {
  static void group(Philox& stream, T* out) {
    const Philox::Block x = stream.next();
    for (size_t i = 0; i < kGroup<T>; ++i) {
      if constexpr (std::is_same_v<T, double>) {
        out[i] = uniform_double(x[2 * i], x[2 * i + 1]);
      } else if constexpr (std::is_same_v<T, float>) {
        out[i] = uniform_float(x[i]);
      } else if constexpr (std::is_same_v<T, Half>) {
        out[i].bits = static_cast<uint16_t>(15u << 10 | (x[i] & 0x3ffu));
        out[i] = Half(static_cast<float>(out[i]) - 1.0f);
      } else {
        out[i].bits = static_cast<uint16_t>(127u << 7 | (x[i] & 0x7fu));
        out[i] = BFloat16(static_cast<float>(out[i]) - 1.0f);
      }
    }
  }
};

template <class T>
struct Normal {
  static void group(Philox& stream, T* out) {
    const Philox::Block x = stream.next();
    if constexpr (std::is_same_v<T, double>) {
      normal_pair(x[0], x[1], x[2], x[3], out);
    } else {
      float f[4];
      normal_pair(x[0], x[1], f);
      normal_pair(x[2], x[3], f + 2);
      for (int i = 0; i < 4; ++i) out[i] = T(f[i]);
    }
  }
};

// Draws until the group is full; each group has blocks of its own to draw from.
template <class T>
struct TruncatedNormal {
  static void group(Philox& stream, T* out) {
    using Wide = std::conditional_t<std::is_same_v<T, double>, double, float>;
    for (int filled = 0; filled < kGroup<T>;) {
      const Philox::Block x = stream.next();
      Wide f[4];
      int drawn = 4;
      if constexpr (std::is_same_v<T, double>) {
        normal_pair(x[0], x[1], x[2], x[3], f);
        drawn = 2;
      } else {
        normal_pair(x[0], x[1], f);
        normal_pair(x[2], x[3], f + 2);
      }
      for (int i = 0; i < drawn && filled < kGroup<T>; ++i) {
        if (std::abs(f[i]) < Wide(2)) out[filled++] = T(f[i]);
      }
    }
  }
};

template <class U>
U raw(const Philox::Block& x, size_t i) {
  if constexpr (sizeof(U) == 4) {
    return x[i];
  } else {
    return uint64_t{x[2 * i + 1]} << 32 | x[2 * i];
  }
}

// What each group skips to, in blocks: 256 words are reserved per element of the rejecting distribution.
template <class T>
constexpr uint64_t kReserved = uint64_t{kGroup<T>} * 256 / 4;

constexpr int64_t kGroupsPerShard = 4096;

template <class T, class Fn>
void fill_groups(const Philox& from, uint64_t blocks, T* out, int64_t count, Pool& pool, Fn&& group) {
  const int64_t groups = (count + kGroup<T> - 1) / kGroup<T>;
  pool.parallel_for((groups + kGroupsPerShard - 1) / kGroupsPerShard, [&](int64_t shard) {
    const int64_t end = std::min(groups, (shard + 1) * kGroupsPerShard);
    for (int64_t g = shard * kGroupsPerShard; g < end; ++g) {
      Philox stream = from;
      stream.skip(static_cast<uint64_t>(g) * blocks);
      T* const at = out + g * kGroup<T>;
      if (const int64_t left = count - g * kGroup<T>; left < kGroup<T>) {
        T last[kGroup<T>];
        group(stream, last);
        std::copy_n(last, left, at);
      } else {
        group(stream, at);
      }
    }
  });
}

template <class T>
void fill_floats(Distribution distribution, const Philox& stream, T* out, int64_t count, Pool& pool) {
  switch (distribution) {
    case Distribution::normal: return fill_groups(stream, 1, out, count, pool, Normal<T>::group);
    case Distribution::truncated_normal: return fill_groups(stream, kReserved<T>, out, count, pool, TruncatedNormal<T>::group);
    default: return fill_groups(stream, 1, out, count, pool, Uniform<T>::group);
  }
}

template <class U>
void fill_integers(Distribution distribution, const Philox& stream, U* out, int64_t count, U low, U high, Pool& pool) {
  // The whole range of bits has no length that fits; it is also what `bits` asks for.
  const U range = distribution == Distribution::bits ? U(0) : static_cast<U>(high - low);
  fill_groups(stream, 1, out, count, pool, [low, range](Philox& from, U* at) {
    const Philox::Block x = from.next();
    for (size_t i = 0; i < kGroup<U>; ++i) {
      at[i] = range == 0 ? raw<U>(x, i) : static_cast<U>(low + raw<U>(x, i) % range);
    }
  });
}

}  // namespace

float PhiloxWords::uniform_float() { return cpu::uniform_float(next()); }
double PhiloxWords::uniform_double() {
  const uint32_t x0 = next();
  return cpu::uniform_double(x0, next());
}
uint32_t PhiloxWords::below(uint32_t n) {
  return below_of(n, [this] { return next(); });
}
uint64_t PhiloxWords::below64(uint64_t n) {
  return below_of(n, [this] { return next64(); });
}

void fill_random(Distribution distribution, DType dtype, const Philox& stream, void* out, int64_t count, int64_t low, int64_t high,
                 Pool& pool) {
  switch (dtype) {
    case DType::f16: return fill_floats(distribution, stream, static_cast<Half*>(out), count, pool);
    case DType::bf16: return fill_floats(distribution, stream, static_cast<BFloat16*>(out), count, pool);
    case DType::f64: return fill_floats(distribution, stream, static_cast<double*>(out), count, pool);
    case DType::i32:
    case DType::u32:
      return fill_integers(distribution, stream, static_cast<uint32_t*>(out), count, static_cast<uint32_t>(low),
                           static_cast<uint32_t>(high), pool);
    case DType::i64:
    case DType::u64:
      return fill_integers(distribution, stream, static_cast<uint64_t*>(out), count, static_cast<uint64_t>(low),
                           static_cast<uint64_t>(high), pool);
    default: return fill_floats(distribution, stream, static_cast<float*>(out), count, pool);
  }
}

}  // namespace dtg::cpu
