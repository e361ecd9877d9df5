// Tensors from and to other libraries by DLPack. The structs below are what dlpack/dlpack.h declares, after dtg/dlpack.h as a host may
// include them; NumPy's own are met in tests/bindings/dlpack_test.py.
#include <dtg/dlpack.h>

#include <cstring>
#include <functional>
#include <thread>

#include "world.h"

extern "C" {
typedef struct {
  void* data;
  struct {
    int32_t device_type, device_id;
  } device;
  int32_t ndim;
  struct {
    uint8_t code, bits;
    uint16_t lanes;
  } dtype;
  int64_t *shape, *strides;
  uint64_t byte_offset;
} DLTensor;
typedef struct DLManagedTensor {
  DLTensor dl_tensor;
  void* manager_ctx;
  void (*deleter)(struct DLManagedTensor* self);
} DLManagedTensor;
typedef struct DLManagedTensorVersioned {
  struct {
    uint32_t major, minor;
  } version;
  void* manager_ctx;
  void (*deleter)(struct DLManagedTensorVersioned* self);
  uint64_t flags;
  DLTensor dl_tensor;
} DLManagedTensorVersioned;
}

namespace outside {
namespace {

// What another library would hand over: 2 x 3 floats, and how often its deleter was called.
template <class Managed>
struct Producer {
  float values[6] = {1, 2, 3, 4, 5, 6};
  int64_t shape[9] = {2, 3};
  int64_t strides[9] = {3, 1};
  int deleted = 0;
  Managed managed{};

