// Window: the attributes that convolution and pooling share (sizes, strides, dilations, padding, layout),
// checked once and turned into the size and offset of each output axis. Values; any thread.
#pragma once

#include <array>
#include <string>

#include "graph/infer.h"

namespace dtg::ops {

enum class Padding : uint8_t { valid, same, given };

// Index 0 is the height, 1 the width. Axes of a four-dimensional image are found through axis().
struct Window {
  bool nchw = false;
  Padding padding = Padding::valid;
  std::array<int64_t, 2> size{1, 1};
  std::array<int64_t, 2> stride{1, 1};
  std::array<int64_t, 2> dilation{1, 1};
  std::array<int64_t, 2> before{0, 0}, after{0, 0};  // Padding::given
  // Of batch and channels: anything but 1 is beyond what most kernels do.
  std::array<int64_t, 2> outer_size{1, 1}, outer_stride{1, 1};

  int spatial_axis(int i) const { return (nchw ? 2 : 1) + i; }
  int channel_axis() const { return nchw ? 1 : 3; }
};

// From the attributes of a node; `ksize` where there is one, otherwise size is left to the caller.
Result<Window> window_of(const Node& node);
// The same where sizes and strides are inputs of the node.
Result<Window> window_of(const Node& node, std::span<const int64_t> ksize, std::span<const int64_t> strides);
// Windows that reach across batch or channels: UNIMPLEMENTED.
Status require_spatial(const Node& node, const Window& window);

// One output axis: how many positions, and the padding before the first. -1 stays -1.
struct Extent {
  int64_t out = -1;
  int64_t before = 0;
};
Result<Extent> extent_of(const Node& node, const Window& window, int i, int64_t in);

// The window along one axis, whatever the number of them.
struct Stretch {
  int64_t size = 1, stride = 1, dilation = 1;
  Padding padding = Padding::valid;
  int64_t before = 0, after = 0;  // Padding::given
};
Result<Extent> extent_along(const Node& node, const char* axis, const Stretch& stretch, int64_t in);

// The attributes of this node that its gradients carry over, in the spelling of Build.
std::vector<Attr> window_attrs(const Node& node, std::span<const std::string_view> names);

}  // namespace dtg::ops
