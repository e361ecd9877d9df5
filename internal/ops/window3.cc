// See window3.h.
#include "ops/window3.h"

namespace dtg::ops {
namespace {

// Five numbers, each at least 1, and 1 for batch and channels.
Status take(const Node& node, const Window3& w, std::string_view name, Code outer, std::array<int64_t, 3>& to) {
  const auto& list = node.attr<std::vector<int64_t>>(name);
  const int width = static_cast<int>(name.size());
  const char* op = node.op->name().c_str();
  if (list.size() != 5) {
    return invalid_argument("%s: %.*s must have 5 entries, one per dimension, but has %zu", op, width, name.data(), list.size());
  }
  for (size_t i = 0; i < 5; ++i) {
    if (list[i] >= 1 && list[i] <= INT32_MAX) continue;
    return invalid_argument("%s: %.*s[%zu] is %lld; it must be at least 1", op, width, name.data(), i, static_cast<long long>(list[i]));
  }
  if (list[0] != 1 || list[static_cast<size_t>(w.channel_axis())] != 1) {
    if (outer == Code::unimplemented) {
      return unimplemented("%s: %.*s of the batch and channel dimensions must be 1", op, width, name.data());
    }
    return invalid_argument("%s: %.*s of the batch and channel dimensions must be 1", op, width, name.data());
  }
  for (int i = 0; i < 3; ++i) to[static_cast<size_t>(i)] = list[static_cast<size_t>(w.spatial_axis(i))];
  return {};
}

}  // namespace

Result<Window3> window3_of(const Node& node) {
  Window3 w;
  w.first = node.attr<std::string>("data_format") == "NCDHW";
  w.padding = node.attr<std::string>("padding") == "SAME" ? Padding::same : Padding::valid;
  const bool pools = node.find_attr("ksize") != nullptr;
  const Code outer = pools ? Code::unimplemented : Code::invalid_argument;
  DTG_TRY(take(node, w, "strides", outer, w.stride));
  if (pools) DTG_TRY(take(node, w, "ksize", outer, w.size));
  if (node.find_attr("dilations")) DTG_TRY(take(node, w, "dilations", outer, w.dilation));
  return w;
}

Result<Extent> extent_of(const Node& node, const Window3& w, int i, int64_t in) {
  static constexpr const char* kNames[] = {"depth", "height", "width"};
  const auto at = static_cast<size_t>(i);
  DTG_ASSIGN(Extent extent, extent_along(node, kNames[i], {w.size[at], w.stride[at], w.dilation[at], w.padding, 0, 0}, in));
  if (w.padding != Padding::same || in <= 0) return extent;
  // Where strides pass over what lies at the edges, TensorFlow's volumes leave out as much at the beginning as at the end; its images
  // begin at the first place.
  const int64_t lacking = (extent.out - 1) * w.stride[at] + (w.size[at] - 1) * w.dilation[at] + 1 - in;
  if (lacking < 0) extent.before = lacking / 2;
  return extent;
}

Result<PartialShape> windowed_shape(const Node& node, const Window3& w, const PartialShape& volume, int64_t channels) {
  PartialShape out = PartialShape::of_rank(5);
  out.set_dim(w.channel_axis(), channels);
  if (!volume.has_rank()) return out;
  out.set_dim(0, volume.dim(0));
  for (int i = 0; i < 3; ++i) {
    DTG_ASSIGN(const Extent extent, extent_of(node, w, i, volume.dim(w.spatial_axis(i))));
    out.set_dim(w.spatial_axis(i), extent.out);
  }
  return out;
}

Status Volume::set(const Node& node, const Window3& w, const Shape& volume) {
  window = w;
  batch = volume.dim(0), channels = volume.dim(w.channel_axis());
  for (int i = 0; i < 3; ++i) {
    const auto at = static_cast<size_t>(i);
    in[at] = volume.dim(w.spatial_axis(i));
    DTG_ASSIGN(const Extent extent, extent_of(node, w, i, in[at]));
    out[at] = extent.out, before[at] = extent.before;
  }
  from = {w.first, in, channels};
  return {};
}

}  // namespace dtg::ops
