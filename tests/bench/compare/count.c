/* count.c: counts what a training step should not do: allocations, releases and mutex locks. It defines the C functions
 * itself, so that every call of the process comes here, and wraps those of mimalloc at link time (see DtgTests.cmake),
 * because the library calls those by their own names. Linked into one benchmark program only. */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>

void count_from_now(void);
void count_until_now(long *allocations, long *releases, long *locks);

static atomic_long allocations, releases, locks;

void count_from_now(void) {
  atomic_store(&allocations, 0);
  atomic_store(&releases, 0);
  atomic_store(&locks, 0);
}

void count_until_now(long *a, long *r, long *l) {
  *a = atomic_load(&allocations);
  *r = atomic_load(&releases);
  *l = atomic_load(&locks);
}

/* glibc's allocator under its own names. */
extern void *__libc_malloc(size_t bytes);
extern void *__libc_calloc(size_t count, size_t bytes);
extern void *__libc_realloc(void *old, size_t bytes);
extern void *__libc_memalign(size_t align, size_t bytes);
extern void __libc_free(void *block);

static void *counted(void *block) {
  atomic_fetch_add_explicit(&allocations, 1, memory_order_relaxed);
  return block;
}

void *malloc(size_t bytes) { return counted(__libc_malloc(bytes)); }
void *calloc(size_t count, size_t bytes) { return counted(__libc_calloc(count, bytes)); }
void *realloc(void *old, size_t bytes) { return counted(__libc_realloc(old, bytes)); }
void *aligned_alloc(size_t align, size_t bytes) { return counted(__libc_memalign(align, bytes)); }
void *memalign(size_t align, size_t bytes) { return counted(__libc_memalign(align, bytes)); }
int posix_memalign(void **out, size_t align, size_t bytes) {
  *out = counted(__libc_memalign(align, bytes));
  return *out ? 0 : 12;
}
void free(void *block) {
  if (block) atomic_fetch_add_explicit(&releases, 1, memory_order_relaxed);
  __libc_free(block);
}

extern void *__real_mi_malloc_aligned(size_t bytes, size_t align);
extern void __real_mi_free(void *block);
void *__wrap_mi_malloc_aligned(size_t bytes, size_t align);
void __wrap_mi_free(void *block);
void *__wrap_mi_malloc_aligned(size_t bytes, size_t align) { return counted(__real_mi_malloc_aligned(bytes, align)); }
void __wrap_mi_free(void *block) {
  atomic_fetch_add_explicit(&releases, 1, memory_order_relaxed);
  __real_mi_free(block);
}

extern int __real_pthread_mutex_lock(pthread_mutex_t *mutex);
int __wrap_pthread_mutex_lock(pthread_mutex_t *mutex);
int __wrap_pthread_mutex_lock(pthread_mutex_t *mutex) {
  atomic_fetch_add_explicit(&locks, 1, memory_order_relaxed);
  return __real_pthread_mutex_lock(mutex);
}
