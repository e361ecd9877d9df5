// dtg/layers.h, the layers of categories: reads their structs and the tensors in them, which are copied, and calls their namesakes in
// internal/nn. One thread at a time uses a model.
#include "nn/categories.h"

#include "capi/guard.h"
#include "capi/model.h"
#include "capi/nn.h"
#include "tensor/text.h"

namespace dtg::capi {
namespace {

// A tensor of the host as one of ours, whose elements the host cannot change any more; and where it is, NULL for none.
class Kept {
 public:
  Status read(const dtg_tensor* handle, const char* what) {
    if (!handle) return {};
    const Held<TensorObject> held(handle, HandleType::tensor);
    if (!held) return held.status().with_context(what);
    const Tensor& given = held->tensor;
    DTG_ASSIGN(tensor_, copy_value(given.dtype(), given.shape(), given.data()));
    any_ = true;
    return {};
  }
  const Tensor* get() const { return any_ ? &tensor_ : nullptr; }

 private:
  Tensor tensor_;
  bool any_ = false;
};

Result<Value> add_hashing(Model& model, Value x, const dtg_hashing* given) {
  dtg_hashing c = DTG_HASHING_INIT;
  DTG_TRY(read_struct(given, sizeof(dtg_hashing), "dtg_hashing", &c));
  HashingLayer layer;
  layer.name = name_or(c.name, c.name_len, layer.name);
  layer.bins = c.num_bins;
  Kept mask;
  DTG_TRY(mask.read(c.mask_value, "mask_value"));
  layer.mask = mask.get();
  layer.salted = c.salted != 0;
  if (!layer.salted && (c.salt[0] != 0 || c.salt[1] != 0))
    return invalid_argument("hashing: a salt without `salted`, which makes it count");
  layer.salt[0] = c.salt[0];
  layer.salt[1] = c.salt[1];
  DTG_ASSIGN(layer.output, read_enum(c.output_mode, CategoryOutput::count, "output mode"));
  return hashing(model, x, layer);
}

Result<Value> add_lookup(Model& model, Value x, const dtg_lookup* given) {
  dtg_lookup c = DTG_LOOKUP_INIT;
  DTG_TRY(read_struct(given, sizeof(dtg_lookup), "dtg_lookup", &c));
  LookupLayer layer;
  layer.name = text(c.name, c.name_len);
  Kept vocabulary, mask, unknown;
  DTG_TRY(vocabulary.read(c.vocabulary, "vocabulary"));
  DTG_TRY(mask.read(c.mask_token, "mask_token"));
  DTG_TRY(unknown.read(c.oov_token, "oov_token"));
  layer.vocabulary = vocabulary.get();
  layer.mask = mask.get();
  layer.unknown = unknown.get();
  if (c.no_oov != 0 && c.num_oov_indices != 0) {
    return invalid_argument("lookup: no_oov together with num_oov_indices of %lld; give one of them",
                            static_cast<long long>(c.num_oov_indices));
  }
  layer.oov = c.no_oov != 0 ? 0 : number_or(c.num_oov_indices, layer.oov);
  layer.invert = c.invert != 0;
  DTG_ASSIGN(layer.output, read_enum(c.output_mode, CategoryOutput::count, "output mode"));
  return lookup(model, x, layer);
}

}  // namespace
}  // namespace dtg::capi

using namespace dtg;
using namespace dtg::capi;

extern "C" {

dtg_error* dtg_nn_hashing(dtg_model* model, dtg_value x, const dtg_hashing* layer, dtg_value* out) noexcept {
  return value_of_model(model, out, [&](Model& m) { return add_hashing(m, here(m, x), layer); });
}

dtg_error* dtg_nn_lookup(dtg_model* model, dtg_value x, const dtg_lookup* layer, dtg_value* out) noexcept {
  return value_of_model(model, out, [&](Model& m) { return add_lookup(m, here(m, x), layer); });
}

}  // extern "C"
