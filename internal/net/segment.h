// Segment: memory that two processes have in common: a memfd without a name anywhere, sealed, written by the process that made it
// and only read by the other. It is gone when neither has it mapped, however they end. Who maps it owns the mapping. Any thread.
#pragma once

#include <cstdint>
#include <memory>

#include "base/status.h"
#include "net/descriptor.h"

namespace dtg {

class Segment {
 public:
  // A fresh one, and what the other process needs to map it. Its size is final. Errors: RESOURCE_EXHAUSTED.
  static Result<std::unique_ptr<Segment>> make(size_t bytes, Descriptor* descriptor);
  // One that another process made, of that size, for reading. It is looked at first: who made it may no longer be able to make it
  // shorter, or reading it could kill this process. Errors: PERMISSION_DENIED (it is no such thing), RESOURCE_EXHAUSTED.
  static Result<std::unique_ptr<Segment>> map(const Descriptor& descriptor, size_t bytes);
  ~Segment();
  Segment(const Segment&) = delete;
  Segment& operator=(const Segment&) = delete;

  char* data() const { return data_; }
  size_t bytes() const { return bytes_; }

 private:
  Segment(char* data, size_t bytes) : data_(data), bytes_(bytes) {}

  char* const data_;
  const size_t bytes_;
};

}  // namespace dtg
