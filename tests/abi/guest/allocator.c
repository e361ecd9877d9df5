/* An allocator of the host: malloc and its family, and operator new, each block with a mark in front. What is freed here must have come
 * from here. Linked into a host, or preloaded; at the end it says how many calls it saw and how many blocks were not its own, on
 * the descriptor that ALLOCATOR_REPORT names. */
#define _GNU_SOURCE
#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

extern void *__libc_malloc(size_t);
extern void __libc_free(void *);

struct mark {
  uint64_t sign;
  size_t size;
  void *block; /* what the C library gave */
  void *self;
};
static const uint64_t sign = 0x6d61726b65642121u;
static long calls, news, strange;

static void *take(size_t alignment, size_t size) {
  const size_t room = sizeof(struct mark) + (alignment < 16 ? 16 : alignment);
  if (size > SIZE_MAX - room) return NULL;
  char *const block = __libc_malloc(size + room);
  if (!block) return NULL;
  const uintptr_t at = ((uintptr_t)block + room) / (alignment < 16 ? 16 : alignment) * (alignment < 16 ? 16 : alignment);
  struct mark *const mark = (struct mark *)at - 1;
  *mark = (struct mark){sign, size, block, (void *)at};
  __atomic_add_fetch(&calls, 1, __ATOMIC_RELAXED);
  return (void *)at;
}

static struct mark *mark_of(void *data) {
  struct mark *const mark = (struct mark *)data - 1;
  if (mark->sign == sign && mark->self == data) return mark;
  __atomic_add_fetch(&strange, 1, __ATOMIC_RELAXED);
  return NULL;
}

static void give(void *data) {
  if (!data) return;
  struct mark *const mark = mark_of(data);
  if (!mark) return;
  mark->sign = 0;
  __libc_free(mark->block);
}

#pragma GCC visibility push(default)
void *malloc(size_t size) { return take(16, size); }
void free(void *data) { give(data); }
void *calloc(size_t count, size_t size) {
  if (size && count > SIZE_MAX / size) return NULL;
  void *const data = take(16, count * size);
  if (data) memset(data, 0, count * size);
  return data;
}
void *realloc(void *old, size_t size) {
  void *const data = take(16, size);
  if (!old || !data) return data;
  struct mark *const mark = mark_of(old);
  if (mark) memcpy(data, old, mark->size < size ? mark->size : size);
  give(old);
  return data;
}
void *memalign(size_t alignment, size_t size) { return take(alignment, size); }
void *aligned_alloc(size_t alignment, size_t size) { return take(alignment, size); }
int posix_memalign(void **out, size_t alignment, size_t size) {
  void *const data = take(alignment, size);
  if (!data) return ENOMEM;
  *out = data;
  return 0;
}
size_t malloc_usable_size(void *data) {
  struct mark *const mark = data ? mark_of(data) : NULL;
  return mark ? mark->size : 0;
}

/* operator new and delete, under the names that the C++ ABI gives them. */
void *_Znwm(size_t size);
void *_Znam(size_t size);
void _ZdlPv(void *data);
void _ZdaPv(void *data);
void _ZdlPvm(void *data, size_t size);
void _ZdaPvm(void *data, size_t size);
void *_Znwm(size_t size) {
  __atomic_add_fetch(&news, 1, __ATOMIC_RELAXED);
  void *const data = take(16, size);
  if (!data) abort();
  return data;
}
void *_Znam(size_t size) { return _Znwm(size); }
void _ZdlPv(void *data) { give(data); }
void _ZdaPv(void *data) { give(data); }
void _ZdlPvm(void *data, size_t size) {
  (void)size;
  give(data);
}
void _ZdaPvm(void *data, size_t size) {
  (void)size;
  give(data);
}

long allocator_strange(void);
long allocator_strange(void) { return __atomic_load_n(&strange, __ATOMIC_RELAXED); }
long allocator_calls(void);
long allocator_calls(void) { return __atomic_load_n(&calls, __ATOMIC_RELAXED); }
#pragma GCC visibility pop

__attribute__((destructor)) static void report(void) {
  char line[128];
  const char *const where = getenv("ALLOCATOR_REPORT");
  const int length = snprintf(line, sizeof line, "allocator: %ld calls, %ld of them new, %ld strange blocks\n", calls, news, strange);
  if (where && length > 0) (void)!write(atoi(where), line, (size_t)length);
}
