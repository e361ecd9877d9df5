// An input of the fuzzer as a small program: bytes to decide by, and numbers of sizes that matter. One call of a target; one thread.
#pragma once

#include <cstddef>
#include <cstdint>

namespace dtg {

class Program {
 public:
  Program(const uint8_t* data, size_t size) : at_(data), left_(size) {}
  bool more() const { return left_ > 0; }
  uint64_t byte() { return left_ > 0 ? (--left_, *at_++) : 0; }
  // Small numbers, those around powers of two, and very large ones.
  uint64_t number() {
    const uint64_t how = byte();
    return (how & 128) != 0 ? (uint64_t{1} << (how % 64)) + byte() - 1 : how;
  }

 private:
  const uint8_t* at_;
  size_t left_;
};

}  // namespace dtg
