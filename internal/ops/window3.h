// Window3: what Window (window.h) is to images, to volumes: the attributes of three-dimensional convolution and pooling, checked
// once, and the numbers that a kernel walks by. Values; any thread.
#pragma once

#include <array>

#include "ops/window.h"

namespace dtg::ops {

// Index 0 is the depth, 1 the height, 2 the width.
struct Window3 {
  bool first = false;  // channels first: NCDHW
  Padding padding = Padding::valid;
  std::array<int64_t, 3> size{1, 1, 1}, stride{1, 1, 1}, dilation{1, 1, 1};
  int spatial_axis(int i) const { return (first ? 2 : 1) + i; }
  int channel_axis() const { return first ? 1 : 4; }
};

// From the attributes of a node; `ksize` where there is one, otherwise size is left to the caller.
Result<Window3> window3_of(const Node& node);
Result<Extent> extent_of(const Node& node, const Window3& window, int i, int64_t in);
// The shape of what the window makes of a volume, with that many channels.
Result<PartialShape> windowed_shape(const Node& node, const Window3& w, const PartialShape& volume, int64_t channels);

// Where the channels of a volume's places lie, in either layout.
struct VolumeLayout {
  int64_t volume = 0, plane = 0, row = 0, column = 0, channel = 1;  // distances
  VolumeLayout() = default;
  VolumeLayout(bool first, const std::array<int64_t, 3>& dims, int64_t channels)
      : volume(dims[0] * dims[1] * dims[2] * channels),
        plane(dims[1] * dims[2] * (first ? 1 : channels)),
        row(dims[2] * (first ? 1 : channels)),
        column(first ? 1 : channels),
        channel(first ? dims[0] * dims[1] * dims[2] : 1) {}
  int64_t at(int64_t n, int64_t z, int64_t y, int64_t x) const { return n * volume + z * plane + y * row + x * column; }
};

// A window over volumes of known size.
struct Volume {
  int64_t batch = 0, channels = 0;
  std::array<int64_t, 3> in{}, out{}, before{};
  Window3 window;
  VolumeLayout from;  // of what lies under the window
  // Fills in what the window makes of a shape.
  Status set(const Node& node, const Window3& w, const Shape& volume);
};

}  // namespace dtg::ops
