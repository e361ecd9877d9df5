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
    NATIVE("tensorBorrow", "(I[JJJJ)J", borrow),
    NATIVE("bufferAddress", "(Ljava/nio/ByteBuffer;)J", address),
    NATIVE("tensorDescribe", "(J)[J", describe),
    NATIVE("tensorView", "(JJJ)Ljava/nio/ByteBuffer;", view),
    NATIVE("tensorRetain", "(J)J", retain),
    NATIVE("tensorCopy", "(JJLjava/lang/Object;IIZ)V", copy),
};
JNI_TABLE(jni_tensor, methods);
