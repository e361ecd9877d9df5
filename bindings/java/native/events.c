/* events.c: a queue from the library's threads to one Java thread. A callback appends and signals; it never enters the virtual
 * machine, so that no foreign thread is ever attached. The Java thread takes one event after the other. */
#include "events.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "dtg_jni.h"

enum { KIND_LOG = 0, KIND_LOG_ENDED = 1, KIND_FREED = 2 };
enum { MOST_LINES = 4096 }; /* lines that wait; more are dropped, and counted */

typedef struct event {
  struct event* next;
  int64_t kind;
  int64_t number; /* of the sink, or of the buffer */
  int64_t level;
  int64_t dropped;
  size_t component; /* bytes of it in `text`; the message follows */
  size_t length;
  char text[];
} event;

static pthread_mutex_t guard = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t news = PTHREAD_COND_INITIALIZER;
static event *first, *last;
static int64_t lines, dropped;

static void append(event* what) {
  what->next = NULL;
  pthread_mutex_lock(&guard);
  if (what->kind == KIND_LOG) {
    if (lines >= MOST_LINES) {
      ++dropped;
      pthread_mutex_unlock(&guard);
      free(what);
      return;
    }
    ++lines;
    what->dropped = dropped;
    dropped = 0;
  }
  if (last) {
    last->next = what;
  } else {
    first = what;
  }
  last = what;
  pthread_cond_signal(&news);
  pthread_mutex_unlock(&guard);
}

static event* make(int64_t kind, int64_t number, size_t length) {
  event* out = (event*)calloc(1, sizeof(event) + length);
  if (out) {
    out->kind = kind;
    out->number = number;
    out->length = length;
  }
  return out;
}

/* Without memory a line is lost. */
void events_log(void* user, dtg_log_level level, const char* component, const char* message) {
  const size_t head = strlen(component), body = strlen(message);
  event* what = make(KIND_LOG, (int64_t)(intptr_t)user, head + body);
  if (!what) return;
  what->level = level;
  what->component = head;
  memcpy(what->text, component, head);
  memcpy(what->text + head, message, body);
  append(what);
}

void events_log_ended(void* user) {
  event* what = make(KIND_LOG_ENDED, (int64_t)(intptr_t)user, 0);
  if (what) append(what);
}

void* events_token(int64_t number) { return make(KIND_FREED, number, 0); }

void events_token_unused(void* token) { free(token); }

void events_freed(void* data, size_t nbytes, void* user) {
  (void)data, (void)nbytes;
  append((event*)user);
}

static event* take(jlong timeout_ms) {
  struct timespec until;
  event* out;
  clock_gettime(CLOCK_REALTIME, &until);
  until.tv_sec += timeout_ms / 1000;
  until.tv_nsec += (timeout_ms % 1000) * 1000000;
  if (until.tv_nsec >= 1000000000) {
    until.tv_nsec -= 1000000000;
    ++until.tv_sec;
  }
  pthread_mutex_lock(&guard);
  while (!first && pthread_cond_timedwait(&news, &guard, &until) == 0) {
  }
  out = first;
  if (out) {
    first = out->next;
    if (!first) last = NULL;
    if (out->kind == KIND_LOG) --lines;
  }
  pthread_mutex_unlock(&guard);
  return out;
}

/* Waits for the next event: into `numbers` go kind, number, level and how many lines were lost before; the texts are returned. Null
 * when the time has passed. */
static jobjectArray next(JNIEnv* env, jclass self, jlong timeout_ms, jlongArray numbers) {
  event* what = take(timeout_ms);
  jlong head[4];
  jobjectArray texts;
  (void)self;
  if (!what) return NULL;
  head[0] = what->kind, head[1] = what->number, head[2] = what->level, head[3] = what->dropped;
  (*env)->SetLongArrayRegion(env, numbers, 0, 4, head);
  texts = (*env)->NewObjectArray(env, 2, jni.bytes, NULL);
  if (texts && what->kind == KIND_LOG) {
    jbyteArray component = jni_bytes(env, what->text, what->component);
    jbyteArray message = component ? jni_bytes(env, what->text + what->component, what->length - what->component) : NULL;
    if (message) {
      (*env)->SetObjectArrayElement(env, texts, 0, component);
      (*env)->SetObjectArrayElement(env, texts, 1, message);
    }
  }
  free(what);
  return texts;
}

static const JNINativeMethod methods[] = {NATIVE("eventsNext", "(J[J)[[B", next)};
JNI_TABLE(jni_events, methods);
