// Numbers as strings and back: AsString, StringToNumber. Neither depends on the locale of the host.
#include <locale.h>
#include <cerrno>
#include <charconv>
#include <clocale>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <limits>

#include "base/watched.h"
#include "ops/all.h"
#include "ops/integers.h"
#include "ops/texts.h"

namespace dtg::ops {
namespace {

using Long = long long;

// ---- AsString ----------------------------------------------------------------------------------------------

// What printf writes depends on the thread's locale; while one of these lives it is the plain one.
class PlainLocale {
 public:
  PlainLocale() : plain_(newlocale(LC_ALL_MASK, "C", nullptr)), before_(plain_ ? uselocale(plain_) : nullptr) {}
  ~PlainLocale() {
    if (!plain_) return;
    uselocale(before_);
    freelocale(plain_);
  }
  PlainLocale(const PlainLocale&) = delete;
  PlainLocale& operator=(const PlainLocale&) = delete;

 private:
  const locale_t plain_;
  const locale_t before_;
};

struct AsStringArgs {
  int64_t count = 0;
  DType dtype = DType::invalid;
  std::string format;
};

int print(char* to, size_t room, const char* format, double value) {
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
  return snprintf(to, room, format, value);
}
int print(char* to, size_t room, const char* format, long long value) { return snprintf(to, room, format, value); }
int print(char* to, size_t room, const char* format, unsigned long long value) { return snprintf(to, room, format, value); }
int print(char* to, size_t room, const char* format, double real, double imaginary) {
  return snprintf(to, room, format, real, imaginary);
#pragma GCC diagnostic pop
}

template <class T>
const T* elements(RunContext& c) {
  return c.in<T>(0);
}

// Writes element i as printf does; how long it is, or less than 0.
int print_element(RunContext& c, const AsStringArgs& a, int64_t i, char* to, size_t room) {
  const char* const format = a.format.c_str();
  switch (a.dtype) {
    case DType::f32: return print(to, room, format, double{c.in<float>(0)[i]});
    case DType::f64: return print(to, room, format, c.in<double>(0)[i]);
    case DType::f16: return print(to, room, format, double{float(c.in<Half>(0)[i])});
    case DType::bf16: return print(to, room, format, double{float(c.in<BFloat16>(0)[i])});
    case DType::c64: return print(to, room, format, double{c.in<float>(0)[2 * i]}, double{c.in<float>(0)[2 * i + 1]});
    case DType::c128: return print(to, room, format, c.in<double>(0)[2 * i], c.in<double>(0)[2 * i + 1]);
    case DType::u64: return print(to, room, format, static_cast<unsigned long long>(c.in<uint64_t>(0)[i]));
    case DType::i64: return print(to, room, format, static_cast<Long>(c.in<int64_t>(0)[i]));
    default: return print(to, room, format, static_cast<Long>(integer_at(c.in<char>(0), a.dtype, i)));
  }
}

Status bools_as_strings(RunContext& c, const AsStringArgs& a) {
  constexpr std::string_view kWords[] = {"false", "true"};
  // The words are part of the library, and stay.
  for (const int64_t i : watched(a.count, 20)) c.out<Text>(0)[i] = kWords[c.in<bool>(0)[i] ? 1 : 0];
  return {};
}

Status as_string_run(RunContext& c) {
  const auto& a = c.args<AsStringArgs>();
  if (a.dtype == DType::boolean) return bools_as_strings(c, a);
  const PlainLocale plain;
  TextSpace space;
  for (const int64_t i : watched(a.count, 20)) {
    const int length = print_element(c, a, i, nullptr, 0);
    if (length < 0)
      return resource_exhausted("%s: element %lld is too long as a string", c.node().op->name().c_str(), static_cast<Long>(i));
    space.want(static_cast<uint64_t>(length) + 1);
  }
  DTG_TRY(space.take(c));
  for (const int64_t i : watched(a.count, 20)) {
    const int length = print_element(c, a, i, nullptr, 0);
    char* const to = space.next(static_cast<uint64_t>(length) + 1);
    print_element(c, a, i, to, static_cast<size_t>(length) + 1);
    c.out<Text>(0)[i] = std::string_view(to, static_cast<size_t>(length));
  }
  return {};
}

Status as_string_prepare(PrepareContext& c) {
  auto* const a = c.args<AsStringArgs>();
  a->count = c.input(0).shape.count();
  a->dtype = c.input(0).dtype;
  const int64_t precision = c.integer("precision"), width = c.integer("width");
  const bool scientific = c.boolean("scientific"), shortest = c.boolean("shortest");
  const auto& fill = c.attr<std::string>("fill");
  const bool real = kFloating.has(a->dtype) || kComplex.has(a->dtype);
  if (scientific && shortest) return c.error("scientific and shortest exclude one another");
  if (!real && (scientific || shortest))
    return c.error("scientific and shortest are for floating-point numbers, not for %s", dtype_name(a->dtype));
  if (!real && precision >= 0) return c.error("precision is for floating-point numbers, not for %s", dtype_name(a->dtype));
  if (fill.size() > 1 || (!fill.empty() && !std::strchr(" +-0#", fill[0]))) {
    return c.error("fill is \"%s\"; it must be empty or one of ' ', '+', '-', '0', '#'", fill.c_str());
  }
  constexpr int64_t kMost = 4096;  // letters of one number
  if (width > kMost || precision > kMost) return c.error("width and precision may be %lld at most", static_cast<long long>(kMost));
  std::string one = "%" + fill;
  if (width > -1) one += std::to_string(width);
  if (precision > -1) one += "." + std::to_string(precision);
  if (real) one += scientific ? "e" : shortest ? "g" : "f";
  else one += a->dtype == DType::u64 ? "llu" : "lld";
  a->format = kComplex.has(a->dtype) ? "(" + one + "," + one + ")" : one;
  return c.sync(as_string_run);
}

// ---- StringToNumber ----------------------------------------------------------------------------------------

struct ToNumberArgs {
  int64_t count = 0;
};

bool same_word(std::string_view text, std::string_view word) {
  if (text.size() != word.size()) return false;
  for (size_t i = 0; i < text.size(); ++i) {
    if ((text[i] | 0x20) != word[i]) return false;
  }
  return true;
}

// A number that no double of that size can hold: is it beyond the largest, or below the smallest?
bool is_huge(std::string_view digits) {
  const size_t e = digits.find_first_of("eE");
  const std::string_view mantissa = digits.substr(0, e);
  int64_t exponent = 0;
  if (e != digits.npos) {
    std::string_view power = digits.substr(e + 1);
    if (!power.empty() && power[0] == '+') power.remove_prefix(1);
    const auto read = std::from_chars(power.data(), power.data() + power.size(), exponent);
    if (read.ec != std::errc()) return !power.empty() && power[0] != '-';
  }
  const size_t point = std::min(mantissa.find('.'), mantissa.size());
  const size_t first = mantissa.find_first_of("123456789");
  if (first == mantissa.npos) return false;
  const auto places = first < point ? static_cast<int64_t>(point - first) : -static_cast<int64_t>(first - point);
  return exponent > -places;
}

template <class T>
bool parse(std::string_view text, T* value) {
  text = stripped(text);
  if constexpr (std::is_floating_point_v<T>) {
    const bool minus = !text.empty() && text[0] == '-';
    if (!text.empty() && (text[0] == '-' || text[0] == '+')) text.remove_prefix(1);
    if (text.empty() || text[0] == '-' || text[0] == '+') return false;
    if (same_word(text, "nan")) *value = std::numeric_limits<T>::quiet_NaN();
    else if (same_word(text, "inf") || same_word(text, "infinity")) *value = std::numeric_limits<T>::infinity();
    else if ((text[0] < '0' || text[0] > '9') && text[0] != '.') return false;
    else {
      const bool hex = text.size() > 2 && text[0] == '0' && (text[1] | 0x20) == 'x';
      if (hex) text.remove_prefix(2);
      const auto read =
          std::from_chars(text.data(), text.data() + text.size(), *value, hex ? std::chars_format::hex : std::chars_format::general);
      if (read.ptr != text.data() + text.size() || read.ec == std::errc::invalid_argument) return false;
      if (read.ec == std::errc::result_out_of_range) *value = hex || is_huge(text) ? std::numeric_limits<T>::infinity() : T(0);
    }
    if (minus) *value = -*value;
    return true;
  } else {
    if (!text.empty() && text[0] == '+') {
      text.remove_prefix(1);
      if (!text.empty() && text[0] == '-') return false;
    }
    const auto read = std::from_chars(text.data(), text.data() + text.size(), *value);
    return read.ec == std::errc() && read.ptr == text.data() + text.size();
  }
}

template <class T>
Status to_number_run(RunContext& c) {
  const auto& a = c.args<ToNumberArgs>();
  for (const int64_t i : watched(a.count, 20)) {
    const std::string_view text = c.in<Text>(0)[i].view();
    if (parse<T>(text, c.out<T>(0) + i)) continue;
    return c.error("string %lld is \"%.*s\", which is no %s", static_cast<Long>(i), static_cast<int>(std::min<size_t>(text.size(), 80)),
                   text.data(), dtype_name(dtype_of<T>));
  }
  return {};
}

template <class... T>
void add_to_number(KernelTable& kernels) {
  (kernels.add({.op = "StringToNumber",
                .types = {{"out_type", DTypeSet{dtype_of<T>}}},
                .prepare =
                    [](PrepareContext& c) {
                      c.args<ToNumberArgs>()->count = c.input(0).shape.count();
                      return c.sync(to_number_run<T>);
                    }}),
   ...);
}

}  // namespace

void register_string_numbers(OpTable& ops, KernelTable& kernels) {
  ops.add(OpDef::make("AsString")
              .input("input: T")
              .output("output: string")
              .attr("T: {float, double, int32, uint8, int16, int8, int64, bfloat16, uint16, half, uint32, uint64, complex64, complex128, "
                    "bool, variant, string}")
              .attr("precision: int = -1")
              .attr("scientific: bool = false")
              .attr("shortest: bool = false")
              .attr("width: int = -1")
              .attr("fill: string = ''")
              .shape(unchanged_shape)
              .no_gradient()
              .doc("Each element as printf writes it, with that many digits behind the point, at least so wide, and filled by a flag."));
  kernels.add({.op = "AsString", .types = {{"T", kPlain}}, .prepare = as_string_prepare});
  ops.add(OpDef::make("StringToNumber")
              .input("string_tensor: string")
              .output("output: out_type")
              .attr("out_type: {float, double, int32, int64, uint32, uint64} = float")
              .shape(unchanged_shape)
              .no_gradient()
              .doc("The number that each string is in decimal; white space around it does not matter."));
  add_to_number<float, double, int32_t, int64_t, uint32_t, uint64_t>(kernels);
}

}  // namespace dtg::ops
