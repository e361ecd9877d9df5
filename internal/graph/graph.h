// Graph: nodes and values, append-only. Nodes never move and never change once added; the node count is
// published with release, so a run that starts sees the prefix of its start while the graph grows.
//
// Owner: the host, through the C ABI, and every session and plan made from it. Adding is serialised by a
// lock of its own; reading a node below node_count() needs none. Scopes belong to whoever builds.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <memory>
#include <mutex>
#include <new>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <unordered_map>
#include <vector>

#include "base/arena.h"
#include "base/ref.h"
#include "graph/attr_lists.h"
#include "graph/name_table.h"
#include "graph/op_def.h"
#include "graph/value.h"

namespace dtg {

// What is known about one output of a node when it is built.
struct ValueInfo {
  DType dtype = DType::invalid;
  // A resource: type of what it holds, and `shape` is the shape of what it holds.
  DType held = DType::invalid;
  PartialShape shape;
  bool operator==(const ValueInfo&) const = default;
};

struct Node {
  const OpDef* op = nullptr;
  NodeId id = 0;
  std::string_view name;
  std::string_view device;           // as requested, scopes merged in; may be empty
  std::string_view location;         // where the host made it ("file:line"), may be empty
  std::span<const Value> inputs;     // list arguments flattened
  std::span<const NodeId> controls;  // nodes that must run first
  std::span<const NodeId> colocate;  // nodes to share a device with
  std::span<const Attr> attrs;       // all of them, defaults written out, in definition order
  std::span<const ValueInfo> outputs;
  std::span<const Tensor> known;  // the outputs that constants and shapes alone decide; empty where none is

  const AttrValue* find_attr(std::string_view key) const;
  // The value of an attribute that the definition declares; the kind must match the definition's.
  template <class T>
  const T& attr(std::string_view key) const {
    return *find_attr(key)->get<T>();
  }
};

// Decides where nodes go as they are added; stands in the stack of device scopes (Graph::push_device_function). Called
// with the graph's lock held: it must not touch the graph.
class DeviceFunction : public RefCounted {
 public:
  // `device` is what the node and the scopes further in ask for; the answer takes its place, and scopes further out fill in
  // what it leaves open.
  virtual Result<std::string> place(const OpDef& op, std::string_view device, std::span<const Attr> attrs) = 0;
};

// A request for one node.
struct NodeSpec {
  std::string_view op = {};
  std::string_view name = {};  // empty: made from the op's name; given: must be free
  std::string_view device = {};
  std::string_view location = {};
  std::span<const Value> inputs = {};
  std::span<const NodeId> controls = {};
  std::span<const NodeId> colocate = {};
  std::span<const Attr> attrs = {};
};

class Graph : public RefCounted {
 public:
  // `ops` must be frozen and outlive the graph. Fails when the process has made 2^20 graphs.
  static Result<Ref<Graph>> create(const OpTable* ops);

  // The body of a function that is called from `outer`: values of `outer`, and of what that lies in, may be used in it. Each becomes an
  // argument the first time (or, where it is a small constant, a copy).
  static Result<Ref<Graph>> create_inside(Ref<Graph> outer);
  // Null when it is no body, or one that is finished: what calls it, the outer graph holds, so it must not hold that.
  Graph* outer() const { return outer_.get(); }
  // The tag of that graph, for good; 0: it is no body.
  uint32_t outer_tag() const { return outer_tag_; }
  // What the function will be called; set by whoever makes the body, before others see it.
  void set_function_name(std::string_view name) { function_name_ = name; }
  const std::string& function_name() const { return function_name_; }
  struct Capture {
    Value outer;
    Value argument;
  };
  std::vector<Capture> captures() const;
  // A value that whoever calls the function gives. `info` says what is known of it.
  Result<Value> add_argument(const ValueInfo& info, std::string_view name = {});
  // Those that were asked for, without what was captured.
  std::vector<Value> arguments() const;
  // What stands in this graph for a value of a graph around it.
  Result<Value> capture(Value outer);
  // Nobody adds nodes from now on, but for arguments: it is the body of a function.
  void close();
  bool is_closed() const { return closed_.load(std::memory_order_acquire); }

