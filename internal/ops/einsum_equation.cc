// Reading Einsum equations; see einsum.h.
#include <algorithm>

#include "ops/einsum.h"

namespace dtg::ops {
namespace {

// Letters as they are, "..." as one dot; an error for anything else.
Result<std::string> read_labels(std::string_view text) {
  std::string labels;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z')) {
      labels += c;
    } else if (text.substr(i, 3) == "..." && labels.find('.') == std::string::npos) {
      labels += '.';
      i += 2;
    } else {
      return invalid_argument("\"%.*s\" must be letters with at most one ellipsis (...)", static_cast<int>(text.size()), text.data());
    }
  }
  return labels;
}

Status merge_dim(EinsumShapes& shapes, int id, int64_t dim) {
  const auto at = std::ranges::find_if(shapes.labels, [id](const EinsumLabel& label) { return label.id == id; });
  if (at == shapes.labels.end()) {
    shapes.labels.push_back({id, dim});
    return {};
  }
  // An ellipsis broadcasts: 1 goes with anything, and an open dimension could still be 1.
  const bool broadcasts = id >= kEllipsisDim;
  if (dim < 0 || at->dim < 0) {
    const int64_t known = std::max(dim, at->dim);
    at->dim = broadcasts && known <= 1 ? -1 : known;
    return {};
  }
  if (broadcasts && (dim == 1 || at->dim == 1)) {
    at->dim = dim == 1 ? at->dim : dim;
    return {};
  }
  if (dim == at->dim) return {};
  return invalid_argument("one label stands for dimensions of %lld and %lld", static_cast<long long>(at->dim), static_cast<long long>(dim));
}

}  // namespace

Result<Equation> parse_equation(const std::string& text, int operands) {
  Equation equation;
  const size_t arrow = text.find("->");
  if (arrow == std::string::npos || text.find("->", arrow + 2) != std::string::npos) {
    return invalid_argument("equation \"%s\" must have one \"->\"", text.c_str());
  }
  std::string_view left = std::string_view(text).substr(0, arrow);
  for (;;) {
    const size_t comma = left.find(',');
    DTG_ASSIGN(std::string labels, read_labels(left.substr(0, comma)));
    equation.inputs.push_back(std::move(labels));
    if (comma == std::string_view::npos) break;
    left.remove_prefix(comma + 1);
  }
  DTG_ASSIGN(equation.output, read_labels(std::string_view(text).substr(arrow + 2)));
  if (static_cast<int>(equation.inputs.size()) != operands) {
    return invalid_argument("equation \"%s\" is for %d operands, there are %d", text.c_str(), static_cast<int>(equation.inputs.size()),
                            operands);
  }
  if (operands > 2) return invalid_argument("Einsum takes one or two operands, not %d", operands);
  for (char label : equation.output) {
    const bool known = std::ranges::any_of(equation.inputs, [label](const std::string& in) { return in.find(label) != std::string::npos; });
    if (!known) return invalid_argument("label '%c' of the output stands at no operand", label);
  }
  return equation;
}

Result<EinsumShapes> resolve_equation(const Equation& equation, std::span<const PartialShape> inputs) {
  EinsumShapes shapes;
  int broadcast = 0;
  for (size_t o = 0; o < inputs.size(); ++o) {
    const std::string& labels = equation.inputs[o];
    const PartialShape& shape = inputs[o];
    const bool open = labels.find('.') != std::string::npos;
    const int named = static_cast<int>(labels.size()) - (open ? 1 : 0), more = shape.rank() - named;
    if (more < 0 || (!open && more > 0)) {
      return invalid_argument("operand %d has shape %s, but %d labels", static_cast<int>(o), shape.text().c_str(), named);
    }
    std::vector<int> ids;
    for (char label : labels) {
      if (label != '.') ids.push_back(label);
      for (int k = 0; label == '.' && k < more; ++k) ids.push_back(kEllipsisDim + more - 1 - k);
    }
    for (size_t d = 0; d < ids.size(); ++d) DTG_TRY(merge_dim(shapes, ids[d], shape.dim(static_cast<int>(d))));
    broadcast = std::max(broadcast, open ? more : 0);
    shapes.inputs.push_back(std::move(ids));
  }
  for (char label : equation.output) {
    if (label != '.') shapes.output.push_back(label);
    for (int k = 0; label == '.' && k < broadcast; ++k) shapes.output.push_back(kEllipsisDim + broadcast - 1 - k);
  }
  if (shapes.output.size() > static_cast<size_t>(kRankMax))
    return invalid_argument("the output would have rank %d", static_cast<int>(shapes.output.size()));
  return shapes;
}

}  // namespace dtg::ops
