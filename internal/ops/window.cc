// See window.h.
#include "ops/window.h"

#include "base/size.h"

namespace dtg::ops {
namespace {

constexpr int64_t kReachMax = int64_t{1} << 61;  // sums with image sizes stay in range

const char* op_name(const Node& node) { return node.op->name().c_str(); }

// Four numbers, each at least 1.
Result<std::array<int64_t, 4>> four(const Node& node, std::string_view name) {
  const auto& list = node.attr<std::vector<int64_t>>(name);
  const int width = static_cast<int>(name.size());
  if (list.size() != 4) {
    return invalid_argument("%s: %.*s must have 4 entries, one per dimension, but has %zu", op_name(node), width, name.data(), list.size());
  }
  std::array<int64_t, 4> values{};
  for (size_t i = 0; i < 4; ++i) {
    if (list[i] < 1 || list[i] > INT32_MAX) {
      return invalid_argument("%s: %.*s[%zu] is %lld; it must be at least 1", op_name(node), width, name.data(), i,
                              static_cast<long long>(list[i]));
    }
    values[i] = list[i];
  }
  return values;
}

Status read_padding(const Node& node, Window& w) {
  const std::string& word = node.attr<std::string>("padding");
  w.padding = word == "SAME" ? Padding::same : word == "VALID" ? Padding::valid : Padding::given;
  const AttrValue* attr = node.find_attr("explicit_paddings");
  if (!attr) return {};
  const auto& list = *attr->get<std::vector<int64_t>>();
  if (w.padding != Padding::given) {
    if (list.empty()) return {};
    return invalid_argument("%s: explicit_paddings is given, but padding is %s; use EXPLICIT", op_name(node), word.c_str());
  }
  if (list.size() != 8) {
    return invalid_argument("%s: padding EXPLICIT needs 8 explicit_paddings, two per dimension; %zu were given", op_name(node),
                            list.size());
  }
  for (int axis = 0; axis < 4; ++axis) {
    const int64_t before = list[static_cast<size_t>(2 * axis)], after = list[static_cast<size_t>(2 * axis + 1)];
    if (before < 0 || after < 0 || before > INT32_MAX || after > INT32_MAX) {
      return invalid_argument("%s: explicit_paddings of dimension %d are %lld and %lld; they must not be negative", op_name(node), axis,
                              static_cast<long long>(before), static_cast<long long>(after));
    }
    const int i = axis - w.spatial_axis(0);
    if (i == 0 || i == 1) {
      w.before[static_cast<size_t>(i)] = before;
      w.after[static_cast<size_t>(i)] = after;
    } else if (before != 0 || after != 0) {
      return invalid_argument("%s: explicit_paddings of the batch and channel dimensions must be 0", op_name(node));
    }
  }
  return {};
}

}  // namespace

Result<Window> window_of(const Node& node) {
  Window w;
  w.nchw = node.attr<std::string>("data_format") == "NCHW";
  if (node.attr<std::string>("data_format") == "NCHW_VECT_C") {
    return unimplemented("%s: data_format NCHW_VECT_C is not supported; use NHWC or NCHW", op_name(node));
  }
  const auto take = [&](std::string_view name, std::array<int64_t, 2>& spatial, std::array<int64_t, 2>& outer) -> Status {
    DTG_ASSIGN(const auto values, four(node, name));
    for (int i = 0; i < 2; ++i) spatial[static_cast<size_t>(i)] = values[static_cast<size_t>(w.spatial_axis(i))];
    outer = {values[0], values[static_cast<size_t>(w.channel_axis())]};
    return {};
  };
  DTG_TRY(take("strides", w.stride, w.outer_stride));
  if (node.find_attr("ksize")) DTG_TRY(take("ksize", w.size, w.outer_size));
  if (node.find_attr("dilations")) {
    std::array<int64_t, 2> outer{};
    DTG_TRY(take("dilations", w.dilation, outer));
    if (outer[0] != 1 || outer[1] != 1) {
      return invalid_argument("%s: dilations of the batch and channel dimensions must be 1", op_name(node));
    }
  }
  DTG_TRY(read_padding(node, w));
  return w;
}

Status require_spatial(const Node& node, const Window& w) {
  if (w.outer_size[0] == 1 && w.outer_size[1] == 1 && w.outer_stride[0] == 1 && w.outer_stride[1] == 1) return {};
  return unimplemented("%s: windows and strides over the batch or channel dimension are not supported; they must be 1", op_name(node));
}

Result<Extent> extent_of(const Node& node, const Window& w, int i, int64_t in) {
  const auto at = static_cast<size_t>(i);
  if (in < 0) return Extent{};
  if (Bytes::of(std::max<int64_t>(w.size[at] - 1, 0), w.dilation[at]).value() > kReachMax) {
    return invalid_argument("%s: a window of %lld with dilation %lld reaches too far", op_name(node), static_cast<long long>(w.size[at]),
                            static_cast<long long>(w.dilation[at]));
  }
  const int64_t reach = (w.size[at] - 1) * w.dilation[at] + 1, stride = w.stride[at];
  if (w.padding == Padding::same) {
    const int64_t out = (in + stride - 1) / stride;
    return Extent{out, std::max<int64_t>((out - 1) * stride + reach - in, 0) / 2};
  }
  const int64_t room = in + w.before[at] + w.after[at] - reach;
  if (room < 0) {
    return invalid_argument("%s: a window of %lld (with dilation) does not fit into %s %lld with padding %lld + %lld", op_name(node),
                            static_cast<long long>(reach), i == 0 ? "height" : "width", static_cast<long long>(in),
                            static_cast<long long>(w.before[at]), static_cast<long long>(w.after[at]));
  }
  return Extent{room / stride + 1, w.before[at]};
}

std::vector<Attr> window_attrs(const Node& node, std::span<const std::string_view> names) {
  std::vector<Attr> attrs;
  for (std::string_view name : names) {
    if (const AttrValue* value = node.find_attr(name)) attrs.push_back({name, *value});
  }
  return attrs;
}

}  // namespace dtg::ops
