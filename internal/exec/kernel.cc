// The kernel table and the error texts of kernels.
#include "exec/kernel.h"

#include <algorithm>
#include <cstdarg>
#include <cstdio>

#include "exec/body.h"
#include "exec/resource.h"
#include "exec/rights.h"

namespace dtg {
namespace {
Status node_error(const Node* node, const char* format, va_list args) {
  char text[512];
  vsnprintf(text, sizeof text, format, args);
  return invalid_argument("%s: %s", node ? node->op->name().c_str() : "kernel", text);
}
}  // namespace

Status RunContext::error(const char* format, ...) const {
  va_list args;
  va_start(args, format);
  Status status = node_error(instruction_->node, format, args);
  va_end(args);
  return status;
}

Status PrepareContext::error(const char* format, ...) const {
  va_list args;
  va_start(args, format);
  Status status = node_error(node_, format, args);
  va_end(args);
  return status;
}

Status RunContext::check_rights(int input) const {
  const Rights& rights = *step_.rights();
  const Verb verb = verb_of(node().op->access_of(static_cast<size_t>(input)));
  if (rights.allows(verb)) return {};
  const auto* const resource = static_cast<const Resource*>(static_cast<const RefCounted*>(in<void>(input)));
  return rights.refuse(verb, format("%s the %s \"%s\"", verb_name(verb), resource->kind(), resource->name().c_str()));
}

Result<Ref<BodySource>> PrepareContext::bodies(const Function&) {
  return unimplemented("%s: no function can be called here", node_->op->name().c_str());
}

bool PrepareContext::may_attach() const { return !rights_ || rights_->allows(Verb::attach); }

Result<Ref<Resource>> PrepareContext::named_resource(std::string_view kind,
                                                     const std::function<Ref<Resource>(const std::string& name)>& make) {
  const auto& shared = attr<std::string>("shared_name");
  const std::string name = shared.empty() ? std::string(node_->name) : shared;
  std::function<Ref<Resource>()> maker;
  if (may_attach()) maker = [&] { return make(name); };
  auto found = store().find_or_create(device_, attr<std::string>("container"), name, kind, maker);
  if (maker || found.status().code() != Code::not_found) return found;
  return rights_->refuse(Verb::attach, format("make the %.*s \"%s\"", static_cast<int>(kind.size()), kind.data(), name.c_str()));
}

Status PrepareContext::workspace_error() const {
  std::string shapes;
  for (const Operand& input : inputs_) shapes += (shapes.empty() ? "" : ", ") + input.shape.text();
  return resource_exhausted("%s \"%.*s\": for inputs of shape %s it needs more scratch memory than can be counted in 63 bits",
                            node_->op->name().c_str(), static_cast<int>(node_->name.size()), node_->name.data(), shapes.c_str());
}

void KernelTable::add(KernelRow row) { rows_[row.op].push_back(std::move(row)); }
void KernelTable::add_element(ElementRow row) { elements_[row.op].push_back(row); }

namespace {

const ElementRow* match(const std::vector<ElementRow>& rows, std::span<const DType> in, DType out) {
  for (const ElementRow& row : rows) {
    if (row.out == out && std::ranges::equal(std::span(row.in, static_cast<size_t>(row.arity)), in)) return &row;
  }
  return nullptr;
}

template <class Rows>
auto* find_in(const Rows& table, std::string_view op) {
  const auto at = table.find(op);
  return at == table.end() ? nullptr : &at->second;
}

}  // namespace

void KernelTable::index(const OpTable& ops) {
  indexed_.assign(ops.count(), {});
  for (const OpDef* op : ops.list()) indexed_[op->number()] = {op, find_in(rows_, op->name()), find_in(elements_, op->name())};
}

const std::vector<KernelRow>* KernelTable::rows_of(const OpDef& op) const {
  if (op.number() < indexed_.size() && indexed_[op.number()].op == &op) return indexed_[op.number()].rows;
  return find_in(rows_, op.name());
}

const std::vector<ElementRow>* KernelTable::elements_of(const OpDef& op) const {
  if (op.number() < indexed_.size() && indexed_[op.number()].op == &op) return indexed_[op.number()].elements;
  return find_in(elements_, op.name());
}

const ElementRow* KernelTable::find_element(const OpDef& op, std::span<const DType> in, DType out) const {
  const auto* const rows = elements_of(op);
  return rows ? match(*rows, in, out) : nullptr;
}

const ElementRow* KernelTable::find_element(std::string_view op, std::span<const DType> in, DType out) const {
  const auto* const rows = find_in(elements_, op);
  return rows ? match(*rows, in, out) : nullptr;
}

const ElementRow* KernelTable::find_element(std::string_view op, DType dtype) const {
  const DType in[] = {dtype, dtype, dtype};
  return find_element(op, {in, static_cast<size_t>(element_arity(op))}, dtype);
}

int KernelTable::element_arity(std::string_view op) const {
  const auto at = elements_.find(op);
  return at == elements_.end() ? 0 : at->second.front().arity;
}

const KernelRow* KernelTable::find(const Node& node, std::string_view device_type) const {
  const std::vector<KernelRow>* const rows = rows_of(*node.op);
  if (!rows) return nullptr;
  const KernelRow* const own = find_in_rows(*rows, node, device_type);
  return own || !borrows(device_type) ? own : find_in_rows(*rows, node, "CPU");
}

const KernelRow* KernelTable::find_in_rows(const std::vector<KernelRow>& rows, const Node& node, std::string_view device_type) {
  for (const KernelRow& row : rows) {
    if (device_type != row.device) continue;
    bool fits = true;
    for (const auto& clause : row.types) {
      const AttrValue* value = node.find_attr(clause.attr);
      const DType* dtype = value ? value->get<DType>() : nullptr;
      fits = fits && dtype && clause.types.has(*dtype);
    }
    if (fits) return &row;
  }
  return nullptr;
}

bool KernelTable::has_device(const OpDef& op, std::string_view device_type) const {
  const std::vector<KernelRow>* const rows = rows_of(op);
  return rows && std::ranges::any_of(*rows, [&](const KernelRow& row) {
           return device_type == row.device || (borrows(device_type) && std::string_view(row.device) == "CPU");
         });
}

std::string KernelTable::describe(std::string_view op) const {
  const auto at = rows_.find(op);
  if (at == rows_.end()) return "none";
  std::string text;
  for (const KernelRow& row : at->second) {
    if (!text.empty()) text += "; ";
    text += row.device;
    for (const auto& clause : row.types) {
      text += std::string(" ") + clause.attr + " in {";
      bool first = true;
      for (int n = 1; n < 32; ++n) {
        if (!clause.types.has(static_cast<DType>(n)) || !dtype_is_known(n)) continue;
        text += std::string(first ? "" : ", ") + dtype_name(static_cast<DType>(n));
        first = false;
      }
      text += "}";
    }
  }
  return text;
}

}  // namespace dtg
