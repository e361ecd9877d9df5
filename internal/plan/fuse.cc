// Fusion. Three things are worth it on a CPU: bias and activation done while a product is still in the cache, the
// gradients of pooling and of the Relu before it in one pass, and chains of element-wise ops in one pass over memory
// instead of one per op. A value that somebody else reads, that is fetched, fed or waited for by a control edge stays a value of its own.
#include <algorithm>

#include "plan/draft.h"

namespace dtg {
namespace {

constexpr size_t kStepsMax = 16;
constexpr size_t kInputsMax = 8;

class Fuser {
 public:
  Fuser(const PlanContext& context, Draft& draft) : context_(context), draft_(draft), nodes_(draft.nodes) {}

  void run() {
    controlled_.resize(nodes_.size());
    for (const DraftNode& node : nodes_) {
      // Those of folded nodes count too: their readers wait for them.
      for (uint32_t control : node.controls) controlled_[control] = true;
    }
    for (uint32_t n = 0; n < nodes_.size(); ++n) fuse_bias(n);
    for (uint32_t n = 0; n < nodes_.size(); ++n) fuse_pool(n);
    // From the back, so that a chain is taken at its end and grows towards its operands.
    for (uint32_t n = static_cast<uint32_t>(nodes_.size()); n-- > 0;) fuse_chain(n);
  }

 private:
  const std::string& op(uint32_t n) const { return nodes_[n].node->op->name(); }

  // The node that computes `value` for nobody but `reader`, on the same device; kNone otherwise.
  uint32_t sole_producer(uint32_t value, uint32_t reader) const {
    const DraftValue& v = draft_.values[value];
    if (v.producer == kNone || v.known.valid() || v.uses != 1 || v.fetches > 0 || v.dynamic()) return kNone;
    const DraftNode& producer = nodes_[v.producer];
    if (producer.dead || producer.target || controlled_[v.producer] || producer.device != nodes_[reader].device) return kNone;
    return v.producer;
  }

  // A node of a private op in the place of `n`; the absorbed ones die and forward their control edges.
  void replace(uint32_t n, const char* type, const std::vector<uint32_t>& inputs, std::vector<Attr> attrs,
               const std::vector<uint32_t>& absorbed) {
    DraftNode& node = nodes_[n];
    Node* fused = draft_.arena.make<Node>(*node.node);
    fused->op = context_.ops->find(type);
    auto* list = draft_.arena.make<std::vector<Attr>>(std::move(attrs));
    fused->attrs = *list;
    // Inputs are read through the draft; the graph's own list would have the wrong length.
    fused->inputs = {};
    fused->controls = {};
    node.node = fused;
    node.row = nullptr;
    for (uint32_t a : absorbed) {
      DraftNode& gone = nodes_[a];
      node.controls.insert(node.controls.end(), gone.controls.begin(), gone.controls.end());
      gone.dead = true;
      gone.forwards = {n};
    }
    node.inputs = draft_.arena.copy(std::span<const uint32_t>(inputs));
  }

  // The attributes of `type` as `n` has them, or their defaults.
  std::vector<Attr> attrs_of(const char* type, uint32_t n) const {
    std::vector<Attr> attrs;
    for (const AttrDef& def : context_.ops->find(type)->attrs()) {
      const AttrValue* value = nodes_[n].node->find_attr(def.name);
      if (value) attrs.push_back({def.name, *value});
      else if (def.fallback) attrs.push_back({def.name, *def.fallback});
    }
    return attrs;
  }

  // ReluGrad(MaxPoolGrad(y, ..), y): where a window's maximum is not above zero, nothing flows.
  void fuse_pool(uint32_t n) {
    if (nodes_[n].dead || op(n) != "ReluGrad" || !context_.ops->find("_MaxPoolGradRelu")) return;
    const uint32_t pool = sole_producer(nodes_[n].inputs[0], n);
    if (pool == kNone || op(pool) != "MaxPoolGrad" || nodes_[pool].inputs[0] != nodes_[n].inputs[1]) return;
    if (draft_.values[nodes_[n].outputs[0]].info.dtype != DType::f32) return;
    const std::vector<uint32_t> inputs(nodes_[pool].inputs.begin(), nodes_[pool].inputs.end());
    replace(n, "_MaxPoolGradRelu", inputs, attrs_of("_MaxPoolGradRelu", pool), {pool});
  }