  // The node that does all that `node` does and more, with the same inputs and first outputs; kNoNode where there is none. A plan that
  // needs both makes do with that one.
  NodeId extension_of(NodeId node) const;
  // The attribute by which a node says whose extension it is.
  static constexpr std::string_view kExtendsAttr = "_extends";

  // Checks arity, types, attributes, contract and shapes; the node exists only if all hold.
  Result<NodeId> add(const NodeSpec& spec);

  uint32_t tag() const { return tag_; }
  const OpTable& ops() const { return *ops_; }
  uint32_t node_count() const { return count_.load(std::memory_order_acquire); }
  const Node& node(NodeId id) const;
  Value value(NodeId node, uint32_t output = 0) const { return Value(tag_, node, output); }
  const ValueInfo& info(Value value) const { return node(value.node()).outputs[value.output()]; }
  // The value belongs here and exists; otherwise an error that says which of the two is wrong.
  Status check(Value value) const;
  Status check_node(NodeId node) const;
  // kNoNode when there is none.
  NodeId find(std::string_view name) const;
  // "node" or "node:1"; NOT_FOUND / INVALID_ARGUMENT otherwise.
  Result<Value> parse_value(std::string_view text) const;
  std::string value_name(Value value) const;  // "node:1"
  // The value as far as it was known from constants and shapes alone when its node was made; invalid tensor otherwise.
  Tensor constant_value(Value value) const;

  // What is built until end_trial() may fail. Names and numbers that it took are then free again, and its nodes, which nobody was told of,
  // stay without one: find() does not know them, and a written graph calls them otherwise. Trials nest.
  struct Trial {
    NodeId first = 0;
    size_t changes = 0;
  };
  Trial begin_trial();
  void end_trial(const Trial& trial, bool failed);
  // Whether a trial has failed; then the name by which a node is written is this, which is its own unless the trial lost it.
  bool has_nameless() const;
  std::string written_name(NodeId id) const;

  // A name that is free: `base`, `base_1`, ... inside the current name scope.
  std::string unique_name(std::string_view base);

  // Scopes, innermost last. Everything added while they are open gets them; empty resets.
  // A scope whose name cannot stand in a node's name is an error of every node inside; check_name_scope() says so beforehand.
  void push_name_scope(std::string_view name);
  Status check_name_scope(std::string_view name) const;
  void push_device(std::string_view device);                // merged over the outer ones, field by field; "/" changes nothing
  void push_device_function(Ref<DeviceFunction> function);  // left by pop_device() too; empty device scopes hide it
  void push_controls(std::span<const NodeId> nodes);
  // None of the control scopes that are open now holds inside; left by pop_controls().
  void push_no_controls();
  void push_colocation(NodeId node);
  // The node that opened the recompute scope that is open (graph/recompute.h); kNoNode: none is.
  NodeId open_mark() const { return open_mark_; }
  void set_open_mark(NodeId mark) { open_mark_ = mark; }
  Status pop_name_scope();
  Status pop_device();
  Status pop_controls();
  Status pop_colocation();

