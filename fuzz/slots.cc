// Shared memory as a process of the same user may announce and use it. The input is a small program: memfds of any size and seals,
// announced truly or not, cut, grown and holed afterwards, payloads said to lie anywhere in them, and slots given back that were lent or
// not. Whatever is accepted can be read to its end, and what was reserved is given back.
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>

#include "net/slots.h"
#include "program.h"

namespace {

using namespace dtg;

uint64_t sum(const char* from, uint64_t bytes) {
  uint64_t all = 0;
  for (uint64_t i = 0; i < bytes; i += 64) all += static_cast<unsigned char>(from[i]);
  return bytes > 0 ? all + static_cast<unsigned char>(from[bytes - 1]) : all;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  Program program(data, size);
  MemoryBudget budget(int64_t{16} << 20);
  volatile uint64_t seen = 0;
  {
    InSlots in;
    OutSlots out(budget);
    Descriptor peers;
    const Descriptor none;
    for (int i = 0; i < 64 && program.more(); ++i) {
      switch (program.byte() % 6) {
        case 0: {
          const wire::Segment said{program.number(), static_cast<uint32_t>(program.number()), program.number()};
          peers = Descriptor(::memfd_create("peer", MFD_CLOEXEC | MFD_ALLOW_SEALING));
          const uint64_t true_size = program.byte() % 4 != 0 ? said.slots * said.slot_bytes : program.number();
          (void)!::ftruncate(peers.get(), static_cast<off_t>(true_size & ((uint64_t{1} << 40) - 1)));
          ::fcntl(peers.get(), F_ADD_SEALS, static_cast<int>(program.byte() % 32));
          (void)in.change(said, program.byte() % 8 != 0 ? peers : none, program.byte() % 2 != 0).ok();
          break;
        }
        case 1: (void)!::ftruncate(peers.get(), static_cast<off_t>(program.number() & 0xffffff)); break;
        case 2:
          ::fallocate(peers.get(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, static_cast<off_t>(program.byte() << 12), 1 << 16);
          break;
        case 3: {
          const auto slot = static_cast<uint32_t>(program.number());
          const uint64_t bytes = program.number();
          const auto from = in.at(slot, bytes);
          if (from.ok()) seen = seen + sum(from.value(), bytes);
          break;
        }
        case 4: {
          Descriptor made;
          if (out.may_open()) (void)out.open(&made).ok();
          if (out.granted()) (void)out.put(data, size < wire::kChunkBytes ? size : wire::kChunkBytes);
          wire::Segment gone;
          if (program.byte() % 4 == 0) (void)out.tidy(&gone);
          break;
        }
        default: {
          wire::Release release{program.number(), {}};
          for (uint64_t count = program.byte() % 10; count > 0; --count) release.slots.push_back(static_cast<uint32_t>(program.number()));
          (void)out.release(release).ok();
          break;
        }
      }
    }
  }
  if (budget.used() != 0) __builtin_trap();
  return 0;
}
