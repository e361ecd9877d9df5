// Calls: parts of a scene that are there already become bodies of functions, and conditions, loops and calls of them join the scene. So a
// body may hold whatever a graph may hold, calls among it. One thread; used while a scene is made.
#pragma once

#include <functional>
#include <map>
#include <optional>

#include "graph/build.h"
#include "graph/closure.h"
#include "random/workshop.h"

namespace dtg::random {

class Calls {
 public:
  explicit Calls(Workshop& workshop) : w_(workshop) {}
  // Adds one call, with what it needs; nothing where no part of the scene is fit for it.
  void make();

 private:
  // Nodes that make `result`, in the order in which they were made.
  struct Piece {
    std::vector<int> nodes;
    Port result;
    bool holds(int node) const;
  };
  using Instead = std::map<std::pair<int, int>, Value>;

  std::optional<Piece> piece(const std::function<bool(const Known&)>& wanted);
  bool is_tied(int node) const;
  bool is_fit(int node);
  bool is_call(int node) const;
  bool waits(int node) const;
  // The nodes again, in `body`; ports that stand in `instead` are those values there.
  const char* device_inside(int n) const;
  Result<Value> rebuild(Graph& body, const Piece& piece, Instead instead, std::vector<NodeId>* nodes) const;
  Result<Closure> closure(const Piece& piece, std::span<const Port> arguments);
  Result<Closure> branch(DType dtype, const Shape& shape);
  void call();
  void when();
  void either();
  void loop();
  void pieces();
  Result<Closure> condition(std::span<const Value> like, Value limit, bool open);
  Value through_array(Build& b, Value value, Value other);
  Value element_of(Build& b, Value& result, Value argument);
  Result<Closure> round(std::span<const Value> like, const Piece& piece, const Port& variable, bool open, bool listed);
  bool adopt(const Result<std::vector<Value>>& made, uint32_t before, const char* feature);

  Workshop& w_;
  std::optional<int> place_;  // of what the bodies of the call in the making use
  bool lists_ = false;        // they use any
};

}  // namespace dtg::random
