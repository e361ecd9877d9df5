// The kernel table and the error texts of kernels.
#include "exec/kernel.h"

#include <cstdarg>
#include <cstdio>

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

void KernelTable::add(KernelRow row) { rows_[row.op].push_back(std::move(row)); }
void KernelTable::add_element(ElementRow row) { elements_[row.op].push_back(row); }

const ElementRow* KernelTable::find_element(std::string_view op, DType dtype) const {
  const auto at = elements_.find(op);
  if (at == elements_.end()) return nullptr;
  for (const ElementRow& row : at->second) {
    if (row.dtype == dtype) return &row;
  }
  return nullptr;
}

const KernelRow* KernelTable::find(const Node& node, std::string_view device_type) const {
  const auto at = rows_.find(node.op->name());
  if (at == rows_.end()) return nullptr;
  for (const KernelRow& row : at->second) {
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

bool KernelTable::has_device(std::string_view op, std::string_view device_type) const {
  const auto at = rows_.find(op);
  if (at == rows_.end()) return false;
  for (const KernelRow& row : at->second) {
    if (device_type == row.device) return true;
  }
  return false;
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
