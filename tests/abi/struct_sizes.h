// What every struct that crosses the ABI is held to: each size from 0 to sizeof + 64, with a zero and a non-zero tail. One thread.
// tests/tidy/structs_test.py wants a row, each_size("NAME", ...), for every struct of the public headers that begins with its size.
#pragma once

#include <cstring>

#include "world.h"

namespace outside {

// Calls fn with a copy of `good` that claims each size. Sizes that this library knows, or with nothing new in them,
// are accepted; `accepted` tells of a call whether that was so.
template <class T, class Fn>
void each_size(const char* what, const T& good, Fn&& fn) {
  constexpr size_t most = sizeof(T) + 64;
  for (size_t size = 0; size <= most; ++size) {
    for (bool zero : {true, false}) {
      alignas(T) unsigned char bytes[most + 8] = {};
      std::memcpy(bytes, &good, sizeof(T));
      std::memcpy(bytes, &size, sizeof size);
      if (!zero && size > sizeof(T)) bytes[size - 1] = 1;
      dtg_error* const error = fn(reinterpret_cast<T*>(bytes));
      const std::string name = std::string(what) + " of size " + std::to_string(size) + (zero ? "" : ", tail not zero");
      if (size < sizeof(T) || (!zero && size > sizeof(T))) {
        EXPECT_NE(refused(error, DTG_INVALID_ARGUMENT, name).find(what), std::string::npos) << name;
      } else {
        EXPECT_EQ(error, nullptr) << name << ": " << text_of(error);
        dtg_error_release(error);
      }
      // The host's bytes after the struct are its own.
      for (size_t i = most; i < sizeof bytes; ++i) EXPECT_EQ(bytes[i], 0) << name;
    }
  }
}

// The row of a struct that the library makes for the host: it says the size that the host's header says.
template <class T>
void says_its_size(const char* what, const T& given) {
  EXPECT_EQ(given.struct_size, sizeof(T)) << what;
}

}  // namespace outside