  Producer() {
    managed.dl_tensor.data = values;
    managed.dl_tensor.device.device_type = 1;
    managed.dl_tensor.ndim = 2;
    managed.dl_tensor.dtype.code = 2;
    managed.dl_tensor.dtype.bits = 32;
    managed.dl_tensor.dtype.lanes = 1;
    managed.dl_tensor.shape = shape;
    managed.dl_tensor.strides = strides;
    managed.manager_ctx = this;
    managed.deleter = [](Managed* self) { ++static_cast<Producer*>(self->manager_ctx)->deleted; };
    if constexpr (std::is_same_v<Managed, DLManagedTensorVersioned>) managed.version = {1, 1};
  }
};
using Old = Producer<DLManagedTensor>;
using New = Producer<DLManagedTensorVersioned>;

dtg_error* take(New& from, dtg_tensor** out) { return dtg_tensor_from_dlpack(&from.managed, out); }
dtg_error* take(Old& from, dtg_tensor** out) { return dtg_tensor_from_dlpack_unversioned(&from.managed, out); }

using DLPack = World;

template <class From>
void comes_in_without_a_copy() {
  From from;
  dtg_tensor* tensor = nullptr;
  OK(take(from, &tensor));
  size_t bytes = 0;
  EXPECT_EQ(dtg_tensor_data(tensor, &bytes), from.values);
  EXPECT_EQ(bytes, sizeof from.values);
  EXPECT_EQ(dtg_tensor_mutable_data(tensor), from.values);
  EXPECT_EQ(dtg_tensor_dtype(tensor), DTG_F32);
  EXPECT_EQ(dtg_tensor_rank(tensor), 2u);
  EXPECT_EQ(dtg_tensor_dim(tensor, 0), 2);
  EXPECT_EQ(dtg_tensor_dim(tensor, 1), 3);
  dtg_tensor_retain(tensor);
  dtg_tensor_release(tensor);
  EXPECT_EQ(from.deleted, 0);
  dtg_tensor_release(tensor);
  EXPECT_EQ(from.deleted, 1);
}

TEST_F(DLPack, ComesInWithoutACopyAndIsDeletedOnce) {
  comes_in_without_a_copy<New>();
  comes_in_without_a_copy<Old>();
}

TEST_F(DLPack, MayHaveNoDeleter) {
  New from;
  from.managed.deleter = nullptr;
  dtg_tensor* tensor = nullptr;
  OK(take(from, &tensor));
  dtg_tensor_release(tensor);
  EXPECT_EQ(from.deleted, 0);
}

TEST_F(DLPack, StridesThatLeadNowhereMayBeAnything) {
  const std::vector<std::function<void(New&)>> fine = {
      [](New& n) { n.managed.dl_tensor.strides = nullptr; },
      [](New& n) { n.shape[0] = 1, n.strides[0] = 77; },
      [](New& n) { n.shape[1] = 1, n.strides[1] = -5, n.strides[0] = 1; },
      [](New& n) { n.shape[0] = 0, n.strides[1] = 12; },
      [](New& n) { n.shape[0] = 0, n.managed.dl_tensor.data = nullptr; },
      [](New& n) { n.managed.dl_tensor.ndim = 0, n.managed.dl_tensor.shape = n.managed.dl_tensor.strides = nullptr; },
      [](New& n) { n.shape[0] = 1, n.managed.dl_tensor.byte_offset = 12; },
      [](New& n) { n.managed.version.minor = 9, n.managed.flags = 6; },
      [](New& n) { n.managed.dl_tensor.device.device_type = 3; },
  };
  for (size_t i = 0; i < fine.size(); ++i) {
    New from;
    fine[i](from);
    dtg_tensor* tensor = nullptr;
    OK(take(from, &tensor));
    if (from.managed.dl_tensor.byte_offset) {
      EXPECT_EQ(dtg_tensor_data(tensor, nullptr), from.values + 3);
    }
    dtg_tensor_release(tensor);
    EXPECT_EQ(from.deleted, 1) << "case " << i;
  }
}

TEST_F(DLPack, WhatCannotBeTakenStaysTheCallers) {
  struct Case {
    dtg_code code;
    const char* says;
    std::function<void(New&)> change;
  };
  // clang-format off
  const Case cases[] = {
      {DTG_UNIMPLEMENTED, "version 2", [](New& n) { n.managed.version.major = 2; }},
      {DTG_UNIMPLEMENTED, "version 0", [](New& n) { n.managed.version.major = 0; }},
      {DTG_UNIMPLEMENTED, "device of type 2", [](New& n) { n.managed.dl_tensor.device.device_type = 2; }},
      {DTG_UNIMPLEMENTED, "code 3, 64 bits", [](New& n) { n.managed.dl_tensor.dtype = {3, 64, 1}; }},
      {DTG_UNIMPLEMENTED, "4 lanes", [](New& n) { n.managed.dl_tensor.dtype.lanes = 4; }},
      {DTG_UNIMPLEMENTED, "24 bits", [](New& n) { n.managed.dl_tensor.dtype.bits = 24; }},
      {DTG_UNIMPLEMENTED, "code 17, 4 bits", [](New& n) { n.managed.dl_tensor.dtype = {17, 4, 1}; }},
      {DTG_INVALID_ARGUMENT, "stride 2 in dimension 1", [](New& n) { n.strides[0] = 1, n.strides[1] = 2; }},
      {DTG_INVALID_ARGUMENT, "stride 4 in dimension 0", [](New& n) { n.strides[0] = 4; }},
      {DTG_INVALID_ARGUMENT, "stride -1 in dimension 1", [](New& n) { n.strides[1] = -1; }},
      {DTG_INVALID_ARGUMENT, "stride 0 in dimension 0", [](New& n) { n.strides[0] = 0; }},
      {DTG_INVALID_ARGUMENT, "aligned", [](New& n) { n.managed.dl_tensor.byte_offset = 2; }},
      {DTG_INVALID_ARGUMENT, "data", [](New& n) { n.managed.dl_tensor.data = nullptr; }},
      {DTG_INVALID_ARGUMENT, "shape", [](New& n) { n.managed.dl_tensor.shape = nullptr; }},
      {DTG_INVALID_ARGUMENT, "rank 9", [](New& n) { n.managed.dl_tensor.ndim = 9; }},
      {DTG_INVALID_ARGUMENT, "rank -1", [](New& n) { n.managed.dl_tensor.ndim = -1; }},
      {DTG_INVALID_ARGUMENT, "dimension 1 is negative", [](New& n) { n.shape[1] = -2; }},
      {DTG_INVALID_ARGUMENT, "size in bytes",
       [](New& n) { n.shape[0] = int64_t{1} << 31, n.shape[1] = int64_t{1} << 31, n.managed.dl_tensor.strides = nullptr; }},
  };
  // clang-format on
  for (const Case& each : cases) {
    New from;
    each.change(from);
    dtg_tensor* tensor = nullptr;
    const std::string message = refused(take(from, &tensor), each.code, each.says);
    EXPECT_NE(message.find(each.says), std::string::npos) << each.says << ": " << message;
    EXPECT_EQ(tensor, nullptr) << each.says;
    EXPECT_EQ(from.deleted, 0) << each.says;
  }
}

// Every element type goes out and comes back as itself, in both forms, around the same bytes.
TEST_F(DLPack, TypesGoOutAndComeBack) {
  struct Row {
    dtg_dtype dtype;
    int code, bits;
  };
  const Row rows[] = {{DTG_F32, 2, 32}, {DTG_F64, 2, 64}, {DTG_F16, 2, 16},   {DTG_BF16, 4, 16},      {DTG_I8, 0, 8},      {DTG_I16, 0, 16},
                      {DTG_I32, 0, 32}, {DTG_I64, 0, 64}, {DTG_U8, 1, 8},     {DTG_U16, 1, 16},       {DTG_U32, 1, 32},    {DTG_U64, 1, 64},
                      {DTG_BOOL, 6, 8}, {DTG_C64, 5, 64}, {DTG_C128, 5, 128}, {DTG_F8_E4M3FN, 10, 8}, {DTG_F8_E5M2, 12, 8}};
  const int64_t dims[] = {2, 1, 5};
  for (const Row& row : rows) {
    dtg_tensor *out = nullptr, *back = nullptr, *older = nullptr;
    OK(dtg_tensor_allocate(row.dtype, dims, 3, &out));
    DLManagedTensorVersioned* managed = nullptr;
    OK(dtg_tensor_to_dlpack(out, 1, &managed));
    EXPECT_EQ(managed->version.major, 1u);
    EXPECT_EQ(managed->flags, 0u);
    const DLTensor& seen = managed->dl_tensor;
    EXPECT_EQ(seen.data, dtg_tensor_data(out, nullptr));
    EXPECT_EQ(seen.device.device_type, 1);
    EXPECT_EQ(seen.dtype.code, row.code) << dtg_dtype_name(row.dtype);
    EXPECT_EQ(seen.dtype.bits, row.bits);
    EXPECT_EQ(seen.dtype.lanes, 1);
    ASSERT_EQ(seen.ndim, 3);
    EXPECT_EQ(std::vector<int64_t>(seen.shape, seen.shape + 3), (std::vector<int64_t>{2, 1, 5}));
    EXPECT_EQ(std::vector<int64_t>(seen.strides, seen.strides + 3), (std::vector<int64_t>{5, 5, 1}));
    OK(dtg_tensor_from_dlpack(managed, &back));
    DLManagedTensor* unversioned = nullptr;
    OK(dtg_tensor_to_dlpack_unversioned(back, &unversioned));
    OK(dtg_tensor_from_dlpack_unversioned(unversioned, &older));
    EXPECT_EQ(dtg_tensor_dtype(older), row.dtype);
    EXPECT_EQ(dtg_tensor_data(older, nullptr), dtg_tensor_data(out, nullptr));
    dtg_tensor_release(out);
    dtg_tensor_release(back);
    std::memset(dtg_tensor_mutable_data(older), 1, dtg_dtype_size(row.dtype) * 10);
    dtg_tensor_release(older);
  }
}

TEST_F(DLPack, TypesThatDLPackLacksStayInside) {
  for (const dtg_dtype dtype : {DTG_QI8, DTG_QU8, DTG_QI32, DTG_QI16, DTG_QU16}) {
    if (dtg_dtype_size(dtype) == 0) continue;
    dtg_tensor* tensor = nullptr;
    const int64_t dims[] = {3};
    OK(dtg_tensor_allocate(dtype, dims, 1, &tensor));
    DLManagedTensorVersioned* managed = nullptr;
    EXPECT_NE(refused(dtg_tensor_to_dlpack(tensor, 0, &managed), DTG_UNIMPLEMENTED, "a quantized type").find(dtg_dtype_name(dtype)),
              std::string::npos);
    EXPECT_EQ(managed, nullptr);
    dtg_tensor_release(tensor);
  }
}

TEST_F(DLPack, AnExportHoldsTheTensorAndCounts) {
  const size_t before = dtg_live_handles();
  dtg_tensor* tensor = vector_of({4, 5});
  DLManagedTensorVersioned* managed = nullptr;
  OK(dtg_tensor_to_dlpack(tensor, 0, &managed));
  EXPECT_EQ(managed->flags & 1, 1u) << "read-only unless asked for";
  dtg_tensor_release(tensor);
  EXPECT_EQ(dtg_live_handles(), before + 1);
  EXPECT_EQ(static_cast<float*>(managed->dl_tensor.data)[1], 5);
  std::thread([managed] { managed->deleter(managed); }).join();
  EXPECT_EQ(dtg_live_handles(), before);
}

TEST_F(DLPack, ReadOnlyStaysReadOnly) {
  New from;
  from.shape[0] = 2;
  from.managed.dl_tensor.ndim = 1;
  from.strides[0] = 1;
  from.managed.flags = 1;
  dtg_tensor* tensor = nullptr;
  OK(take(from, &tensor));
  EXPECT_EQ(dtg_tensor_mutable_data(tensor), nullptr);
  EXPECT_EQ(dtg_tensor_data(tensor, nullptr), from.values);
  const dtg_tensor* const feeds[] = {tensor, tensor};
  dtg_tensor* fetched = tensor;
  EXPECT_NE(refused(dtg_callable_run(h.callable, feeds, 2, &fetched, 1, 0), DTG_INVALID_ARGUMENT, "a result into it").find("read-only"),
            std::string::npos);
  EXPECT_EQ(from.values[1], 2);
  DLManagedTensorVersioned* managed = nullptr;
  DLManagedTensor* unversioned = nullptr;
  EXPECT_NE(refused(dtg_tensor_to_dlpack(tensor, 1, &managed), DTG_FAILED_PRECONDITION, "writable").find("read-only"), std::string::npos);
  refused(dtg_tensor_to_dlpack_unversioned(tensor, &unversioned), DTG_FAILED_PRECONDITION, "unversioned");
  OK(dtg_tensor_to_dlpack(tensor, 0, &managed));
  managed->deleter(managed);
  // As a feed it is as good as any other.
  fetched = nullptr;
  OK(dtg_callable_run(h.callable, feeds, 2, &fetched, 1, 0));
  EXPECT_EQ(static_cast<const float*>(dtg_tensor_data(fetched, nullptr))[1], 4);
  // The object is used again for other tensors, which may be written.
  dtg_tensor_release(tensor);
  EXPECT_EQ(from.deleted, 1);
  dtg_tensor* next = vector_of({1});
  EXPECT_NE(dtg_tensor_mutable_data(next), nullptr);
  dtg_tensor_release(next);
  dtg_tensor_release(fetched);
}

// What a variable was given is its own from then on: later updates in place do not reach the memory of the other library.
TEST_F(DLPack, AVariableThatTookAFeedLeavesItAlone) {
  New from;
  from.managed.flags = 1;
  dtg_tensor* tensor = nullptr;
  OK(take(from, &tensor));
  dtg_value fed{}, assign{}, add{}, init{};
  const int64_t dims[] = {2, 3};
  dtg_variable variable = DTG_VARIABLE_INIT;
  dtg_variable_spec spec = DTG_VARIABLE_SPEC_INIT;
  spec.name = "taken";
  spec.dims = dims;
  spec.rank = 2;
  OK(dtg_model_add_variable(h.model, &spec, &variable));
  OK(dtg_model_init(h.model, &init));
  OK(dtg_placeholder(h.graph, "fed", DTG_F32, dims, 2, &fed));
  for (const auto& [type, made] : {std::pair{"AssignVariableOp", &assign}, std::pair{"AssignAddVariableOp", &add}}) {
    dtg_op_spec op = DTG_OP_SPEC_INIT;
    const dtg_value inputs[] = {variable.handle, fed};
    op.type = type;
    op.inputs = inputs;
    op.num_inputs = 2;
    OK(dtg_graph_add_op(h.graph, &op, made, 1));
  }
  OK(dtg_run_target(h.session, init));
  dtg_run_args args = DTG_RUN_ARGS_INIT;
  const dtg_tensor* const given = tensor;
  args.feeds = &fed;
  args.feed_tensors = &given;
  args.num_feeds = 1;
  args.targets = &assign;
  args.num_targets = 1;
  OK(dtg_session_run(h.session, &args));
  args.targets = &add;
  OK(dtg_session_run(h.session, &args));
  dtg_tensor_release(tensor);
  EXPECT_EQ(from.deleted, 1) << "nothing holds the memory after the runs";
  for (int i = 0; i < 6; ++i) EXPECT_EQ(from.values[i], static_cast<float>(i + 1));
}

}  // namespace
}  // namespace outside
