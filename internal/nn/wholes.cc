// Puts parts together and cuts them again, byte by byte. See wholes.h for threads.
#include "nn/wholes.h"

#include <algorithm>
#include <cstring>
#include <map>

namespace dtg {
namespace {

// Where the rows of a part lie in the whole: `outer` blocks, each of so many bytes, from that offset on of blocks of `stride`.
struct Region {
  int64_t outer = 1, bytes = 0, offset = 0, stride = 0;
};

Region region_of(const WholeVariable& whole, const NamedVariable& part) {
  const int axis = part.part.axis, rank = whole.shape.rank();
  const int64_t inner = whole.shape.count(axis + 1, rank) * static_cast<int64_t>(dtype_size(whole.dtype));
  return {whole.shape.count(0, axis), part.shape.dim(axis) * inner, part.part.first * inner, whole.shape.dim(axis) * inner};
}

Status check_type(const WholeVariable& whole) {
  if (dtype_size(whole.dtype) > 0) return {};
  return unimplemented("\"%s\" is of %s and cut into %zu parts; parts of that type are not put together", whole.name.c_str(),
                       dtype_name(whole.dtype), whole.parts.size());
}

}  // namespace

std::vector<WholeVariable> whole_variables(std::span<const NamedVariable* const> variables) {
  std::map<std::string_view, int32_t> found;
  std::map<std::string_view, std::string_view> names;  // of parts
  for (const NamedVariable* each : variables) {
    if (each->part.any()) ++found[each->part.whole];
  }
  const auto complete = [&](const NamedVariable& each) { return each.part.any() && found[each.part.whole] == each.part.of; };
  for (const NamedVariable* each : variables) {
    if (complete(*each)) names.emplace(each->name, each->part.whole);
  }
  std::map<std::string_view, size_t> places;
  std::vector<WholeVariable> wholes;
  for (const NamedVariable* each : variables) {
    const auto of = names.find(each->of);
    if (!complete(*each)) {
      wholes.push_back({each->name, each->dtype, each->shape, each->of, each->slot, {each}});
      continue;
    }
    const auto [place, is_new] = places.emplace(each->part.whole, wholes.size());
    if (is_new) {
      wholes.push_back(
          {each->part.whole, each->dtype, each->part.shape, of == names.end() ? each->of : std::string(of->second), each->slot, {}});
      wholes.back().parts.resize(static_cast<size_t>(each->part.of));
    }
    wholes[place->second].parts[static_cast<size_t>(each->part.number)] = each;
  }
  return wholes;
}

std::vector<WholeVariable> whole_variables(const Model& model) {
  std::vector<const NamedVariable*> all;
  for (const NamedVariable& each : model.variables()) all.push_back(&each);
  return whole_variables(all);
}

Result<Tensor> join_parts(const WholeVariable& whole, std::span<const Tensor> values) {
  if (values.size() == 1) return values[0];
  DTG_TRY(check_type(whole));
  DTG_ASSIGN(Tensor made, Tensor::allocate(whole.dtype, whole.shape));
  for (size_t i = 0; i < values.size(); ++i) {
    const Region at = region_of(whole, *whole.parts[i]);
    for (int64_t k = 0; k < at.outer && at.bytes > 0; ++k) {
      std::memcpy(made.as<char>() + k * at.stride + at.offset, values[i].as<char>() + k * at.bytes, static_cast<size_t>(at.bytes));
    }
  }
  return made;
}

Result<std::vector<Tensor>> cut_parts(const WholeVariable& whole, const Tensor& value) {
  std::vector<Tensor> parts;
  if (whole.parts.size() == 1) return std::vector<Tensor>{value};
  DTG_TRY(check_type(whole));
  for (const NamedVariable* part : whole.parts) {
    const Region at = region_of(whole, *part);
    DTG_ASSIGN(Tensor made, Tensor::allocate(whole.dtype, part->shape));
    for (int64_t k = 0; k < at.outer && at.bytes > 0; ++k) {
      std::memcpy(made.as<char>() + k * at.bytes, value.as<char>() + k * at.stride + at.offset, static_cast<size_t>(at.bytes));
    }
    parts.push_back(std::move(made));
  }
  return parts;
}

Status Assignment::add(const Graph& graph, const WholeVariable& whole, const Tensor& value) {
  DTG_ASSIGN(std::vector<Tensor> parts, cut_parts(whole, value));
  for (size_t i = 0; i < parts.size(); ++i) {
    feeds.push_back(graph.node(whole.parts[i]->assign).inputs[1]);
    tensors.push_back(std::move(parts[i]));
    targets.push_back(whole.parts[i]->assign);
  }
  return {};
}

std::vector<const Tensor*> Assignment::pointers() const {
  std::vector<const Tensor*> all;
  for (const Tensor& each : tensors) all.push_back(&each);
  return all;
}

}  // namespace dtg
