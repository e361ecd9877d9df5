/* control.c: functions, and the nodes that call them. One thread at a time while a graph grows. */
#include <stdlib.h>

#include "dtg_jni.h"

static dtg_value of(jlong id) {
  dtg_value value;
  value.id = (uint64_t)id;
  return value;
}

static jlong begin(JNIEnv* env, jclass self, jlong outer, jbyteArray name) {
  dtg_graph* out = NULL;
  char* text;
  size_t length;
  (void)self;
  if (jni_text(env, name, &text, &length)) jni_threw(env, dtg_function_begin(AS(dtg_graph, outer), text, length, &out));
  free(text);
  return JLONG(out);
}

static jlong argument(JNIEnv* env, jclass self, jlong body, jint dtype, jlongArray shape) {
  dtg_value out = {0};
  size_t rank;
  int64_t* dims = jni_longs(env, shape, &rank);
  (void)self;
  if (dims) jni_threw(env, dtg_function_add_argument(AS(dtg_graph, body), dtype, dims, shape ? rank : DTG_STRLEN, &out));
  free(dims);
  return (jlong)out.id;
}

static jlong argument_like(JNIEnv* env, jclass self, jlong body, jlong value) {
  dtg_value out = {0};
  (void)self;
  return jni_threw(env, dtg_function_add_argument_like(AS(dtg_graph, body), of(value), &out)) ? 0 : (jlong)out.id;
}

static jlong end(JNIEnv* env, jclass self, jlong body, jlongArray results) {
  dtg_function* out = NULL;
  size_t count;
  int64_t* values = jni_longs(env, results, &count);
  (void)self;
  if (values) jni_threw(env, dtg_function_end(AS(dtg_graph, body), (const dtg_value*)values, count, NULL, 0, &out));
  free(values);
  return JLONG(out);
}

static jlongArray captures(JNIEnv* env, jclass self, jlong handle) {
  const dtg_function* function = AS(dtg_function, handle);
  jlongArray out = NULL;
  int64_t* values;
  size_t count = 0;
  (void)self;
  if (jni_threw(env, dtg_function_captures(function, NULL, 0, &count))) return NULL;
  values = (int64_t*)calloc(count + 1, sizeof *values);
  if (!values) {
    jni_no_memory(env);
  } else if (!jni_threw(env, dtg_function_captures(function, (dtg_value*)values, count, &count))) {
    out = jni_array(env, values, count);
  }
  free(values);
  return out;
}

/* Room for the outputs of a node; NULL with an exception pending. */
static dtg_value* room(JNIEnv* env, size_t count) {
  dtg_value* outs = (dtg_value*)calloc(count + 1, sizeof *outs);
  if (!outs) jni_no_memory(env);
  return outs;
}

/* The outputs, or what the call says. Frees them. */
static jlongArray given(JNIEnv* env, dtg_error* error, dtg_value* outs, size_t count) {
  jlongArray out = NULL;
  if (!jni_threw(env, error)) out = jni_array(env, (const int64_t*)outs, count);
  free(outs);
  return out;
}

static jlongArray add_if(JNIEnv* env, jclass self, jlong graph, jlong condition, jlong yes, jlong no, jint results) {
  const size_t count = (size_t)results;
  dtg_value* outs = room(env, count);
  (void)self;
  if (!outs) return NULL;
  return given(env, dtg_graph_add_if(AS(dtg_graph, graph), of(condition), AS(dtg_function, yes), AS(dtg_function, no), outs, count), outs,
               count);
}

static jlongArray add_case(JNIEnv* env, jclass self, jlong graph, jlong index, jlongArray branches, jint results) {
  const size_t count = (size_t)results;
  dtg_value* outs = room(env, count);
  jlongArray out = NULL;
  size_t num_branches;
  int64_t* functions = outs ? jni_longs(env, branches, &num_branches) : NULL;
  (void)self;
  if (functions) {
    out = given(
        env,
        dtg_graph_add_case(AS(dtg_graph, graph), of(index), (const dtg_function* const*)(const void*)functions, num_branches, outs, count),
        outs, count);
  } else {
    free(outs);
  }
  free(functions);
  return out;
}

static jlongArray add_while(JNIEnv* env, jclass self, jlong graph, jlongArray start, jlong condition, jlong body) {
  jlongArray out = NULL;
  size_t count;
  int64_t* values = jni_longs(env, start, &count);
  dtg_value* outs = values ? room(env, count) : NULL;
  (void)self;
  if (outs) {
    out = given(env,
                dtg_graph_add_while(AS(dtg_graph, graph), (const dtg_value*)values, count, AS(dtg_function, condition),
                                    AS(dtg_function, body), outs),
                outs, count);
  }
  free(values);
  return out;
}

static jlongArray add_call(JNIEnv* env, jclass self, jlong graph, jlong function, jlongArray arguments, jint results) {
  const size_t count = (size_t)results;
  jlongArray out = NULL;
  size_t num_arguments;
  int64_t* values = jni_longs(env, arguments, &num_arguments);
  dtg_value* outs = values ? room(env, count) : NULL;
  (void)self;
  if (outs) {
    out = given(env,
                dtg_graph_add_call(AS(dtg_graph, graph), AS(dtg_function, function), (const dtg_value*)values, num_arguments, outs, count),
                outs, count);
  }
  free(values);
  return out;
}

static const JNINativeMethod methods[] = {
    NATIVE("functionBegin", "(J[B)J", begin),
    NATIVE("functionArgument", "(JI[J)J", argument),
    NATIVE("functionArgumentLike", "(JJ)J", argument_like),
    NATIVE("functionEnd", "(J[J)J", end),
    NATIVE("functionCaptures", "(J)[J", captures),
    NATIVE("graphAddIf", "(JJJJI)[J", add_if),
    NATIVE("graphAddCase", "(JJ[JI)[J", add_case),
    NATIVE("graphAddWhile", "(J[JJJ)[J", add_while),
    NATIVE("graphAddCall", "(JJ[JI)[J", add_call),
};
JNI_TABLE(jni_control, methods);
