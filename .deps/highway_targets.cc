// The part of Highway's library that run-time dispatch needs, for the version the distribution packages (1.0.x).
//
// Debian ships Highway as headers plus a shared library, and libdtg.so links no shared library beyond the C runtime, OpenSSL
// and zlib. The kernels are all in the headers; what remains is "which instruction sets does this CPU have", answered here with
// the compiler's own CPU detection, which also checks that the operating system saves the wide registers.

#include <hwy/highway.h>

#include <cstdarg>
#include <cstdio>
#include <cstdlib>

namespace hwy {
namespace {

int64_t detect() {
  int64_t targets = HWY_STATIC_TARGET | HWY_EMU128 | HWY_SCALAR;
#if HWY_ARCH_X86
  __builtin_cpu_init();
  auto has_all = [](auto... present) { return ((present != 0) && ...); };
  if (has_all(__builtin_cpu_supports("ssse3"))) targets |= HWY_SSSE3;
  if (has_all(__builtin_cpu_supports("sse4.2"), __builtin_cpu_supports("aes"), __builtin_cpu_supports("pclmul"))) {
    targets |= HWY_SSE4;
  }
  if (has_all(__builtin_cpu_supports("avx2"), __builtin_cpu_supports("bmi"), __builtin_cpu_supports("bmi2"),
              __builtin_cpu_supports("fma"))) {
    targets |= HWY_AVX2;
    if (has_all(__builtin_cpu_supports("avx512f"), __builtin_cpu_supports("avx512vl"), __builtin_cpu_supports("avx512dq"),
                __builtin_cpu_supports("avx512bw"), __builtin_cpu_supports("avx512cd"))) {
      targets |= HWY_AVX3;
      if (has_all(__builtin_cpu_supports("avx512vnni"), __builtin_cpu_supports("vpclmulqdq"), __builtin_cpu_supports("avx512vbmi"),
                  __builtin_cpu_supports("avx512vbmi2"), __builtin_cpu_supports("avx512vpopcntdq"),
                  __builtin_cpu_supports("avx512bitalg"))) {
        targets |= HWY_AVX3_DL;
      }
    }
  }
#endif
  return targets;
}

// Tests narrow the choice to exercise every path on one machine. 0 means: as detected.
std::atomic<int64_t> forced{0};
std::atomic<int64_t> disabled{0};

}  // namespace

int64_t SupportedTargets() {
  int64_t targets = forced.load();
  if (targets == 0) targets = detect();
  targets &= ~disabled.load();
  return targets == 0 ? HWY_STATIC_TARGET : targets;
}

void DisableTargets(int64_t targets) {
  disabled.store(targets & ~HWY_STATIC_TARGET);
  GetChosenTarget().DeInit();
}

void SetSupportedTargetsForTest(int64_t targets) {
  forced.store(targets);
  GetChosenTarget().DeInit();
}

ChosenTarget& GetChosenTarget() {
  static constinit ChosenTarget chosen;
  return chosen;
}

// Reached only through HWY_ABORT, that is from a violated precondition inside Highway's own headers.
void Abort(const char* file, int line, const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  std::fprintf(stderr, "highway: %s:%d: ", file, line);
  std::vfprintf(stderr, format, arguments);
  std::fputc('\n', stderr);
  va_end(arguments);
  std::abort();
}

}  // namespace hwy
