// Which instruction sets the loops with Highway are compiled for: not those whose vectors have no size at compile time, which
// cannot stand in arrays and which run-time detection (.deps/highway_targets.cc) never chooses. With GCC on ARM64 the two of a
// fixed size count among them. What this names is defined by Highway's headers, which come later. Constants.
#pragma once

#ifdef DTG_FEW_TARGETS  // a build with sanitizers: the narrowest and AVX2
#define DTG_SCALABLE_TARGETS (HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128 | HWY_RVV | HWY_SSE4 | HWY_AVX3)
#else
#define DTG_SCALABLE_TARGETS (HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128 | HWY_RVV)
#endif
