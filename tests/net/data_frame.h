// A data frame around a payload, for tests of channels. The payload stays the caller's.
#pragma once

#include <memory>
#include <string_view>

#include "net/channel.h"
#include "wire/messages.h"

namespace dtg {

inline std::unique_ptr<OutFrame> data_frame(std::string_view payload, const void* owner = nullptr) {
  wire::Data header;
  header.dtype = DType::u8;
  header.shape = Shape::of({static_cast<int64_t>(payload.size())});
  auto frame = std::make_unique<OutFrame>();
  frame->head = wire::make_head(wire::Kind::data, 0, wire::encode(header), payload.size());
  frame->payload = payload.data();
  frame->payload_bytes = payload.size();
  frame->data = true;
  frame->owner = owner;
  return frame;
}

}  // namespace dtg
