// What kernels of strings share: elements of operands that broadcast, white space, UTF-8. Used inside one kernel call, on its thread.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "base/watched.h"
#include "exec/text_space.h"
#include "graph/infer.h"

namespace dtg::ops {

// Which element of an operand belongs to an element of the output it is broadcast to. Elements are asked for in order.
class Spread {
 public:
  Spread() = default;
  Spread(const Shape& from, const Shape& to) : rank_(to.rank()) {
    int64_t stride = 1;
    for (int d = to.rank(); d-- > 0;) {
      const int own = d - (to.rank() - from.rank());
      const int64_t dim = own < 0 ? 1 : from.dim(own);
      dims_[static_cast<size_t>(d)] = to.dim(d);
      strides_[static_cast<size_t>(d)] = dim == 1 ? 0 : stride;
      stride *= dim;
    }
  }
  int64_t at(int64_t element) const {
    int64_t offset = 0;
    for (int d = rank_; d-- > 0; element /= dims_[static_cast<size_t>(d)]) {
      offset += element % dims_[static_cast<size_t>(d)] * strides_[static_cast<size_t>(d)];
    }
    return offset;
  }

 private:
  std::array<int64_t, kRankMax> dims_{}, strides_{};
  int rank_ = 0;
};

// White space as ASCII has it.
inline bool is_space(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }
std::string_view stripped(std::string_view text);

// A byte that continues a character of UTF-8.
inline bool is_trail(char c) { return (static_cast<unsigned char>(c) & 0xc0u) == 0x80u; }
// Takes a character off the front; U+FFFD for what is no UTF-8.
char32_t next_char(std::string_view& text);
// Appends it as UTF-8.
void append_char(std::string& text, char32_t c);

// Output 0 of strings that have to be made to know how long they are: element i is fn(i).
template <class Fn>
Status put_texts(RunContext& c, int64_t count, Fn&& fn) {
  std::vector<std::string> made(static_cast<size_t>(count));
  TextSpace space;
  for (const int64_t i : watched(count, 20)) {
    made[static_cast<size_t>(i)] = fn(i);
    space.want(made[static_cast<size_t>(i)].size());
  }
  DTG_TRY(space.take(c));
  for (const int64_t i : watched(count, 20)) {
    const char* const from = space.here();
    space.put(made[static_cast<size_t>(i)]);
    c.out<Text>(0)[i] = space.since(from);
  }
  return {};
}

}  // namespace dtg::ops
