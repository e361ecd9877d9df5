/* graph.c: graphs: nodes, scopes, gradients, bytes. One thread at a time while a graph grows. */
#include <stdlib.h>

#include "dtg_jni.h"

static jlong create(JNIEnv* env, jclass self, jlong runtime) {
  dtg_graph* out = NULL;
  (void)self;
  return jni_threw(env, dtg_graph_create(AS(dtg_runtime, runtime), &out)) ? 0 : JLONG(out);
}

/* The fields that Java's OpSpec wrote for an attribute; `owned` receives what is to be freed. */
static dtg_attr read_attr(packet* from, void* owned[2]) {
  dtg_attr out = DTG_ATTR_INIT;
  size_t* lengths = NULL;
  owned[0] = owned[1] = NULL;
  out.name = packet_text(from, &out.name_len);
  out.kind = (dtg_attr_kind)packet_int(from);
  switch (out.kind) {
    case DTG_ATTR_INT:
    case DTG_ATTR_BOOL:
    case DTG_ATTR_TYPE: out.i = packet_int(from); break;
    case DTG_ATTR_FLOAT: out.f = packet_double(from); break;
    case DTG_ATTR_STRING: out.s = packet_text(from, &out.s_len); break;
    case DTG_ATTR_TENSOR: out.tensor = AS(dtg_tensor, packet_int(from)); break;
    case DTG_ATTR_LIST_FLOAT: out.floats = (const double*)(const void*)packet_ints(from, &out.count); break;
    case DTG_ATTR_LIST_SHAPE:
      out.lens = (const size_t*)packet_ints(from, &out.count);
      {
        size_t dims;
        out.ints = packet_ints(from, &dims);
      }
      break;
    case DTG_ATTR_LIST_STRING:
      out.strings = packet_texts(from, &out.count, &lengths);
      out.lens = lengths;
      owned[0] = (void*)(uintptr_t)out.strings;
      owned[1] = lengths;
      break;
    case DTG_ATTR_FUNC:
    case DTG_ATTR_LIST_FUNC: out.functions = (const dtg_function* const*)(const void*)packet_ints(from, &out.count); break;
    default: out.ints = packet_ints(from, &out.count); break;
  }
  return out;
}

/* All outputs of the node that `first` is the first output of. */
static dtg_error* outputs(const dtg_graph* graph, dtg_value first, int64_t** out, size_t* count) {
  dtg_error* error = dtg_value_num_outputs(graph, first, count);
  size_t i;
  if (error) return error;
  if (*count == 0) *count = 1;
  *out = (int64_t*)malloc(*count * sizeof **out);
  if (*out) (*out)[0] = (int64_t)first.id;
  for (i = 1; *out && i < *count && !error; ++i) {
    dtg_value value;
    error = dtg_value_output(graph, first, i, &value);
    if (!error) (*out)[i] = (int64_t)value.id;
  }
  return error;
}

static dtg_error* add(dtg_graph* graph, packet* from, dtg_value* out) {
  dtg_op_spec spec = DTG_OP_SPEC_INIT;
  dtg_error* error;
  dtg_attr* attrs;
  void** owned;
  size_t i;
  spec.type = packet_text(from, &spec.type_len);
  spec.name = packet_text(from, &spec.name_len);
  spec.device = packet_text(from, &spec.device_len);
  spec.location = packet_text(from, &spec.location_len);
  spec.inputs = packet_values(from, &spec.num_inputs);
  spec.controls = packet_values(from, &spec.num_controls);
  spec.colocate = packet_values(from, &spec.num_colocate);
  spec.num_attrs = (size_t)packet_int(from);
  attrs = (dtg_attr*)calloc(spec.num_attrs + 1, sizeof *attrs);
  owned = (void**)calloc(2 * spec.num_attrs + 1, sizeof *owned);
  spec.attrs = attrs; /* without memory the library refuses the missing array */
  for (i = 0; attrs && owned && i < spec.num_attrs; ++i) attrs[i] = read_attr(from, owned + 2 * i);
  error = dtg_graph_add_op(graph, &spec, out, 1);
  for (i = 0; owned && i < 2 * spec.num_attrs; ++i) free(owned[i]);
  free(owned);
  free(attrs);
  return error;
}

