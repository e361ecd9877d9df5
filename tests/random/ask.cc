// Proposals by contract.
#include "random/ask.h"

#include <algorithm>

namespace dtg::random {
namespace {

DType random_type(Draw& draw, DTypeSet allowed) {
  struct Weight {
    DType dtype;
    int weight;
  };
  static constexpr Weight kWeights[] = {{DType::f32, 50}, {DType::f64, 12},    {DType::i32, 14}, {DType::i64, 8}, {DType::f16, 4},
                                        {DType::bf16, 4}, {DType::boolean, 5}, {DType::u8, 2},   {DType::i8, 2},  {DType::i16, 1},
                                        {DType::u16, 1},  {DType::u32, 1},     {DType::u64, 1}};
  int total = 0;
  for (const Weight& row : kWeights) total += allowed.has(row.dtype) ? row.weight : 0;
  int64_t at = draw.below(total);
  for (const Weight& row : kWeights) {
    if (!allowed.has(row.dtype)) continue;
    if (at < row.weight) return row.dtype;
    at -= row.weight;
  }
  return DType::f32;
}

}  // namespace

size_t Ask::index(std::string_view arg) const {
  for (size_t i = 0; i < op.inputs().size(); ++i) {
    if (op.inputs()[i].name == arg) return i;
  }
  return 0;
}

const AttrValue* Ask::get(std::string_view attr) const {
  for (const auto& [name, value] : attrs_) {
    if (name == attr) return &value;
  }
  return nullptr;
}
bool Ask::has(std::string_view attr) const { return get(attr) != nullptr; }

void Ask::set(std::string_view attr, AttrValue value) {
  for (auto& [name, old] : attrs_) {
    if (name == attr) {
      old = std::move(value);
      return;
    }
  }
  attrs_.emplace_back(std::string(attr), std::move(value));
}

DType Ask::type(std::string_view attr) {
  if (const AttrValue* known = get(attr)) return *known->get<DType>();
  const AttrDef* def = op.find_attr(attr);
  DType chosen = random_type(w.draw, def->types);
  if (def->fallback && w.draw.chance(50)) chosen = *def->fallback->get<DType>();
  set(attr, chosen);
  return chosen;
}

void Ask::puts(std::string_view arg, std::vector<Port> ports) {
  const size_t at = index(arg);
  args_[at] = std::move(ports);
  filled_[at] = true;
}
bool Ask::filled(std::string_view arg) const { return filled_[index(arg)]; }
Port Ask::input(std::string_view arg) const {
  const auto& ports = args_[index(arg)];
  return ports.empty() ? Port() : ports[0];
}
DType Ask::dtype(const ArgDef& arg) { return arg.dtype != DType::invalid ? arg.dtype : type(arg.type_attr); }
DType Ask::dtype(std::string_view arg) { return dtype(op.inputs()[index(arg)]); }

Port Ask::data(std::string_view arg, int rank_min, int rank_max) {
  const Port port = w.any(dtype(arg), rank_min, rank_max);
  put(arg, port);
  return port;
}
void Ask::numbers(std::string_view arg, const std::vector<int64_t>& values, bool scalar) { put(arg, w.ints(dtype(arg), values, scalar)); }
void Ask::numbers(std::string_view arg, const std::vector<int64_t>& values, const Shape& shape) {
  put(arg, w.ints(dtype(arg), values, shape));
}
void Ask::use(std::string_view arg, Resident& resident, bool writes) {
  put(arg, resident.handle);
  uses_.push_back({&resident, writes});
}

AttrValue Ask::random_attr(const AttrDef& attr) {
  Draw& draw = w.draw;
  switch (attr.kind) {
    case AttrKind::integer: return draw.between(attr.minimum.value_or(-1), attr.minimum.value_or(-1) + 3);
    case AttrKind::real: return draw.real(0.1, 1);
    case AttrKind::boolean: return draw.chance(50);
    case AttrKind::type: return random_type(draw, attr.types);
    case AttrKind::shape: return draw.chance(50) ? PartialShape(w.shape()) : PartialShape::unknown();
    case AttrKind::string: return attr.strings.empty() ? std::string() : draw.pick(attr.strings);
    case AttrKind::tensor: return w.random_tensor(DType::f32, w.shape());
    case AttrKind::list_integer: return std::vector<int64_t>(static_cast<size_t>(attr.minimum.value_or(draw.below(4))), draw.between(1, 2));
    case AttrKind::list_type:
      return std::vector<DType>(static_cast<size_t>(std::max<int64_t>(attr.minimum.value_or(1), draw.below(4))),
                                random_type(draw, attr.types));
    case AttrKind::list_shape: return std::vector<PartialShape>(1, PartialShape(w.shape()));
    default: return attr.fallback.value_or(AttrValue());
  }
}

void Ask::fill_attrs() {
  for (const AttrDef& attr : op.attrs()) {
    if (has(attr.name)) continue;
    if (attr.fallback && w.draw.chance(65)) continue;
    set(attr.name, random_attr(attr));
  }
}

// Values of one type attribute tend to have one shape, or shapes that broadcast.
Port Ask::generic(const ArgDef& arg, bool first) {
  const DType dtype = this->dtype(arg);
  if (arg.rank_max == 0) return w.any(dtype, 0, 0);
  if (first || w.draw.chance(8)) return w.any(dtype, arg.rank_min, arg.rank_max);
  const Shape* like = nullptr;
  for (size_t i = 0; i < op.inputs().size(); ++i) {
    if (filled_[i] && !args_[i].empty() && w.tensor(args_[i][0]).valid() && op.inputs()[i].type_attr == arg.type_attr)
      like = &w.tensor(args_[i][0]).shape();
  }
  if (!like) return w.any(dtype, arg.rank_min, arg.rank_max);
  if (w.draw.chance(75)) return w.wanted(dtype, *like);
  std::vector<int64_t> dims(like->dims().begin(), like->dims().end());
  for (int64_t& dim : dims) dim = w.draw.chance(40) ? 1 : dim;
  if (!dims.empty() && w.draw.chance(40)) dims.erase(dims.begin());
  return w.wanted(dtype, Shape::make(dims).take());
}

void Ask::fill_args() {
  // First what is data, then what speaks about the data (axes, indices).
  for (int pass = 0; pass < 2; ++pass) {
    for (size_t i = 0; i < op.inputs().size(); ++i) {
      const ArgDef& arg = op.inputs()[i];
      if (filled_[i]) continue;
      if (pass == 0 && arg.dtype == DType::resource) continue;
      if (pass == 1 ? fill_by_name(*this, arg) : false) continue;
      const bool number = kIndex.has(dtype(arg)) && i > 0;
      if (pass == 0 && number) continue;
      std::vector<Port> ports;
      int64_t count = 1;
      if (!arg.number_attr.empty()) count = get(arg.number_attr) ? *get(arg.number_attr)->get<int64_t>() : 1;
      if (!arg.list_attr.empty()) {
        for (DType one : *get(arg.list_attr)->get<std::vector<DType>>()) ports.push_back(w.any(one, 0, kRankMax));
        puts(arg.name, std::move(ports));
        continue;
      }
      const Port one = generic(arg, i == 0);
      ports.push_back(one);
      for (int64_t k = 1; k < count; ++k)
        ports.push_back(w.draw.chance(30) ? one : w.wanted(dtype(arg), w.tensor(one).valid() ? w.tensor(one).shape() : Shape()));
      puts(arg.name, std::move(ports));
    }
  }
}

int Ask::propose() {
  if (const Hint hint = hint_for(op.name())) hint(*this);
  fill_attrs();
  fill_args();
  NodeRecord record;
  record.op = op.name();
  record.attrs = attrs_;
  for (const auto& ports : args_) {
    for (const Port& port : ports) {
      if (port.node < 0) return -1;
      record.inputs.push_back(port);
    }
  }
  for (const Use& use : uses_) {
    for (int control : w.controls_for(*use.resident, use.writes)) record.controls.push_back(control);
  }
  if (uses_.empty() && w.draw.chance(60)) record.place = static_cast<int>(w.draw.below(2));
  if (w.draw.chance(4) && !w.scene.nodes.empty()) {
    const auto other = static_cast<int>(w.draw.below(static_cast<int64_t>(w.scene.nodes.size())));
    // It may bring an update into the run that nothing orders.
    const bool effect = w.wishes.ordered && w.ops.find(w.scene.nodes[static_cast<size_t>(other)].op)->is_stateful();
    if (!effect) record.controls.push_back(other);
    w.count("control_edge");
  }
  std::ranges::sort(record.controls);
  record.controls.erase(std::unique(record.controls.begin(), record.controls.end()), record.controls.end());
  const int node = w.add(std::move(record));
  if (node < 0) return -1;
  for (const Use& use : uses_) w.done(*use.resident, node, use.writes);
  return node;
}

}  // namespace dtg::random
