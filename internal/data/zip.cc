// Walks the directory at the end of a zip file and inflates entries by zlib; see zip.h.
#include "data/zip.h"

#include <zlib.h>

#include <algorithm>
#include <cstring>

namespace dtg {
namespace {

constexpr uint32_t kEndSignature = 0x06054b50, kWideLocator = 0x07064b50, kWideEnd = 0x06064b50;
constexpr uint32_t kCentral = 0x02014b50, kLocal = 0x04034b50;
constexpr size_t kEndBytes = 22, kLocatorBytes = 20, kWideEndBytes = 56, kCentralBytes = 46, kLocalBytes = 30;
constexpr size_t kCommentMax = 65535;
constexpr size_t kEntriesMax = size_t{1} << 20;

// Little-endian, byte by byte. The place must be in range.
uint64_t number(std::string_view bytes, uint64_t at, int width) {
  uint64_t value = 0;
  for (int i = width - 1; i >= 0; --i) value = value << 8 | static_cast<unsigned char>(bytes[at + static_cast<uint64_t>(i)]);
  return value;
}

class Stored final : public FileReader {
 public:
  Stored(std::string_view bytes, uint32_t crc, std::string path) : left_(bytes), crc_(crc), path_(std::move(path)) {}
  Result<size_t> read(void* into, size_t count) override {
    const size_t given = std::min({count, left_.size(), size_t{1} << 30});
    if (given != 0) std::memcpy(into, left_.data(), given);
    seen_ = crc32(seen_, static_cast<const Bytef*>(into), static_cast<uInt>(given));
    left_.remove_prefix(given);
    if (given == 0 && count != 0 && seen_ != crc_) return data_loss("read \"%s\": its checksum is wrong; it is damaged", path_.c_str());
    return given;
  }

 private:
  std::string_view left_;
  uLong seen_ = 0;
  const uint32_t crc_;
  const std::string path_;
};

class Inflated final : public FileReader {
 public:
  Inflated(std::string_view bytes, const ZipEntry& entry, std::string path)
      : left_(bytes), crc_(entry.crc), plain_(entry.plain), path_(std::move(path)) {}
  ~Inflated() override {
    if (open_) inflateEnd(&stream_);
  }

  Status init() {
    const int code = inflateInit2(&stream_, -MAX_WBITS);
    if (code != Z_OK) return resource_exhausted("decompress \"%s\": zlib answered %d", path_.c_str(), code);
    open_ = true;
    return {};
  }

  Result<size_t> read(void* into, size_t count) override {
    if (count == 0 || ended_) return size_t{0};
    const size_t room = std::min(count, size_t{1} << 30);
    stream_.next_out = static_cast<Bytef*>(into);
    stream_.avail_out = static_cast<uInt>(room);
    while (stream_.avail_out == room && !ended_) {
      feed();
      const uInt before = stream_.avail_in;
      const int code = inflate(&stream_, Z_NO_FLUSH);
      if (code == Z_STREAM_END) {
        ended_ = true;
      } else if (code != Z_OK || (before == stream_.avail_in && stream_.avail_out == room)) {
        return data_loss("decompress \"%s\": %s (zlib %d); it is damaged or cut short", path_.c_str(),
                         stream_.msg ? stream_.msg : "the data end in the middle", code);
      }
    }
    const size_t given = room - stream_.avail_out;
    seen_ = crc32(seen_, static_cast<const Bytef*>(into), static_cast<uInt>(given));
    made_ += given;
    if (ended_ && (seen_ != crc_ || made_ != plain_)) {
      return data_loss("decompress \"%s\": %llu bytes came out, %llu are announced, or their checksum is wrong; it is damaged",
                       path_.c_str(), static_cast<unsigned long long>(made_), static_cast<unsigned long long>(plain_));
    }
    return given;
  }

 private:
  void feed() {
    if (stream_.avail_in != 0 || left_.empty()) return;
    const size_t given = std::min(left_.size(), size_t{1} << 30);
    stream_.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(left_.data()));  // zlib's type; it is only read
    stream_.avail_in = static_cast<uInt>(given);
    left_.remove_prefix(given);
  }

  std::string_view left_;
  z_stream stream_{};
  bool open_ = false;
  bool ended_ = false;
  uLong seen_ = 0;
  uint64_t made_ = 0;
  const uint32_t crc_;
  const uint64_t plain_;
  const std::string path_;
};

}  // namespace

Status ZipArchive::damaged(uint64_t at, const char* problem) const {
  return data_loss("read \"%s\": near byte %llu of %zu, %s; the file is damaged, cut short, or no zip file", path_.c_str(),
                   static_cast<unsigned long long>(at), bytes_.size(), problem);
}

