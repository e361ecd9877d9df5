// Ops that TensorFlow has and this library has not: each is UNIMPLEMENTED, and what is only misspelled is not.
#include "graph/planned.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>

#include "graph/graph.h"
#include "ops/all.h"

namespace dtg {
namespace {

class Planned : public ::testing::Test {
 protected:
  Planned() {
    KernelTable kernels;
    ops::register_all(ops_, kernels);
    graph_ = Graph::create(&ops_).take();
  }
  Status refused(const std::string& op) { return graph_->add({.op = op}).status(); }

  OpTable ops_;
  Ref<Graph> graph_;
};

// The list is made by tensorflow_ops.py beside it.
std::vector<std::string> tensorflow_ops() {
  const char* const root = std::getenv("DTG_SOURCE_DIR");
  std::ifstream list(std::string(root ? root : ".") + "/tests/graph/tensorflow_ops.txt");
  std::vector<std::string> names;
  for (std::string line; std::getline(list, line);) {
    if (!line.starts_with("#")) names.push_back(line);
  }
  return names;
}

TEST_F(Planned, EveryOpOfTensorFlowIsHereOrSaidToBeIts) {
  const std::vector<std::string> names = tensorflow_ops();
  ASSERT_GT(names.size(), 1400u) << "set DTG_SOURCE_DIR";
  int missing = 0;
  for (const std::string& name : names) {
    if (ops_.find(name)) continue;
    ++missing;
    const Status status = refused(name);
    EXPECT_EQ(status.code(), Code::unimplemented) << status.message();
    EXPECT_NE(status.message().find("TensorFlow's op \"" + name + "\" is not in this library"), std::string::npos) << status.message();
  }
  EXPECT_GT(missing, 0);
}

// What has come meanwhile is to be struck off.
TEST_F(Planned, NoOpThatIsHereIsSaidNotToBe) {
  for (const std::string& name : tensorflow_ops()) {
    if (ops_.find(name)) {
      EXPECT_EQ(no_such_op(name, "").code(), Code::not_found) << name << " is still among those of internal/graph/planned.cc";
    }
  }
}

TEST_F(Planned, WhatTheyBelongToIsSaid) {
  const std::pair<const char*, const char*> said[] = {{"SaveV2", "dtg/checkpoint.h"},
                                                      {"ParallelMapDatasetV2", "dtg/data.h"},
                                                      {"RandomGamma", "further distributions"},
                                                      {"VariableV2", "by reference"},
                                                      {"TensorArrayReadV2", "V3"},
                                                      {"BatchCholesky", "without Batch"},
                                                      {"DecodeJpeg", "images"},
                                                      {"IRFFT2D", "Fourier"},
                                                      {"SparseCrossHashed", "sparse"},
                                                      {"ScalarSummary", "event writers"},
                                                      {"SymbolicGradient", "gradients"},
                                                      {"EagerPyFunc", "Python"},
                                                      {"StatefulUniform", "Stateless..."}};
  for (const auto& [op, what] : said) EXPECT_NE(refused(op).message().find(what), std::string::npos) << refused(op).message();
}

// Who is told that there is another form finds it.
TEST_F(Planned, OtherFormsAreThere) {
  int forms = 0;
  for (const std::string& name : tensorflow_ops()) {
    if (ops_.find(name) || refused(name).message().find("another form is here") == std::string::npos) continue;
    ++forms;
    std::string stem = name;
    for (const std::string before : {"Batch", "Anonymous"}) {
      if (stem.starts_with(before)) stem.erase(0, before.size());
    }
    if (stem[stem.size() - 2] == 'V') stem.resize(stem.size() - 2);
    EXPECT_TRUE(ops_.find(stem) || ops_.find(stem + "V2") || ops_.find(stem + "V3")) << name << ": " << stem;
  }
  EXPECT_GT(forms, 50);
}

TEST_F(Planned, WhatNobodyHasIsMisspelled) {
  const std::pair<const char*, const char*> slips[] = {{"MatMull", "MatMul"},
                                                       {"Conv2d", "Conv2D"},
                                                       {"Sofmax", "Softmax"},
                                                       {"TileGrid", ""},
                                                       {"ReluGradd", "ReluGrad"},
                                                       {"QueueSizeV3", "QueueSizeV2"},
                                                       {"MapPool", "MaxPool"},
                                                       {"SparseReshap", "SparseReshape"},
                                                       {"Quite_another", ""},
                                                       {"tilegrad", ""},
                                                       {"", ""}};
  EXPECT_EQ(refused(std::string(5000, 'x')).code(), Code::not_found);
  for (const auto& [op, meant] : slips) {
    const Status status = refused(op);
    EXPECT_EQ(status.code(), Code::not_found) << status.message();
    if (!*meant) continue;
    EXPECT_NE(status.message().find("did you mean \"" + std::string(meant) + "\"?"), std::string::npos) << status.message();
  }
}

}  // namespace
}  // namespace dtg