static jlongArray add_op(JNIEnv* env, jclass self, jlong graph, jbyteArray spec) {
  packet from;
  dtg_value first = {0};
  int64_t* values = NULL;
  size_t count = 0;
  jlongArray out = NULL;
  dtg_error* error;
  (void)self;
  if (!packet_open(env, spec, &from)) return NULL;
  error = add(AS(dtg_graph, graph), &from, &first);
  packet_close(&from);
  if (!error) error = outputs(AS(dtg_graph, graph), first, &values, &count);
  if (!jni_threw(env, error)) {
    if (values) {
      out = jni_array(env, values, count);
    } else {
      jni_no_memory(env);
    }
  }
  free(values);
  return out;
}

static jlong node_count(JNIEnv* env, jclass self, jlong graph) {
  (void)env, (void)self;
  return (jlong)dtg_graph_node_count(AS(dtg_graph, graph));
}

static jlong node_at(JNIEnv* env, jclass self, jlong graph, jlong index) {
  dtg_value out = {0};
  (void)self;
  return jni_threw(env, dtg_graph_node_at(AS(dtg_graph, graph), (size_t)index, &out)) ? 0 : (jlong)out.id;
}

static jlong find(JNIEnv* env, jclass self, jlong graph, jbyteArray name) {
  dtg_value out = {0};
  char* text;
  size_t length;
  (void)self;
  if (jni_text(env, name, &text, &length)) jni_threw(env, dtg_graph_find(AS(dtg_graph, graph), text, length, &out));
  free(text);
  return (jlong)out.id;
}

/* ---- scopes ---- */

static void push_text(JNIEnv* env, jclass self, jlong graph, jint device, jbyteArray scope) {
  char* text;
  size_t length;
  (void)self;
  if (jni_text(env, scope, &text, &length)) {
    jni_threw(env, device ? dtg_graph_push_device(AS(dtg_graph, graph), text, length)
                          : dtg_graph_push_name_scope(AS(dtg_graph, graph), text, length));
  }
  free(text);
}

static void push_values(JNIEnv* env, jclass self, jlong graph, jlongArray values) {
  size_t count;
  int64_t* ids = jni_longs(env, values, &count);
  (void)self;
  if (ids) jni_threw(env, dtg_graph_push_controls(AS(dtg_graph, graph), (const dtg_value*)ids, count));
  free(ids);
}

static void push_colocation(JNIEnv* env, jclass self, jlong graph, jlong value) {
  dtg_value with;
  (void)self;
  with.id = (uint64_t)value;
  jni_threw(env, dtg_graph_push_colocation(AS(dtg_graph, graph), with));
}

static void push_recompute(JNIEnv* env, jclass self, jlong graph) {
  (void)self;
  jni_threw(env, dtg_graph_push_recompute(AS(dtg_graph, graph)));
}

static void push_setter(JNIEnv* env, jclass self, jlong graph, jlong cluster, jbyteArray setter) {
  dtg_device_setter to = DTG_DEVICE_SETTER_INIT;
  const char** ops;
  packet from;
  (void)self;
  if (!packet_open(env, setter, &from)) return;
  to.cluster = AS(dtg_cluster, cluster);
  to.ps_tasks = (int32_t)packet_int(&from);
  to.strategy = (dtg_setter_strategy)packet_int(&from);
  to.ps_device = packet_text(&from, NULL);
  to.worker_device = packet_text(&from, NULL);
  to.ps_ops = ops = packet_texts(&from, &to.num_ps_ops, NULL);
  to.keep_explicit = (int32_t)packet_int(&from);
  jni_threw(env, dtg_graph_push_device_setter(AS(dtg_graph, graph), &to));
  free((void*)(uintptr_t)ops);
  packet_close(&from);
}

