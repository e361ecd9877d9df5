// Random over the kernel's generator, getrandom(2). It cannot fail for small requests once the kernel's pool is seeded;
// should it be interrupted, the rest is asked for again. Any thread.
#include "base/random.h"

#include <sys/random.h>

namespace dtg {
namespace {
class SystemRandom final : public Random {
 public:
  void fill(void* bytes, size_t count) const override {
    auto* at = static_cast<unsigned char*>(bytes);
    while (count > 0) {
      const ssize_t got = getrandom(at, count, 0);
      if (got <= 0) continue;
      at += got;
      count -= static_cast<size_t>(got);
    }
  }
};
}  // namespace

const Random& system_random() {
  static const SystemRandom* const random = new SystemRandom;  // leaked: no destructor at exit
  return *random;
}

}  // namespace dtg