  void fuse_bias(uint32_t n) {
    if (nodes_[n].dead) return;
    const bool relu = op(n) == "Relu";
    if (!relu && op(n) != "BiasAdd") return;
    uint32_t bias = n;
    if (relu) {
      bias = sole_producer(nodes_[n].inputs[0], n);
      if (bias == kNone || op(bias) != "BiasAdd") return;
    } else if (next_is_relu(n)) {
      return;  // the Relu takes it
    }
    if (nodes_[bias].node->attr<std::string>("data_format") != "NHWC") return;
    const uint32_t product = sole_producer(nodes_[bias].inputs[0], bias);
    if (product == kNone) return;
    const char* type = op(product) == "MatMul" ? "_FusedMatMul" : op(product) == "Conv2D" ? "_FusedConv2D" : nullptr;
    if (!type || !context_.ops->find(type) || draft_.values[nodes_[n].outputs[0]].info.dtype != DType::f32) return;
    if (op(product) == "Conv2D" && !plain_conv(product)) return;
    std::vector<Attr> attrs = attrs_of(type, product);
    std::erase_if(attrs, [](const Attr& attr) { return attr.name == "activation"; });
    attrs.push_back({"activation", AttrValue(relu ? "Relu" : "")});
    const std::vector<uint32_t> inputs = {nodes_[product].inputs[0], nodes_[product].inputs[1], nodes_[bias].inputs[1]};
    std::vector<uint32_t> absorbed = {product};
    if (relu) absorbed.push_back(bias);
    replace(n, type, inputs, std::move(attrs), absorbed);
  }

  // What _FusedConv2D computes: NHWC, and one group of channels.
  bool plain_conv(uint32_t n) const {
    const PartialShape& image = draft_.values[nodes_[n].inputs[0]].info.shape;
    const PartialShape& filter = draft_.values[nodes_[n].inputs[1]].info.shape;
    return nodes_[n].node->attr<std::string>("data_format") == "NHWC" && image.rank() == 4 && filter.rank() == 4 &&
           image.dim(3) == filter.dim(2);
  }

  bool next_is_relu(uint32_t n) const {
    const uint32_t value = nodes_[n].outputs[0];
    for (uint32_t m = n + 1; m < nodes_.size(); ++m) {
      if (!nodes_[m].dead && op(m) == "Relu" && nodes_[m].inputs[0] == value) return sole_producer(value, m) == n;
    }
    return false;
  }

  bool is_element(uint32_t n) const {
    const DraftNode& node = nodes_[n];
    if (node.dead || node.node->op->is_stateful() || node.outputs.size() != 1) return false;
    const DraftValue& out = draft_.values[node.outputs[0]];
    if (out.dynamic() || out.known.valid() || out.info.dtype == DType::resource) return false;
    const ElementRow* row = context_.kernels->find_element(node.node->op->name(), out.info.dtype);
    if (!row || static_cast<size_t>(row->arity) != node.inputs.size()) return false;
    return std::ranges::all_of(node.inputs, [&](uint32_t input) {
      const DraftValue& in = draft_.values[input];
      if (in.info.dtype != out.info.dtype || in.dynamic()) return false;
      return in.info.shape == out.info.shape || in.info.shape.to_shape().value().count() == 1;
    });
  }

  // A chain in the making: steps in the order they run, operands as inputs (>= 0) or steps (-1 - step).
  struct Chain {
    std::vector<std::string> ops;
    std::vector<int64_t> operands;
    std::vector<uint32_t> inputs, absorbed;
    PartialShape shape;
  };

  // Adds `n` after what it absorbs; returns the step's number.
  int64_t grow(uint32_t n, Chain& chain, size_t& budget) {
    std::vector<int64_t> operands;
    for (uint32_t input : nodes_[n].inputs) {
      const uint32_t producer = sole_producer(input, n);
      const bool inside = producer != kNone && budget > 0 && is_element(producer) && draft_.values[input].info.shape == chain.shape &&
                          chain.inputs.size() + 2 <= kInputsMax;
      if (inside) {
        --budget;
        chain.absorbed.push_back(producer);
        operands.push_back(-1 - grow(producer, chain, budget));
        continue;
      }
      auto at = std::ranges::find(chain.inputs, input);
      if (at == chain.inputs.end()) at = chain.inputs.insert(at, input);
      operands.push_back(at - chain.inputs.begin());
    }
    chain.ops.push_back(op(n));
    chain.operands.insert(chain.operands.end(), operands.begin(), operands.end());
    return static_cast<int64_t>(chain.ops.size()) - 1;
  }

  void fuse_chain(uint32_t n) {
    if (nodes_[n].dead || !is_element(n) || !context_.ops->find("_ElementChain")) return;
    Chain chain;
    chain.shape = draft_.values[nodes_[n].outputs[0]].info.shape;
    size_t budget = kStepsMax - 1;
    grow(n, chain, budget);
    if (chain.absorbed.empty()) return;
    std::vector<Attr> attrs = {{"ops", AttrValue(AttrValue::Variant(chain.ops))},
                               {"operands", AttrValue(chain.operands)},
                               {"N", AttrValue(static_cast<int64_t>(chain.inputs.size()))},
                               {"T", AttrValue(draft_.values[nodes_[n].outputs[0]].info.dtype)}};
    replace(n, "_ElementChain", chain.inputs, std::move(attrs), chain.absorbed);
  }

  const PlanContext& context_;
  Draft& draft_;
  std::vector<DraftNode>& nodes_;
  std::vector<bool> controlled_;
};

}  // namespace

void fuse_draft(const PlanContext& context, Draft& draft) { Fuser(context, draft).run(); }

}  // namespace dtg
