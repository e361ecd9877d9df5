/* tensor.c: tensors. Any Java thread; Java keeps a tensor open while a native uses it. */
#include <stdlib.h>
#include <string.h>

#include "dtg_jni.h"
#include "events.h"

static jlong allocate(JNIEnv* env, jclass self, jint dtype, jlongArray dims) {
  size_t rank;
  int64_t* shape = jni_longs(env, dims, &rank);
  dtg_tensor* out = NULL;
  bool failed = !shape;
  (void)self;
  if (shape) failed = jni_threw(env, dtg_tensor_allocate(dtype, shape, rank, &out));
  free(shape);
  return failed ? 0 : JLONG(out);
}

/* Strings that lie one after the other in `bytes`; Java has as many lengths as the dimensions have elements. */
static jlong strings(JNIEnv* env, jclass self, jlongArray dims, jbyteArray bytes, jlongArray lengths) {
  size_t rank = 0, count = 0;
  int64_t* shape = jni_longs(env, dims, &rank);
  int64_t* sizes = shape ? jni_longs(env, lengths, &count) : NULL;
  const jsize nbytes = (*env)->GetArrayLength(env, bytes);
  char* data = sizes ? malloc((size_t)nbytes + 1) : NULL;
  dtg_tensor* out = NULL;
  bool failed = true;
  (void)self;
  if (sizes && !data) jni_no_memory(env);
  if (data) {
    (*env)->GetByteArrayRegion(env, bytes, 0, nbytes, (jbyte*)data);
    /* A length is not negative, and size_t has 64 bits wherever Java runs this. */
    failed = jni_threw(env, dtg_tensor_create_packed_strings(shape, rank, data, (size_t)nbytes, (const size_t*)(const void*)sizes, &out));
  }
  free(data);
  free(sizes);
  free(shape);
  return failed ? 0 : JLONG(out);
}

/* The bytes of one element; Java has checked that it is there. */
static jbyteArray string(JNIEnv* env, jclass self, jlong handle, jlong i) {
  size_t nbytes = 0;
  const char* data = dtg_tensor_string(AS(dtg_tensor, handle), (size_t)i, &nbytes);
  jbyteArray out = (*env)->NewByteArray(env, (jsize)nbytes);
  (void)self;
  if (out && nbytes > 0) (*env)->SetByteArrayRegion(env, out, 0, (jsize)nbytes, (const jbyte*)data);
  return out;
}

/* A tensor around the memory of a direct buffer, which Java keeps until it hears of `number`. */
static jlong borrow(JNIEnv* env, jclass self, jint dtype, jlongArray dims, jlong address, jlong nbytes, jlong number) {
  size_t rank;
  int64_t* shape = jni_longs(env, dims, &rank);
  void* token = shape ? events_token(number) : NULL;
  dtg_tensor* out = NULL;
  bool failed = true;
  (void)self;
  if (shape && !token) jni_no_memory(env);
  if (token) {
    failed = jni_threw(env, dtg_tensor_create(dtype, shape, rank, AS(void, address), (size_t)nbytes, events_freed, token, &out));
    if (failed) events_token_unused(token);
  }
  free(shape);
  return failed ? 0 : JLONG(out);
}

static jlong address(JNIEnv* env, jclass self, jobject buffer) {
  (void)self;
  return JLONG((*env)->GetDirectBufferAddress(env, buffer));
}

/* {dtype, elements, bytes, dimensions...} */
static jlongArray describe(JNIEnv* env, jclass self, jlong handle) {
  const dtg_tensor* tensor = AS(dtg_tensor, handle);
  int64_t out[3 + 8];
  const size_t rank = dtg_tensor_rank(tensor);
  size_t nbytes = 0, i;
  (void)self;
  dtg_tensor_data(tensor, &nbytes);
  out[0] = dtg_tensor_dtype(tensor);
  out[1] = dtg_tensor_count(tensor);
  out[2] = (int64_t)nbytes;
  for (i = 0; i < rank && i < 8; ++i) out[3 + i] = dtg_tensor_dim(tensor, i);
  return jni_array(env, out, 3 + rank);
}

static jobject view(JNIEnv* env, jclass self, jlong handle, jlong offset, jlong count) {
  static char nothing[8];
  char* data = (char*)dtg_tensor_mutable_data(AS(dtg_tensor, handle));
  (void)self;
  return (*env)->NewDirectByteBuffer(env, count > 0 && data ? data + offset : nothing, count);
}

static jlong retain(JNIEnv* env, jclass self, jlong handle) {
  (void)env, (void)self;
  return JLONG(dtg_tensor_retain(AS(dtg_tensor, handle)));
}

/* Elements from `at` on, from or into a Java array of the type that `kind` names as Java's descriptors do. Java has checked type
 * and bounds. */
static void copy(JNIEnv* env, jclass self, jlong handle, jlong at, jobject array, jint kind, jint count, jboolean in) {
  char* data = (char*)dtg_tensor_mutable_data(AS(dtg_tensor, handle));
  (void)self;
#define COPY(letter, Name, type)                                                                                                 \
  case letter:                                                                                                                   \
    if (in) {                                                                                                                    \
      (*env)->Get##Name##ArrayRegion(env, (type##Array)array, 0, count, (type*)(void*)(data + (size_t)at * sizeof(type)));       \
    } else {                                                                                                                     \
      (*env)->Set##Name##ArrayRegion(env, (type##Array)array, 0, count, (const type*)(void*)(data + (size_t)at * sizeof(type))); \
    }                                                                                                                            \
    break
  if (count == 0) return;
  switch (kind) {
    COPY('Z', Boolean, jboolean);
    COPY('B', Byte, jbyte);
    COPY('S', Short, jshort);
    COPY('I', Int, jint);
    COPY('J', Long, jlong);
    COPY('F', Float, jfloat);
    COPY('D', Double, jdouble);
    default: break;
  }
#undef COPY
}

static const JNINativeMethod methods[] = {
    NATIVE("tensorAllocate", "(I[J)J", allocate),
    NATIVE("tensorStrings", "([J[B[J)J", strings),
    NATIVE("tensorString", "(JJ)[B", string),
    NATIVE("tensorBorrow", "(I[JJJJ)J", borrow),
    NATIVE("bufferAddress", "(Ljava/nio/ByteBuffer;)J", address),
    NATIVE("tensorDescribe", "(J)[J", describe),
    NATIVE("tensorView", "(JJJ)Ljava/nio/ByteBuffer;", view),
    NATIVE("tensorRetain", "(J)J", retain),
    NATIVE("tensorCopy", "(JJLjava/lang/Object;IIZ)V", copy),
};
JNI_TABLE(jni_tensor, methods);
