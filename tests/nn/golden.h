// The answers of real Keras beside the tests (keras/*.json.gz), as JSON and as tensors. One thread.
#pragma once

#include <zlib.h>

#include <cstdlib>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "small_model.h"

namespace dtg {

using Answers = nlohmann::json;

// Not an object where DTG_SOURCE_DIR does not say where it is.
inline Answers golden(const std::string& name) {
  const char* source = std::getenv("DTG_SOURCE_DIR");
  if (!source) return {};
  const gzFile file = gzopen((std::string(source) + "/tests/nn/keras/" + name).c_str(), "rb");
  if (!file) return {};
  std::string text, piece(1 << 16, 0);
  for (int got; (got = gzread(file, piece.data(), static_cast<unsigned>(piece.size()))) > 0;)
    text.append(piece, 0, static_cast<size_t>(got));
  gzclose(file);
  return Answers::parse(text, nullptr, /*allow_exceptions=*/false);
}

// Numbers that are said to be integers become int64, all others float32.
inline Tensor tensor_of(const Answers& given) {
  const std::vector<int64_t> dims = given["shape"];
  const Shape shape = good(Shape::make(dims));
  if (given.contains("int")) {
    const std::vector<int64_t> values = given["values"];
    return good(Tensor::of<int64_t>(shape, std::span<const int64_t>(values)));
  }
  const std::vector<float> values = given["values"];
  return good(Tensor::of<float>(shape, std::span<const float>(values)));
}

// Within a share of the largest value, which counts as `least` at least.
inline void expect_close(const std::string& what, const Tensor& found, const Answers& expected, double share, double least = 0) {
  const std::vector<float> wanted = expected["values"];
  ASSERT_TRUE(found.valid()) << what;
  ASSERT_EQ(std::vector<int64_t>(expected["shape"]), std::vector<int64_t>(found.shape().dims().begin(), found.shape().dims().end()))
      << what;
  const auto have = found.values<float>();
  double size = least;
  for (const float each : wanted) size = std::max<double>(size, std::abs(each));
  for (size_t i = 0; i < wanted.size(); ++i) ASSERT_NEAR(have[i], wanted[i], share * size + 1e-12) << what << ", element " << i;
}

}  // namespace dtg
