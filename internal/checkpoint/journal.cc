// Writing and reading journals.
#include "checkpoint/journal.h"

#include <algorithm>
#include <cinttypes>
#include <cstring>

#include "base/crc32c.h"

namespace dtg {
namespace {

constexpr const char* kPrefix = "journal-";
constexpr size_t kHead = 12, kTail = 4;
constexpr size_t kSmall = 64 << 10;
// Longer than anything that is ever written, so that a damaged length takes no memory.
constexpr uint64_t kRecordMax = uint64_t{1} << 36;

template <class Word>
void put(char* at, Word word) {
  for (size_t i = 0; i < sizeof(Word); ++i) at[i] = static_cast<char>(word >> (8 * i) & 0xffu);
}

template <class Word>
Word get(const char* at) {
  Word word = 0;
  for (size_t i = sizeof(Word); i-- > 0;) word = static_cast<Word>(word << 8 | static_cast<unsigned char>(at[i]));
  return word;
}

}  // namespace

Result<std::unique_ptr<JournalWriter>> JournalWriter::begin(Disk& disk, const std::string& directory, uint64_t first) {
  DTG_ASSIGN(auto file, disk.open_new(directory + "/" + format("%s%016" PRIx64, kPrefix, first)));
  DTG_TRY(disk.sync_directory(directory));
  return std::unique_ptr<JournalWriter>(new JournalWriter(std::move(file)));
}

Status JournalWriter::append(std::span<const std::string_view> pieces) {
  uint64_t size = 0;
  uint32_t crc = 0;
  for (const std::string_view piece : pieces) {
    size += piece.size();
    crc = crc32c(piece, crc);
  }
  char head[kHead], tail[kTail];
  put(head, size);
  put(head + 8, mask_crc(crc32c({head, 8})));
  put(tail, mask_crc(crc));
  bytes_ += static_cast<int64_t>(size + kHead + kTail);
  small_.assign(head, kHead);
  // Large pieces are written from where they lie.
  for (const std::string_view piece : pieces) {
    if (piece.size() < kSmall) {
      small_ += piece;
      if (small_.size() < kSmall) continue;
    }
    DTG_TRY(file_->append(small_));
    small_.clear();
    if (piece.size() >= kSmall) DTG_TRY(file_->append(piece));
  }
  small_.append(tail, kTail);
  return file_->append(small_);
}

Result<std::vector<JournalFile>> list_journals(Disk& disk, const std::string& directory) {
  std::vector<JournalFile> files;
  DTG_ASSIGN(const bool there, disk.exists(directory));
  if (!there) return files;
  DTG_ASSIGN(const std::vector<std::string> names, disk.list(directory));
  for (const std::string& name : names) {
    if (!name.starts_with(kPrefix) || name.size() != std::strlen(kPrefix) + 16) continue;
    const std::string digits = name.substr(std::strlen(kPrefix));
    if (digits.find_first_not_of("0123456789abcdef") != std::string::npos) continue;
    files.push_back({std::strtoull(digits.c_str(), nullptr, 16), directory + "/" + name});
  }
  std::ranges::sort(files, {}, &JournalFile::first);
  return files;
}

namespace {

class JournalReader {
 public:
  JournalReader(FileReader& file, const std::string& path) : file_(file), path_(path) {}

  // False at the end of what was written.
  Result<bool> next(std::string& record) {
    char head[kHead];
    DTG_ASSIGN(const size_t got, read(head, kHead));
    if (got < kHead) return false;
    const uint64_t size = get<uint64_t>(head);
    if (get<uint32_t>(head + 8) != mask_crc(crc32c({head, 8})) || size > kRecordMax) return zeros_or_damaged("the length of a record");
    DTG_ASSIGN(const bool whole, read_body(size, record));
    char tail[kTail];
    if (!whole) return false;
    DTG_ASSIGN(const size_t ended, read(tail, kTail));
    if (ended < kTail) return false;
    if (get<uint32_t>(tail) != mask_crc(crc32c(record))) {
      // The last one may have come to the disk with holes, and nothing but zeros behind it.
      return zeros_or_damaged("a record");
    }
    offset_ += static_cast<int64_t>(kHead + size + kTail);
    return true;
  }
  int64_t offset() const { return offset_; }

 private:
  // In pieces, so that a length that promises too much takes no more memory than is there.
  Result<bool> read_body(uint64_t size, std::string& record) {
    constexpr uint64_t kPiece = 16 << 20;
    record.clear();
    while (record.size() < size) {
      const size_t before = record.size(), wanted = static_cast<size_t>(std::min(size - before, kPiece));
      record.resize(before + wanted);
      DTG_ASSIGN(const size_t got, read(record.data() + before, wanted));
      if (got < wanted) return false;
    }
    return true;
  }

  Result<size_t> read(void* into, size_t count) {
    size_t done = 0;
    while (done < count) {
      DTG_ASSIGN(const size_t got, file_.read(static_cast<char*>(into) + done, count - done));
      if (got == 0) break;
      done += got;
    }
    return done;
  }

  // What was just read is not whole. File systems may have made the file longer than what came to the disk, so it is the end where nothing
  // but zeros is behind it.
  Result<bool> zeros_or_damaged(const char* what) {
    const auto is_zero = [](char c) { return c == 0; };
    bool zeros = true;
    char more[4096];
    while (zeros) {
      DTG_ASSIGN(const size_t got, read(more, sizeof more));
      if (got == 0) return false;
      zeros = std::all_of(more, more + got, is_zero);
    }
    return damaged(what);
  }

  Status damaged(const char* what) const {
    return data_loss("\"%s\": %s at byte %lld does not have its checksum", path_.c_str(), what, static_cast<long long>(offset_));
  }

  FileReader& file_;
  const std::string& path_;
  int64_t offset_ = 0;
};

}  // namespace

Result<int64_t> read_journal(Disk& disk, const std::string& path, const std::function<Status(std::string_view record)>& each) {
  DTG_ASSIGN(const auto file, disk.open_regular(path));
  JournalReader reader(*file, path);
  std::string record;
  for (;;) {
    DTG_ASSIGN(const bool more, reader.next(record));
    if (!more) return reader.offset();
    DTG_TRY(each(record));
  }
}

}  // namespace dtg
