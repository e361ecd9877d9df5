// Making, sealing, checking and mapping memfds. See segment.h; any thread.
#include "net/segment.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include <cerrno>
#include <cstring>

#include "base/file_limit.h"

#ifndef F_SEAL_FUTURE_WRITE
#define F_SEAL_FUTURE_WRITE 0x0010  // Linux 5.1
#endif

namespace dtg {
namespace {

constexpr int kSizeSeals = F_SEAL_SHRINK | F_SEAL_GROW;

std::string problem(int error) {
  char text[128] = {};
  return strerror_r(error, text, sizeof text);
}

Status no_memory(const char* what, size_t bytes) {
  return resource_exhausted("share %zu bytes of memory with another process: %s: %s", bytes, what, problem(errno).c_str());
}

// The other process can neither change the size nor, where the kernel knows that, get to write.
bool seal(int descriptor) {
  if (::fcntl(descriptor, F_ADD_SEALS, kSizeSeals | F_SEAL_FUTURE_WRITE | F_SEAL_SEAL) == 0) return true;
  return errno == EINVAL && ::fcntl(descriptor, F_ADD_SEALS, kSizeSeals | F_SEAL_SEAL) == 0;
}

Status refuse(const char* why) { return permission_denied("map memory of another process: %s; nothing of it was read", why); }

// Pages of a memfd that nobody can cut are there whenever they are read. Of a file they may be gone, and huge pages may run out.
Status check(int descriptor, size_t bytes) {
  struct stat found {};
  if (::fstat(descriptor, &found) != 0 || !S_ISREG(found.st_mode)) return refuse("it is no memfd");
  struct statfs system {};
  if (::fstatfs(descriptor, &system) != 0 || system.f_type != TMPFS_MAGIC) return refuse("it is no memfd of ordinary pages");
  const int seals = ::fcntl(descriptor, F_GET_SEALS);
  if (seals < 0) return refuse("it is no memfd");
  if ((seals & kSizeSeals) != kSizeSeals) return refuse("it is not sealed, so it could become shorter while it is read");
  if (static_cast<uint64_t>(found.st_size) == bytes) return {};
  return permission_denied("map memory of another process: it has %lld bytes, but %zu were announced; nothing of it was read",
                           static_cast<long long>(found.st_size), bytes);
}

// Null where there is no room. A child that the host forks has no use for it, and would keep the memory.
char* map_pages(int descriptor, size_t bytes, int protection) {
  void* const at = ::mmap(nullptr, bytes, protection, MAP_SHARED, descriptor, 0);
  if (at == MAP_FAILED) return nullptr;
  ::madvise(at, bytes, MADV_DONTFORK);
  return static_cast<char*>(at);
}

}  // namespace

Result<std::unique_ptr<Segment>> Segment::make(size_t bytes, Descriptor* descriptor) {
  Descriptor fresh(::memfd_create("dtg", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (fresh.get() < 0) return no_memory("memfd_create", bytes);
  const FileLimit limit;  // it holds for memfds too
  if (::ftruncate(fresh.get(), static_cast<off_t>(bytes)) != 0) return no_memory("ftruncate", bytes);
  char* const at = map_pages(fresh.get(), bytes, PROT_READ | PROT_WRITE);
  if (!at) return no_memory("mmap", bytes);
  std::unique_ptr<Segment> segment(new Segment(at, bytes));
  if (!seal(fresh.get())) return no_memory("seal", bytes);
  *descriptor = std::move(fresh);
  return segment;
}

Result<std::unique_ptr<Segment>> Segment::map(const Descriptor& descriptor, size_t bytes) {
  DTG_TRY(check(descriptor.get(), bytes));
  char* const at = map_pages(descriptor.get(), bytes, PROT_READ);
  if (!at) return no_memory("mmap", bytes);
  return std::unique_ptr<Segment>(new Segment(at, bytes));
}

Segment::~Segment() { ::munmap(data_, bytes_); }

}  // namespace dtg
