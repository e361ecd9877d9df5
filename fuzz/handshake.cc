// A peer before and after hello. The input is a small program: raw bytes, frames with a right checksum around any header,
// payloads that keep their promise or do not, and time that passes. The other end is a link with a doorman; whatever is
// said, it is closed once, with a reason, and gives back what it had reserved.
#include <cstddef>
#include <cstdint>

#include "tests/doorman.h"
#include "wire/flatbuffers_assert.h"

namespace {

class Program {
 public:
  Program(const uint8_t* data, size_t size) : at_(reinterpret_cast<const char*>(data)), left_(size) {}
  bool more() const { return left_ > 0; }
  uint8_t byte() {
    if (left_ == 0) return 0;
    --left_;
    return static_cast<uint8_t>(*at_++);
  }
  std::string_view bytes(size_t count) {
    count = count < left_ ? count : left_;
    const std::string_view taken(at_, count);
    at_ += count;
    left_ -= count;
    return taken;
  }

 private:
  const char* at_;
  size_t left_;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace dtg;
  Program program(data, size);
  Doorman doorman;
  uint64_t said = 0;
  const auto hear = [&](std::string_view bytes) {
    if (doorman.losses == 0 && !doorman.known) said += bytes.size();
    doorman.hear(bytes);
  };
  for (int i = 0; i < 64 && program.more(); ++i) {
    const uint8_t what = program.byte();
    switch (what % 4) {
      case 0: hear(program.bytes(program.byte())); break;
      case 1: {
        const auto kind = static_cast<wire::Kind>(1 + program.byte() % wire::kKindMax);
        const std::string_view header = program.bytes(program.byte() * (what & 4 ? 16u : 1u));
        hear(wire::make_head(kind, what >> 3, header, 0));
        break;
      }
      case 2: {
        const uint64_t promised = uint64_t{program.byte()} << (program.byte() % 64);
        const std::string_view header = program.bytes(program.byte());
        const std::string_view payload = program.bytes(program.byte());
        hear(wire::make_head(what & 4 ? wire::Kind::register_part : wire::Kind::data, 1, header, promised) + std::string(payload));
        break;
      }
      default: doorman.loop.run_for(int64_t{program.byte()} * 20'000'000); break;
    }
    doorman.out->read_all();
  }
  const bool was_lost = doorman.losses == 1;
  // Silence ends it, if nothing else has.
  doorman.loop.run_for(int64_t{60} * 1'000'000'000);
  if (doorman.losses != 1 || doorman.reason.ok() || doorman.budget.used() != 0) __builtin_trap();
  if (!doorman.known && !was_lost && said > doorman.limits.pre_auth_bytes) __builtin_trap();
  if (wire::failed_assertions() != 0) __builtin_trap();
  return 0;
}
