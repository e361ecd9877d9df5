// Descriptor: a file descriptor that is closed with its owner. Value; any thread.
#pragma once

#include <unistd.h>

#include <utility>

namespace dtg {

class Descriptor {
 public:
  explicit Descriptor(int number = -1) : number_(number) {}
  ~Descriptor() {
    if (number_ >= 0) ::close(number_);
  }
  Descriptor(Descriptor&& other) noexcept : number_(other.leak()) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(number_, other.number_);
    return *this;
  }
  int get() const { return number_; }
  int leak() { return std::exchange(number_, -1); }

 private:
  int number_;
};

}  // namespace dtg
