/* dtg_jni.h: what the files of the JNI side share. Natives run on the Java thread that called them; only host_data.c attaches threads.
 *
 * Java hands structs over as packets: 8-byte words in native order, a text as its length (-1: none) and its bytes with NULs up to
 * the next word, numbers as their count (-1: none) and their words. Both ends are written here and in Packet.java, in the same
 * order. What C hands back in that form FitEvent.java reads.
 */
#ifndef DTG_JNI_H
#define DTG_JNI_H

#include <dtg/dtg.h>
#include <jni.h>
#include <stdbool.h>

#define AS(type, handle) ((type*)(intptr_t)(handle))
#define JLONG(pointer) ((jlong)(intptr_t)(pointer))
#define NATIVE(name, signature, function) \
  { (char*)(name), (char*)(signature), __extension__(void*)(function) }

/* ---- errors (error.c) ---- */

/* Throws what the error says and frees it; false for NULL. The one place where a dtg_error becomes an exception. */
bool jni_threw(JNIEnv* env, dtg_error* error);
/* The same as an object that is not thrown; NULL for NULL, and when Java itself failed. */
jthrowable jni_exception(JNIEnv* env, dtg_error* error);
void jni_no_memory(JNIEnv* env);

/* ---- packets and arrays (packet.c) ---- */

typedef struct packet {
  int64_t* words;
  size_t at;
} packet;
/* Copies the packet; false with an exception pending when there is no memory. Close it on every path. */
bool packet_open(JNIEnv* env, jbyteArray bytes, packet* out);
void packet_close(packet* from);
int64_t packet_int(packet* from);
double packet_double(packet* from);
/* NULL and DTG_STRLEN where the packet says none. What it points to is the packet's. */
const char* packet_text(packet* from, size_t* length);
const int64_t* packet_ints(packet* from, size_t* count);
const dtg_value* packet_values(packet* from, size_t* count);
/* Texts: their count, then each; the pointers are to be freed (not with -1: NULL). `lengths` may be NULL. */
const char** packet_texts(packet* from, size_t* count, size_t** lengths);
dtg_initializer packet_initializer(packet* from);

/* A text alone, as UTF-8 without a NUL; null gives NULL and 0. False with an exception pending. Free with free(). */
bool jni_text(JNIEnv* env, jbyteArray bytes, char** text, size_t* length);
jbyteArray jni_bytes(JNIEnv* env, const void* data, size_t length);
/* A borrowed text that ends with NUL; null for NULL. */
jbyteArray jni_name(JNIEnv* env, const char* text);
/* Frees the string. */
jbyteArray jni_string(JNIEnv* env, dtg_string* string);

/* A copy of a long[]; at least one word of memory. NULL with an exception pending. Free with free(). */
int64_t* jni_longs(JNIEnv* env, jlongArray array, size_t* count);
jlongArray jni_array(JNIEnv* env, const int64_t* values, size_t count);

/* training.c, also for strategies and trainers. */
/* Its pointers are the packet's: close that afterwards. */
dtg_optimizer jni_optimizer(packet* from);
dtg_dense jni_dense(packet* from);
dtg_embedding jni_embedding(packet* from);
dtg_attention jni_attention(packet* from);
dtg_variable_spec jni_variable_spec(packet* from);
jlongArray jni_variable(JNIEnv* env, const dtg_variable* from);
jlongArray jni_training_ids(JNIEnv* env, const dtg_training* from);
jlongArray jni_replicated_ids(JNIEnv* env, const dtg_replicated* from);

/* ---- the classes that natives need, found once (load.c) ---- */
typedef struct jni_known {
  jclass exception;
  jmethodID make; /* static DtgException of(int, byte[], byte[], byte[], byte[], byte[]) */
  jclass no_memory;
  jclass bytes; /* byte[] */
  jclass throwable;
  JavaVM* vm;
  jclass host; /* HostData, and its static methods */
  jmethodID host_map, host_filter, host_begin, host_next, host_code, host_message;
} jni_known;
extern jni_known jni;

/* ---- the natives of each noun ---- */
typedef struct jni_table {
  const JNINativeMethod* methods;
  jint count;
} jni_table;
#define JNI_TABLE(name, methods) const jni_table name = {methods, (jint)(sizeof(methods) / sizeof(methods)[0])}
extern const jni_table jni_base, jni_runtime, jni_tensor, jni_graph, jni_value, jni_model, jni_layers, jni_training, jni_session, jni_async,
    jni_cluster, jni_server, jni_dataset, jni_weights, jni_events, jni_checkpoint, jni_control, jni_group, jni_strategy, jni_trainer,
    jni_coordinator, jni_host_data, jni_sharded, jni_mesh;

#endif /* DTG_JNI_H */
