// Scopes of a graph as objects of the block that needs them: what a layer opens it also closes, on every way
// out. Used by whoever builds the graph, on that thread.
#pragma once

#include <string_view>

#include "graph/graph.h"

namespace dtg {

class NameScope {
 public:
  // An empty name leaves all outer ones.
  NameScope(Graph& graph, std::string_view name) : graph_(graph) { graph_.push_name_scope(name); }
  ~NameScope() { (void)graph_.pop_name_scope(); }
  NameScope(const NameScope&) = delete;
  NameScope& operator=(const NameScope&) = delete;

 private:
  Graph& graph_;
};

class ColocationScope {
 public:
  ColocationScope(Graph& graph, NodeId node) : graph_(graph) { graph_.push_colocation(node); }
  ~ColocationScope() { (void)graph_.pop_colocation(); }
  ColocationScope(const ColocationScope&) = delete;
  ColocationScope& operator=(const ColocationScope&) = delete;

 private:
  Graph& graph_;
};

// What is added inside runs without the control scopes around it.
class NoControls {
 public:
  explicit NoControls(Graph& graph) : graph_(graph) { graph_.push_no_controls(); }
  ~NoControls() { (void)graph_.pop_controls(); }
  NoControls(const NoControls&) = delete;
  NoControls& operator=(const NoControls&) = delete;

 private:
  Graph& graph_;
};

}  // namespace dtg