// The record at the end, which a comment may follow.
Result<ZipArchive::Directory> ZipArchive::find_directory() const {
  if (bytes_.size() < kEndBytes) return damaged(0, "there is no room for a directory");
  const size_t last = bytes_.size() - kEndBytes;
  for (size_t back = 0; back <= std::min(last, kCommentMax); ++back) {
    const size_t at = last - back;
    if (number(bytes_, at, 4) != kEndSignature || number(bytes_, at + 20, 2) != back) continue;
    Directory found{number(bytes_, at + 16, 4), number(bytes_, at + 12, 4), number(bytes_, at + 10, 2)};
    const bool is_wide = found.at == UINT32_MAX || found.bytes == UINT32_MAX || found.entries == UINT16_MAX;
    if (!is_wide || at < kLocatorBytes || number(bytes_, at - kLocatorBytes, 4) != kWideLocator) return found;
    const uint64_t wide = number(bytes_, at - kLocatorBytes + 8, 8);
    if (wide > at || at - wide < kWideEndBytes || number(bytes_, wide, 4) != kWideEnd) return damaged(wide, "no 64-bit directory begins");
    return Directory{number(bytes_, wide + 48, 8), number(bytes_, wide + 40, 8), number(bytes_, wide + 32, 8)};
  }
  return damaged(last, "no directory ends");
}

// Numbers that did not fit 32 bits stand behind the name, in this order, those that are needed only.
Status ZipArchive::read_wide(ZipEntry& entry, std::string_view extra) const {
  while (extra.size() >= 4) {
    const uint64_t id = number(extra, 0, 2), size = number(extra, 2, 2);
    if (size > extra.size() - 4) break;
    std::string_view body = extra.substr(4, size);
    extra.remove_prefix(4 + size);
    if (id != 1) continue;
    for (uint64_t* field : {&entry.plain, &entry.packed, &entry.at}) {
      if (*field != UINT32_MAX) continue;
      if (body.size() < 8) return damaged(entry.at, "an entry lacks its 64-bit numbers");
      *field = number(body, 0, 8);
      body.remove_prefix(8);
    }
  }
  return {};
}

Status ZipArchive::read_directory(const Directory& directory) {
  if (directory.at > bytes_.size() || directory.bytes > bytes_.size() - directory.at) {
    return damaged(directory.at, "the directory does not fit the file");
  }
  if (directory.entries > kEntriesMax) return damaged(directory.at, "the directory announces more than a million files");
  const uint64_t end = directory.at + directory.bytes;
  uint64_t at = directory.at;
  for (uint64_t i = 0; i < directory.entries; ++i) {
    if (end - at < kCentralBytes || number(bytes_, at, 4) != kCentral) return damaged(at, "an entry of the directory should begin");
    ZipEntry entry;
    entry.flags = static_cast<uint16_t>(number(bytes_, at + 8, 2));
    entry.method = static_cast<uint16_t>(number(bytes_, at + 10, 2));
    entry.crc = static_cast<uint32_t>(number(bytes_, at + 16, 4));
    entry.packed = number(bytes_, at + 20, 4);
    entry.plain = number(bytes_, at + 24, 4);
    entry.at = number(bytes_, at + 42, 4);
    const uint64_t name = number(bytes_, at + 28, 2), extra = number(bytes_, at + 30, 2), comment = number(bytes_, at + 32, 2);
    if (end - at - kCentralBytes < name + extra + comment) return damaged(at, "an entry of the directory is cut");
    entry.name = bytes_.substr(at + kCentralBytes, name);
    DTG_TRY(read_wide(entry, bytes_.substr(at + kCentralBytes + name, extra)));
    at += kCentralBytes + name + extra + comment;
    entries_.push_back(std::move(entry));
  }
  return {};
}

Result<ZipArchive> ZipArchive::open(std::string_view bytes, std::string path) {
  ZipArchive archive(bytes, std::move(path));
  DTG_ASSIGN(const Directory directory, archive.find_directory());
  DTG_TRY(archive.read_directory(directory));
  return archive;
}

Result<std::unique_ptr<FileReader>> ZipArchive::read(const ZipEntry& entry) const {
  if (entry.at > bytes_.size() || bytes_.size() - entry.at < kLocalBytes || number(bytes_, entry.at, 4) != kLocal) {
    return damaged(entry.at, "a file of the archive should begin");
  }
  const uint64_t data = entry.at + kLocalBytes + number(bytes_, entry.at + 26, 2) + number(bytes_, entry.at + 28, 2);
  if (data > bytes_.size() || entry.packed > bytes_.size() - data) return damaged(data, "a file of the archive is cut");
  const std::string inside = path_ + "/" + entry.name;
  if ((entry.flags & 1) != 0) return unimplemented("read \"%s\": it is encrypted; store it without a password", inside.c_str());
  const std::string_view packed = bytes_.substr(data, entry.packed);
  if (entry.method == 0) {
    if (entry.packed != entry.plain) return damaged(data, "a stored file has two lengths");
    return std::unique_ptr<FileReader>(new Stored(packed, entry.crc, inside));
  }
  if (entry.method != 8) {
    return unimplemented("read \"%s\": it is compressed by method %d; stored and deflated files are possible", inside.c_str(),
                         entry.method);
  }
  auto inflated = std::make_unique<Inflated>(packed, entry, inside);
  DTG_TRY(inflated->init());
  return std::unique_ptr<FileReader>(std::move(inflated));
}

}  // namespace dtg
