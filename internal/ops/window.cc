// See window.h.
#include "ops/window.h"

#include "base/size.h"

namespace dtg::ops {
namespace {

constexpr int64_t kReachMax = int64_t{1} << 61;  // sums with image sizes stay in range

const char* op_name(const Node& node) { return node.op->name().c_str(); }

// Four numbers, each at least 1.
Result<std::array<int64_t, 4>> four(const Node& node, std::string_view name, std::span<const int64_t> list) {
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

namespace {

// The numbers that the attributes of this name hold, or that were given in their place.
using Numbers = std::span<const int64_t>;

Result<Window> window_from(const Node& node, const Numbers* sizes, const Numbers* strides) {
  Window w;
  const AttrValue* format = node.find_attr("data_format");
  w.nchw = format && *format->get<std::string>() == "NCHW";
  if (format && *format->get<std::string>() == "NCHW_VECT_C") {
    return unimplemented("%s: data_format NCHW_VECT_C is not supported; use NHWC or NCHW", op_name(node));
  }
  const auto take = [&](std::string_view name, const Numbers* given, std::array<int64_t, 2>& spatial,
                        std::array<int64_t, 2>& outer) -> Status {
    DTG_ASSIGN(const auto values, four(node, name, given ? *given : Numbers(node.attr<std::vector<int64_t>>(name))));
    for (int i = 0; i < 2; ++i) spatial[static_cast<size_t>(i)] = values[static_cast<size_t>(w.spatial_axis(i))];
    outer = {values[0], values[static_cast<size_t>(w.channel_axis())]};
    return {};
  };
  DTG_TRY(take("strides", strides, w.stride, w.outer_stride));
  if (sizes || node.find_attr("ksize")) DTG_TRY(take("ksize", sizes, w.size, w.outer_size));
  if (node.find_attr("dilations")) {
    std::array<int64_t, 2> outer{};
    DTG_TRY(take("dilations", nullptr, w.dilation, outer));
    if (outer[0] != 1 || outer[1] != 1) {
      return invalid_argument("%s: dilations of the batch and channel dimensions must be 1", op_name(node));
    }
  }
  DTG_TRY(read_padding(node, w));
  return w;
}

}  // namespace

Result<Window> window_of(const Node& node) { return window_from(node, nullptr, nullptr); }
Result<Window> window_of(const Node& node, std::span<const int64_t> ksize, std::span<const int64_t> strides) {
  return window_from(node, &ksize, &strides);
}

Status require_spatial(const Node& node, const Window& w) {
  if (w.outer_size[0] == 1 && w.outer_size[1] == 1 && w.outer_stride[0] == 1 && w.outer_stride[1] == 1) return {};
  return unimplemented("%s: windows and strides over the batch or channel dimension are not supported; they must be 1", op_name(node));
}

Result<Extent> extent_along(const Node& node, const char* axis, const Stretch& s, int64_t in) {
  if (in < 0) return Extent{};
  if (Bytes::of(std::max<int64_t>(s.size - 1, 0), s.dilation).value() > kReachMax) {
    return invalid_argument("%s: a window of %lld with dilation %lld reaches too far", op_name(node), static_cast<long long>(s.size),
                            static_cast<long long>(s.dilation));
  }
  const int64_t reach = (s.size - 1) * s.dilation + 1;
  if (s.padding == Padding::same) {
    const int64_t out = (in + s.stride - 1) / s.stride;
    return Extent{out, std::max<int64_t>((out - 1) * s.stride + reach - in, 0) / 2};
  }
  const int64_t room = in + s.before + s.after - reach;
  if (room < 0) {
    return invalid_argument("%s: a window of %lld (with dilation) does not fit into %s %lld with padding %lld + %lld", op_name(node),
                            static_cast<long long>(reach), axis, static_cast<long long>(in), static_cast<long long>(s.before),
                            static_cast<long long>(s.after));
  }
  return Extent{room / s.stride + 1, s.before};
}

Result<Extent> extent_of(const Node& node, const Window& w, int i, int64_t in) {
  const auto at = static_cast<size_t>(i);
  return extent_along(node, i == 0 ? "height" : "width", {w.size[at], w.stride[at], w.dilation[at], w.padding, w.before[at], w.after[at]},
                      in);
}

std::vector<Attr> window_attrs(const Node& node, std::span<const std::string_view> names) {
  std::vector<Attr> attrs;
  for (std::string_view name : names) {
    if (const AttrValue* value = node.find_attr(name)) attrs.push_back({name, *value});
  }
  return attrs;
}

}  // namespace dtg::ops
