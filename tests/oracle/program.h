// Graphs, nodes and runs through the C ABI, for the oracle tools. One thread.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "values.h"

namespace dtg::oracle {

// Why a call of the ABI failed.
struct Failure {
  dtg_code code = DTG_OK;
  std::string text;  // "CODE_NAME: message"
};
using Outcome = std::optional<Failure>;  // empty: it went well
Outcome outcome(dtg_error* error);

// What dtg_ops_json says of an op.
struct OpEntry {
  struct Argument {
    std::string name;
    std::string type;
  };
  std::vector<Argument> inputs;
};

// The ops of the library by name; read once.
const std::map<std::string, OpEntry>& op_table();

// Why a vector that needs `op` is out of the scope of this library; "" when it is not. Ops that the spine promises are
// never out of scope.
std::string missing_op(const std::string& op);

// A node being described, with storage for what the ABI borrows during the call.
class Node {
 public:
  explicit Node(std::string op, std::string name = "", std::string device = "");
  Node& input(dtg_value value);
  Node& control(dtg_value value);
  Node& type(const char* name, dtg_dtype dtype);
  Node& shape(const char* name, const std::vector<int64_t>& dims);
  Node& unknown_shape(const char* name);
  Node& text(const char* name, std::string value);
  Node& flag(const char* name, bool value);
  Node& tensor(const char* name, Tensor value);
  // Where attributes of kind func find what they name; kept by whoever gives it.
  using Functions = std::map<std::string, std::shared_ptr<dtg_function>>;
  Node& functions(const Functions& known);
  // An attribute as the vectors write it; "" or why it cannot be given.
  std::string json(const std::string& name, const Json& typed);
  // All of them.
  std::string json(const Json& attrs);

  // Adds the node; `outputs` receives all its outputs, or the node itself when it has none.
  Outcome add(dtg_graph* graph, std::vector<dtg_value>* outputs);

 private:
  dtg_attr& next(const std::string& name, dtg_attr_kind kind);
  std::string json_functions(const std::string& name, dtg_attr_kind kind, const std::vector<std::string>& wanted);
  std::string json_list(const std::string& name, const std::string& type, const Json& list);

  std::string op_, name_, device_;
  std::vector<dtg_value> inputs_, controls_;
  std::vector<dtg_attr> attrs_;
  std::deque<std::string> strings_;
  std::deque<std::vector<int64_t>> ints_;
  std::deque<std::vector<double>> floats_;
  std::deque<std::vector<size_t>> lens_;
  std::deque<std::vector<const char*>> words_;
  std::vector<Tensor> tensors_;
  const Functions* known_ = nullptr;
  std::deque<std::vector<const dtg_function*>> called_;
};

struct Feed {
  dtg_value value;
  Tensor tensor;
};

// Nodes of programs made from here on that ask for no device are placed there ("EMU:0"), and local sessions have it.
void use_device(const std::string& device);

// A graph with a session of its own, in this process or at a server.
class Program {
 public:
  struct Options {
    int32_t cpu_devices = 1;
    bool fusion = true;   // false: every op runs by itself
    int32_t threads = 0;  // of a runtime of its own; 0: the default runtime
    std::string target = "local";
    std::shared_ptr<dtg_runtime> runtime = nullptr;  // null: as `threads` says
    bool own_devices = false;                        // the program is about devices itself: use_device() does not count
  };
  Program() : Program(Options()) {}
  explicit Program(Options options);
  dtg_graph* graph() const { return graph_.get(); }

  Outcome constant(const Tensor& tensor, dtg_value* out);
  // A placeholder of unknown shape that every run feeds.
  Outcome placeholder(dtg_dtype dtype, dtg_value* out);
  // A variable's handle; `shape` null: unknown.
  Outcome variable(const std::string& name, dtg_dtype dtype, const std::vector<int64_t>* shape, dtg_value* out);
  // One output of a node whose inputs decide its attributes.
  Outcome apply(const std::string& op, const std::vector<dtg_value>& inputs, dtg_value* out, const std::vector<dtg_value>& controls = {});
  // AssignVariableOp, ReadVariableOp and a run of each.
  Outcome assign(dtg_value handle, const Tensor& value);
  Outcome read(dtg_value handle, dtg_dtype dtype, Tensor* out);

  Outcome run(const std::vector<Feed>& feeds, const std::vector<dtg_value>& fetches, const std::vector<dtg_value>& targets,
              std::vector<Tensor>* fetched);
  dtg_session* session() const { return session_.get(); }

 private:
  std::shared_ptr<dtg_runtime> runtime_;
  std::shared_ptr<dtg_graph> graph_;
  std::shared_ptr<dtg_session> session_;
};

// True when a gradient is neither dense nor rows: nothing leads from x to y.
bool is_none(const dtg_gradient& gradient);

}  // namespace dtg::oracle
