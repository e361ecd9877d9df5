// Terminal: the seam to the terminal of whoever started the program, for one line that is drawn again and again. It is stderr where that is
// a terminal: a library writes nothing to stdout. Any thread; lines of several do not mix, as each is one write.
#pragma once

#include <string_view>

namespace dtg {

class Terminal {
 public:
  virtual ~Terminal() = default;
  // Columns; 0: there is no terminal.
  virtual int width() const = 0;
  virtual void show(std::string_view bytes) = 0;
};

// stderr; lives as long as the process.
Terminal& stderr_terminal();

}  // namespace dtg