 private:
  Graph(const OpTable* ops, uint32_t tag) : ops_(ops), tag_(tag), names_(*this) {}
  Result<NodeId> add_here(const NodeSpec& spec);
  Result<Value> make_argument(const ValueInfo& info, std::string_view name);
  Result<NodeId> add_inside(const NodeSpec& spec);
  Status check_extension() const;
  struct DeviceScope {
    std::string device;            // merged with the scopes below it, down to the next function or empty scope
    Ref<DeviceFunction> function;  // or this
    size_t inside = 0;             // scopes of the stack that lie outside that function; 0 when there is none
  };
  struct MergedDevice {
    std::string outer, inner, both;
  };
  struct NameScope {
    std::string text;
    Status status;
  };
  struct Scopes {
    std::vector<NameScope> names;
    std::vector<DeviceScope> devices;
    std::vector<std::vector<NodeId>> controls;
    std::vector<NodeId> colocations;
  };
  struct NameChange {
    int* counter = nullptr;  // in the map, where it stays
    int before = 0;
  };
  // A node in the making. Its lists lie here until it passed every check; one is made at a time, so the memory is used again.
  struct Draft {
    Node node;
    std::string name;
    size_t name_base = 0;  // so much of it stands before the number
    uint32_t name_hash = 0;
    std::vector<Attr> attrs;  // empty where they are those of a node before
    AttrLists::Signature signature = 0;
    std::vector<char> given;        // which attributes are decided
    std::vector<ValueInfo> inputs;  // what is known of them
    std::vector<ValueInfo> outputs;
    std::vector<NodeId> controls, colocate;
    std::vector<Tensor> known;
    NameChange counted;  // by the name: of a node that is refused it is counted back
  };
  // Room for the nodes of a chunk, which are made as they are added: what nobody wrote to costs no memory.
  class NodeMemory {
   public:
    NodeMemory() = default;
    explicit NodeMemory(size_t nodes) : bytes_(new std::byte[nodes * sizeof(Node)]) {}
    explicit operator bool() const { return bytes_ != nullptr; }
    void* at(size_t i) { return bytes_.get() + i * sizeof(Node); }
    const Node& operator[](size_t i) const { return *std::launder(reinterpret_cast<const Node*>(bytes_.get() + i * sizeof(Node))); }

   private:
    static_assert(std::is_trivially_destructible_v<Node> && alignof(Node) <= alignof(std::max_align_t));
    std::unique_ptr<std::byte[]> bytes_;
  };
  struct NameHash {
    using is_transparent = void;
    size_t operator()(std::string_view name) const { return std::hash<std::string_view>()(name); }
  };
  Status resolve(const NodeSpec& spec);
  Status resolve_name(const NodeSpec& spec);
  Status resolve_edges(const NodeSpec& spec);
  Status resolve_device(const NodeSpec& spec);
  Result<std::string> device_in_scopes(const NodeSpec& spec);
  Status resolve_attrs(const NodeSpec& spec);
  Status resolve_types();
  Status infer();
  void find_known();
  NodeId publish(const NodeSpec& spec);
  std::string_view keep_device(std::string_view device);
  std::span<const ValueInfo> keep_outputs();
  void append_prefix(std::string& name) const;
  std::string scope_text(std::string_view name) const;
  uint32_t suggest_name(std::string& name);
  uint32_t next_name(std::string& name);
  uint32_t settle_name(std::string& name, uint32_t hash);
  void make_scope_free(std::string& scope);
  void count_up(int& counter);

  static constexpr int kChunks = 22;  // chunk k holds 2^6 << k nodes: 2^28 in all
  static constexpr uint32_t kFirstChunk = 1u << 6;
  const OpTable* const ops_;
  const uint32_t tag_;
  std::atomic<uint32_t> count_{0};
  std::array<NodeMemory, kChunks> chunks_;  // a chunk is set before its first node is published
  mutable std::mutex mutex_;                // guards everything below
  Arena arena_;
  NameTable names_;
  NodeId open_mark_ = kNoNode;
  AttrLists attr_lists_;
  std::unordered_map<std::string, int, NameHash, std::equal_to<>> name_counters_;
  int trials_ = 0;                                   // open ones
  std::vector<NameChange> name_changes_;             // since the first of them began
  std::vector<std::pair<NodeId, NodeId>> nameless_;  // first and last + 1 of what failed trials left
  std::string_view last_device_;                     // in the arena; the next node mostly asks for the same
  std::span<const ValueInfo> last_outputs_;          // in the arena; the next node mostly gives the same
  std::array<MergedDevice, 4> merged_;               // the last few in turn: a program opens the same scopes again and again
  size_t next_merged_ = 0;
  Scopes scopes_;
  Draft draft_;
  std::string function_name_;
  Ref<Graph> outer_;  // set before anybody else sees the graph, until close()
  uint32_t outer_tag_ = 0;
  std::atomic<bool> closed_{false};
  std::vector<Capture> captures_;
  std::vector<Value> arguments_;
  std::unordered_map<uint64_t, Value> copies_;     // of small constants around
  std::unordered_map<NodeId, NodeId> extensions_;  // node -> the one that does more
  std::atomic<bool> extended_{false};              // there are any
};

}  // namespace dtg
