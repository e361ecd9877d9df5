// Tables as ops: HashTableV2, which is filled once from tensors, MutableHashTableV2 and its kin, and what is done with them. The rules
// are in exec/lookup_table.h.
#include <algorithm>

#include "exec/lookup_table.h"
#include "exec/rights.h"
#include "graph/infer.h"
#include "ops/all.h"
#include "ops/integers.h"

namespace dtg::ops {
namespace {

using Form = LookupTable::Form;

constexpr DTypeSet kKeys = kIntegers | DTypeSet{DType::string};

// --- the handles ---

Result<Shape> row_of(const Node& node) {
  const AttrValue* const shape = node.find_attr("value_shape");
  return shape ? shape->get<PartialShape>()->to_shape() : Result<Shape>(Shape());
}

Status table_shape(InferContext& c) {
  const AttrValue* const shape = c.node().find_attr("value_shape");
  c.output_held(0, c.attr<DType>("value_dtype"), shape ? *shape->get<PartialShape>() : PartialShape::scalar());
  return {};
}

// A key that is a constant, as bytes.
Result<std::string> reserved_key(const PrepareContext& c, int input, const char* name) {
  const Tensor key = c.constant(input);
  if (!key.valid()) return unimplemented("%s: %s must be a constant; it decides what the table is", c.node().op->name().c_str(), name);
  if (key.count() != 1)
    return unimplemented("%s: %s has shape %s; only keys that are scalars are possible", c.node().op->name().c_str(), name,
                         key.shape().text().c_str());
  if (key.dtype() == DType::string) return std::string(texts_of(key)[0].view());
  return std::string(key.as<char>(), static_cast<size_t>(key.bytes()));
}

Status dense_spec(const PrepareContext& c, LookupTable::Spec& spec) {
  spec.form = Form::dense;
  DTG_ASSIGN(spec.empty, reserved_key(c, 0, "empty_key"));
  DTG_ASSIGN(spec.deleted, reserved_key(c, 1, "deleted_key"));
  if (spec.empty == spec.deleted) return c.error("empty_key and deleted_key are the same; they must differ");
  const int64_t buckets = c.integer("initial_num_buckets");
  if (buckets < 1 || (buckets & (buckets - 1)) != 0)
    return c.error("initial_num_buckets is %lld; it must be a power of 2", static_cast<long long>(buckets));
  const double load = c.attr<double>("max_load_factor");
  if (load > 0 && load < 1) return {};
  return c.error("max_load_factor is %g; it must lie between 0 and 1", load);
}

Status table_prepare(PrepareContext& c) {
  LookupTable::Spec spec;
  spec.keys = c.attr<DType>("key_dtype");
  spec.values = c.attr<DType>("value_dtype");
  const auto row = row_of(c.node());
  if (!row.ok()) return c.error("value_shape must be complete: %s", row.status().message().c_str());
  spec.row = row.value();
  if (c.node().op->name() == "HashTableV2") spec.form = Form::fixed;
  if (c.num_inputs() == 2) DTG_TRY(dense_spec(c, spec));
  DTG_ASSIGN(Ref<Resource> found, c.named_resource(LookupTable::kKind, [&](const std::string& name) {
    return Ref<Resource>(make_ref<LookupTable>(name, spec));
  }));
  if (!(static_cast<const LookupTable&>(*found).spec() == spec)) {
    return c.error(
        "attach to the table \"%s\": it was made with other types, another shape or other reserved keys; give one of them another "
        "shared_name",
        found->name().c_str());
  }
  c.bind(0, std::move(found));
  return {};
}

// --- operations ---

struct TableArgs {
  Shape keys, values;
  DType key_dtype = DType::invalid, value_dtype = DType::invalid;
  OutputSpec outs[2];
};

Result<LookupTable*> table_at(const RunContext& c) {
  DTG_TRY(c.permitted(0));
  auto* const table = resource_cast<LookupTable>(c.in<void>(0));
  if (!table) return c.error("input 0 is not the handle of a table");
  const auto& a = c.args<TableArgs>();
  DTG_TRY(table->check_types(a.key_dtype, a.value_dtype));
  return table;
}

// The shape of keys with the one of a row behind.
Result<Shape> with_rows(const Shape& keys, const Shape& row) {
  int64_t dims[2 * kRankMax];
  const auto end = std::copy(row.dims().begin(), row.dims().end(), std::copy(keys.dims().begin(), keys.dims().end(), dims));
  return Shape::make({dims, static_cast<size_t>(end - dims)});
}

PartialShape open_rows(const PartialShape& keys, const PartialShape& row) {
  if (!keys.has_rank() || !row.has_rank() || keys.rank() + row.rank() > kRankMax) return PartialShape::unknown();
  PartialShape all = keys;
  for (const int64_t dim : row.dims()) (void)all.append(dim);
  return all;
}

Status find_shape(InferContext& c) {
  if (c.held_dtype(0) != DType::invalid) c.output(0, open_rows(c.input(1), c.input(0)));
  return {};
}

Status find_run(RunContext& c) {
  const auto& a = c.args<TableArgs>();
  DTG_ASSIGN(LookupTable * table, table_at(c));
  const auto shape = with_rows(a.keys, table->spec().row);
  if (!shape.ok()) return c.error("%s", shape.status().message().c_str());
  const bool one = a.values == table->spec().row;
  if (!one && !(a.values == shape.value())) {
    return c.error("default_value has shape %s; it must be %s, or one each: %s", a.values.text().c_str(), table->spec().row.text().c_str(),
                   shape.value().text().c_str());
  }
  DTG_ASSIGN(char* out, a.outs[0].memory(c, shape.value()));
  return table->find(c, c.in<void>(1), a.keys.count(), c.in<void>(2), one, out);
}

Result<LookupTable::Entries> entries_of(RunContext& c, const LookupTable& table) {
  const auto& a = c.args<TableArgs>();
  const auto shape = with_rows(a.keys, table.spec().row);
  if (!shape.ok() || !(shape.value() == a.values)) {
    return c.error("values have shape %s; for keys of shape %s and values of %s each they must be those together", a.values.text().c_str(),
                   a.keys.text().c_str(), table.spec().row.text().c_str());
  }
  return LookupTable::Entries{c.in<void>(1), c.in<void>(2), a.keys.count()};
}

Status insert_run(RunContext& c) {
  DTG_ASSIGN(LookupTable * table, table_at(c));
  DTG_ASSIGN(const LookupTable::Entries entries, entries_of(c, *table));
  return table->insert(entries);
}

// What takes away what others may have put there: only who may replace a variable's value may do that. An insert is to a table what an
// update of some rows is to a variable, and everybody may do that.
Status may_replace(const RunContext& c, const LookupTable& table, const char* attempted) {
  if (!c.step().rights() || table.size() == 0) return {};
  return c.step().rights()->check(Verb::replace, attempted);
}

Status import_run(RunContext& c) {
  DTG_ASSIGN(LookupTable * table, table_at(c));
  DTG_TRY(may_replace(c, *table, "replace the entries of a table"));
  DTG_ASSIGN(const LookupTable::Entries entries, entries_of(c, *table));
  return table->import(entries);
}

// By everybody: one that has been filled keeps what it has, so each worker may run its initializers.
Status initialize_run(RunContext& c) {
  DTG_ASSIGN(LookupTable * table, table_at(c));
  DTG_ASSIGN(const LookupTable::Entries entries, entries_of(c, *table));
  return table->initialize(entries);
}

Status remove_run(RunContext& c) {
  DTG_ASSIGN(LookupTable * table, table_at(c));
  DTG_TRY(may_replace(c, *table, "remove entries from a table"));
  return table->remove(c.in<void>(1), c.args<TableArgs>().keys.count());
}

Status size_run(RunContext& c) {
  DTG_ASSIGN(const LookupTable* table, table_at(c));
  *c.out<int64_t>(0) = table->size();
  return {};
}

Status export_shape(InferContext& c) {
  c.output(0, PartialShape::vector(-1));
  c.output(1, c.held_dtype(0) == DType::invalid ? PartialShape::unknown() : open_rows(PartialShape::vector(-1), c.input(0)));
  return {};
}

Status export_run(RunContext& c) {
  const auto& a = c.args<TableArgs>();
  DTG_ASSIGN(const LookupTable* table, table_at(c));
  return table->export_all(c, [&](int64_t count, void** keys, void** values) -> Status {
    DTG_ASSIGN(*keys, a.outs[0].memory(c, Shape::of({count})));
    const auto shape = with_rows(Shape::of({count}), table->spec().row);
    if (!shape.ok()) return c.error("%s", shape.status().message().c_str());
    DTG_ASSIGN(*values, a.outs[1].memory(c, shape.value()));
    return {};
  });
}

template <SyncFn kRun>
Status operation_prepare(PrepareContext& c) {
  auto* const a = c.args<TableArgs>();
  if (c.num_inputs() > 1) {
    a->keys = c.input(1).shape;
    a->key_dtype = c.input(1).dtype;
  }
  if (c.num_inputs() > 2) {
    a->values = c.input(2).shape;
    a->value_dtype = c.input(2).dtype;
  }
  for (int o = 0; o < std::min(c.num_outputs(), 2); ++o) a->outs[o].prepare(c, o);
  return c.sync(kRun);
}

Status export_prepare(PrepareContext& c) {
  DTG_TRY(operation_prepare<export_run>(c));
  auto* const a = c.args<TableArgs>();
  a->key_dtype = c.output(0).dtype;
  a->value_dtype = c.output(1).dtype;
  return {};
}

void add_handle(OpTable& ops, KernelTable& kernels, const char* name, const char* doc) {
  const std::string_view op = name;
  const bool dense = op == "MutableDenseHashTableV2";
  OpDef def = OpDef::make(name);
  if (dense) std::move(def).input("empty_key: key_dtype").input("deleted_key: key_dtype");
  std::move(def).output("table_handle: resource").attr("container: string = ''").attr("shared_name: string = ''");
  std::move(def).attr("use_node_name_sharing: bool = false").attr("key_dtype: type").attr("value_dtype: type");
  if (dense || op == "MutableHashTableOfTensorsV2") std::move(def).attr("value_shape: shape = []");
  if (dense) std::move(def).attr("initial_num_buckets: int = 131072").attr("max_load_factor: float = 0.8");
  std::move(def).shape(table_shape).no_gradient().stateful().role(Role::handle).transient().doc(doc);
  ops.add(std::move(def));
  kernels.add({.op = name, .types = {{"key_dtype", kKeys}, {"value_dtype", kMovable}}, .prepare = table_prepare, .mode = KernelMode::host});
}

void add_entries_op(OpTable& ops, KernelTable& kernels, const char* name, const char* attrs[2], PrepareFn prepare, Access access,
                    const char* doc) {
  const std::string keys = std::string("keys: ") + attrs[0], values = std::string("values: ") + attrs[1];
  ops.add(OpDef::make(name)
              .input("table_handle: resource")
              .input(keys.c_str())
              .input(values.c_str())
              .attr((std::string(attrs[0]) + ": type").c_str())
              .attr((std::string(attrs[1]) + ": type").c_str())
              .shape(no_outputs)
              .no_gradient()
              .stateful()
              .access(access)
              .doc(doc));
  kernels.add({.op = name, .types = {{attrs[0], kMovable}, {attrs[1], kMovable}}, .prepare = prepare, .mode = KernelMode::host});
}

void register_writes(OpTable& ops, KernelTable& kernels) {
  static const char* kUsual[] = {"Tin", "Tout"};
  static const char* kFirst[] = {"Tkey", "Tval"};
  add_entries_op(ops, kernels, "LookupTableInsertV2", kUsual, operation_prepare<insert_run>, Access::write,
                 "Puts values under keys into a mutable table, over those that are there.");
  add_entries_op(ops, kernels, "LookupTableImportV2", kUsual, operation_prepare<import_run>, Access::assign,
                 "Replaces everything in a mutable table.");
  add_entries_op(ops, kernels, "InitializeTableV2", kFirst, operation_prepare<initialize_run>, Access::assign,
                 "Fills a HashTableV2; again only with as many entries.");
  ops.add(OpDef::make("LookupTableRemoveV2")
              .input("table_handle: resource")
              .input("keys: Tin")
              .attr("Tin: type")
              .shape(no_outputs)
              .no_gradient()
              .stateful()
              .access(Access::write)
              .doc("Takes keys out of a mutable table; those that are not there do not matter."));
  kernels.add(
      {.op = "LookupTableRemoveV2", .types = {{"Tin", kMovable}}, .prepare = operation_prepare<remove_run>, .mode = KernelMode::host});
}

}  // namespace

void register_table(OpTable& ops, KernelTable& kernels) {
  add_handle(ops, kernels, "HashTableV2", "A table that is filled once, by InitializeTableV2.");
  add_handle(ops, kernels, "MutableHashTableV2", "A table from keys to scalars that grows and shrinks.");
  add_handle(ops, kernels, "MutableHashTableOfTensorsV2", "A table from keys to tensors of one shape that grows and shrinks.");
  add_handle(ops, kernels, "MutableDenseHashTableV2", "A mutable table with two keys that no entry may have.");
  register_writes(ops, kernels);
  ops.add(OpDef::make("LookupTableFindV2")
              .input("table_handle: resource")
              .input("keys: Tin")
              .input("default_value: Tout")
              .output("values: Tout")
              .attr("Tin: type")
              .attr("Tout: type")
              .shape(find_shape)
              .no_gradient()
              .stateful()
              .access(Access::peek)
              .doc("The values of keys, and the default where a key is not in the table: one for all, or one each."));
  kernels.add({.op = "LookupTableFindV2",
               .types = {{"Tin", kMovable}, {"Tout", kMovable}},
               .prepare = operation_prepare<find_run>,
               .mode = KernelMode::host});
  ops.add(OpDef::make("LookupTableSizeV2")
              .input("table_handle: resource")
              .output("size: int64")
              .shape(scalar_shape)
              .no_gradient()
              .stateful()
              .access(Access::peek)
              .doc("How many entries a table has."));
  kernels.add({.op = "LookupTableSizeV2", .prepare = operation_prepare<size_run>, .mode = KernelMode::host});
  ops.add(OpDef::make("LookupTableExportV2")
              .input("table_handle: resource")
              .output("keys: Tkeys")
              .output("values: Tvalues")
              .attr("Tkeys: type")
              .attr("Tvalues: type")
              .shape(export_shape)
              .no_gradient()
              .stateful()
              .access(Access::peek)
              .doc("All keys of a table and their values, in one order."));
  kernels.add({.op = "LookupTableExportV2",
               .types = {{"Tkeys", kMovable}, {"Tvalues", kMovable}},
               .prepare = export_prepare,
               .mode = KernelMode::host});
}

}  // namespace dtg::ops
