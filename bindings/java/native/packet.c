/* packet.c: bytes, numbers and packets between Java's heap and C. Any Java thread; what is returned belongs to the caller. */
#include <stdlib.h>
#include <string.h>

#include "dtg_jni.h"

bool packet_open(JNIEnv* env, jbyteArray bytes, packet* out) {
  const jsize size = (*env)->GetArrayLength(env, bytes);
  out->at = 0;
  out->words = (int64_t*)malloc((size_t)size + sizeof(int64_t));
  if (!out->words) {
    jni_no_memory(env);
    return false;
  }
  (*env)->GetByteArrayRegion(env, bytes, 0, size, (jbyte*)out->words);
  return true;
}

void packet_close(packet* from) { free(from->words); }

int64_t packet_int(packet* from) { return from->words[from->at++]; }

double packet_double(packet* from) {
  double value;
  memcpy(&value, &from->words[from->at++], sizeof value);
  return value;
}

const char* packet_text(packet* from, size_t* length) {
  const int64_t size = packet_int(from);
  const char* text = (const char*)&from->words[from->at];
  /* An empty text ends with NUL, as all do here: with a length of 0 C would take it for one whose length was forgotten. */
  if (length) *length = size <= 0 ? DTG_STRLEN : (size_t)size;
  if (size < 0) return NULL;
  from->at += (size_t)size / sizeof(int64_t) + 1;
  return text;
}

const int64_t* packet_ints(packet* from, size_t* count) {
  const int64_t size = packet_int(from);
  const int64_t* values = &from->words[from->at];
  *count = size < 0 ? DTG_STRLEN : (size_t)size;
  if (size < 0) return NULL;
  from->at += (size_t)size;
  return values;
}

const dtg_value* packet_values(packet* from, size_t* count) { return (const dtg_value*)packet_ints(from, count); }

const char** packet_texts(packet* from, size_t* count, size_t** lengths) {
  const int64_t size = packet_int(from);
  const char** texts;
  size_t i;
  *count = size < 0 ? 0 : (size_t)size;
  if (lengths) *lengths = NULL;
  if (size < 0) return NULL;
  texts = (const char**)calloc(*count + 1, sizeof *texts);
  if (lengths) *lengths = (size_t*)calloc(*count + 1, sizeof **lengths);
  for (i = 0; i < *count; ++i) {
    size_t length;
    const char* text = packet_text(from, &length);
    if (texts) texts[i] = text;
    if (lengths && *lengths) (*lengths)[i] = length;
  }
  return texts;
}

dtg_initializer packet_initializer(packet* from) {
  dtg_initializer out = DTG_INITIALIZER_INIT;
  out.kind = (dtg_initializer_kind)packet_int(from);
  out.a = packet_double(from);
  out.b = packet_double(from);
  return out;
}

bool jni_text(JNIEnv* env, jbyteArray bytes, char** text, size_t* length) {
  *text = NULL;
  *length = 0;
  if (!bytes) return true;
  *length = (size_t)(*env)->GetArrayLength(env, bytes);
  *text = (char*)malloc(*length + 1);
  if (!*text) {
    jni_no_memory(env);
    return false;
  }
  (*env)->GetByteArrayRegion(env, bytes, 0, (jsize)*length, (jbyte*)*text);
  (*text)[*length] = 0;
  return true;
}

jbyteArray jni_bytes(JNIEnv* env, const void* data, size_t length) {
  jbyteArray out;
  if (length > (size_t)INT32_MAX - 8) {
    jni_no_memory(env);
    return NULL;
  }
  out = (*env)->NewByteArray(env, (jsize)length);
  if (out && length > 0) (*env)->SetByteArrayRegion(env, out, 0, (jsize)length, (const jbyte*)data);
  return out;
}

jbyteArray jni_name(JNIEnv* env, const char* text) { return text ? jni_bytes(env, text, strlen(text)) : NULL; }

jbyteArray jni_string(JNIEnv* env, dtg_string* string) {
  size_t length = 0;
  const char* data = dtg_string_data(string, &length);
  jbyteArray out = jni_bytes(env, data, length);
  dtg_string_release(string);
  return out;
}

int64_t* jni_longs(JNIEnv* env, jlongArray array, size_t* count) {
  const jsize size = array ? (*env)->GetArrayLength(env, array) : 0;
  int64_t* out = (int64_t*)malloc(((size_t)size + 1) * sizeof *out);
  *count = (size_t)size;
  if (!out) {
    jni_no_memory(env);
    return NULL;
  }
  if (size > 0) (*env)->GetLongArrayRegion(env, array, 0, size, (jlong*)out);
  return out;
}

jlongArray jni_array(JNIEnv* env, const int64_t* values, size_t count) {
  jlongArray out = (*env)->NewLongArray(env, (jsize)count);
  if (out) (*env)->SetLongArrayRegion(env, out, 0, (jsize)count, (const jlong*)values);
  return out;
}