/* The scopes are those of Graph.Scope, in its order. */
static void pop(JNIEnv* env, jclass self, jlong handle, jint scope) {
  dtg_graph* graph = AS(dtg_graph, handle);
  (void)self;
  switch (scope) {
    case 0: jni_threw(env, dtg_graph_pop_name_scope(graph)); break;
    case 1: jni_threw(env, dtg_graph_pop_device(graph)); break;
    case 2: jni_threw(env, dtg_graph_pop_controls(graph)); break;
    case 3: jni_threw(env, dtg_graph_pop_colocation(graph)); break;
    default: jni_threw(env, dtg_graph_pop_recompute(graph)); break;
  }
}

/* ---- gradients and bytes ---- */

static jlongArray add_gradients(JNIEnv* env, jclass self, jlong graph, jlongArray ys, jlongArray xs, jlongArray grad_ys) {
  size_t num_ys, num_xs, num_weights;
  int64_t *of = jni_longs(env, ys, &num_ys), *by = jni_longs(env, xs, &num_xs), *weights = jni_longs(env, grad_ys, &num_weights);
  dtg_gradient* gradients = (dtg_gradient*)calloc(num_xs + 1, sizeof *gradients);
  jlongArray out = NULL;
  (void)self;
  if (!gradients) jni_no_memory(env);
  if (of && by && weights && gradients &&
      !jni_threw(env, dtg_graph_add_gradients(AS(dtg_graph, graph), (const dtg_value*)of, num_ys, (const dtg_value*)by, num_xs,
                                              grad_ys ? (const dtg_value*)weights : NULL, gradients))) {
    out = jni_array(env, (const int64_t*)(const void*)gradients, 4 * num_xs);
  }
  free(gradients);
  free(weights);
  free(by);
  free(of);
  return out;
}

static jlong densify(JNIEnv* env, jclass self, jlong graph, jlong dense, jlong values, jlong indices, jlong shape) {
  dtg_gradient gradient;
  dtg_value out = {0};
  (void)self;
  gradient.dense.id = (uint64_t)dense;
  gradient.values.id = (uint64_t)values;
  gradient.indices.id = (uint64_t)indices;
  gradient.dense_shape.id = (uint64_t)shape;
  return jni_threw(env, dtg_graph_densify(AS(dtg_graph, graph), &gradient, &out)) ? 0 : (jlong)out.id;
}

static jbyteArray serialize(JNIEnv* env, jclass self, jlong graph) {
  dtg_string* out = NULL;
  (void)self;
  return jni_threw(env, dtg_graph_serialize(AS(dtg_graph, graph), &out)) ? NULL : jni_string(env, out);
}

static void import(JNIEnv* env, jclass self, jlong graph, jbyteArray bytes) {
  char* data;
  size_t length;
  (void)self;
  if (jni_text(env, bytes, &data, &length)) jni_threw(env, dtg_graph_import(AS(dtg_graph, graph), data, length));
  free(data);
}

static const JNINativeMethod methods[] = {
    NATIVE("graphCreate", "(J)J", create),
    NATIVE("graphAddOp", "(J[B)[J", add_op),
    NATIVE("graphNodeCount", "(J)J", node_count),
    NATIVE("graphNodeAt", "(JJ)J", node_at),
    NATIVE("graphFind", "(J[B)J", find),
    NATIVE("graphPushText", "(JI[B)V", push_text),
    NATIVE("graphPushControls", "(J[J)V", push_values),
    NATIVE("graphPushColocation", "(JJ)V", push_colocation),
    NATIVE("graphPushRecompute", "(J)V", push_recompute),
    NATIVE("graphPushSetter", "(JJ[B)V", push_setter),
    NATIVE("graphPop", "(JI)V", pop),
    NATIVE("graphAddGradients", "(J[J[J[J)[J", add_gradients),
    NATIVE("graphDensify", "(JJJJJ)J", densify),
    NATIVE("graphSerialize", "(J)[B", serialize),
    NATIVE("graphImport", "(J[B)V", import),
};
JNI_TABLE(jni_graph, methods);
