// A device scope as an object of the block that needs it, like those of nn/scope.h; an empty name opens none. Used by whoever builds the
// graph, on that thread.
#pragma once

#include <string>

#include "graph/graph.h"

namespace dtg {

class OnDevice {
 public:
  OnDevice(Graph& graph, const std::string& device) : graph_(graph), is_open_(!device.empty()) {
    if (is_open_) graph_.push_device(device);
  }
  ~OnDevice() {
    if (is_open_) (void)graph_.pop_device();
  }
  OnDevice(const OnDevice&) = delete;
  OnDevice& operator=(const OnDevice&) = delete;

 private:
  Graph& graph_;
  const bool is_open_;
};

}  // namespace dtg
