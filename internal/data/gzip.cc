// Decompresses gzip by zlib behind the FileReader interface. A reader belongs to one thread.
#include "data/gzip.h"

#include <zlib.h>

#include <algorithm>
#include <array>
#include <cstring>

namespace dtg {
namespace {

constexpr size_t kChunk = size_t{64} << 10;
constexpr unsigned char kMagic[2] = {0x1f, 0x8b};

// Bytes that were read to find out what the file is, then the rest of it.
class Plain final : public FileReader {
 public:
  Plain(std::unique_ptr<FileReader> file, std::string head) : file_(std::move(file)), head_(std::move(head)) {}
  Result<size_t> read(void* into, size_t count) override {
    if (at_ == head_.size()) return file_->read(into, count);
    const size_t given = std::min(count, head_.size() - at_);
    std::memcpy(into, head_.data() + at_, given);
    at_ += given;
    return given;
  }

 private:
  const std::unique_ptr<FileReader> file_;
  const std::string head_;
  size_t at_ = 0;
};

class Gunzip final : public FileReader {
 public:
  Gunzip(std::unique_ptr<FileReader> file, std::string path) : file_(std::move(file)), path_(std::move(path)) {}
  ~Gunzip() override {
    if (open_) inflateEnd(&stream_);
  }

  Status init(std::string_view head) {
    // 16 more than the window size: a gzip wrapper and nothing else.
    const int code = inflateInit2(&stream_, 16 + MAX_WBITS);
    if (code != Z_OK) return resource_exhausted("decompress \"%s\": zlib answered %d", path_.c_str(), code);
    open_ = true;
    std::memcpy(input_.data(), head.data(), head.size());
    stream_.next_in = input_.data();
    stream_.avail_in = static_cast<uInt>(head.size());
    return {};
  }

  Result<size_t> read(void* into, size_t count) override {
    if (count == 0 || ended_) return size_t{0};
    const size_t room = std::min(count, size_t{1} << 30);
    stream_.next_out = static_cast<Bytef*>(into);
    stream_.avail_out = static_cast<uInt>(room);
    while (stream_.avail_out == room) {
      DTG_ASSIGN(const bool more, fill());
      if (between_members_) {
        // Concatenated gzip files are one gzip file; nothing but another member may follow.
        if (!more) {
          ended_ = true;
          return size_t{0};
        }
        inflateReset(&stream_);
        between_members_ = false;
      }
      if (!more) return data_loss("decompress \"%s\": the file ends in the middle; it was cut short", path_.c_str());
      const int code = inflate(&stream_, Z_NO_FLUSH);
      if (code == Z_STREAM_END) {
        between_members_ = true;
      } else if (code != Z_OK && code != Z_BUF_ERROR) {
        return data_loss("decompress \"%s\": %s (zlib %d); the file is damaged", path_.c_str(), stream_.msg ? stream_.msg : "bad data",
                         code);
      }
    }
    return room - stream_.avail_out;
  }

 private:
  // Makes sure that there is input; false at the end of the file.
  Result<bool> fill() {
    if (stream_.avail_in != 0) return true;
    DTG_ASSIGN(const size_t got, file_->read(input_.data(), input_.size()));
    stream_.next_in = input_.data();
    stream_.avail_in = static_cast<uInt>(got);
    return got != 0;
  }

  const std::unique_ptr<FileReader> file_;
  const std::string path_;
  std::array<Bytef, kChunk> input_;
  z_stream stream_{};
  bool open_ = false;
  bool between_members_ = false;
  bool ended_ = false;
};

}  // namespace

Result<std::unique_ptr<FileReader>> plain_reader(std::unique_ptr<FileReader> file, const std::string& path) {
  std::string head;
  while (head.size() < sizeof kMagic) {
    char byte;
    DTG_ASSIGN(const size_t got, file->read(&byte, 1));
    if (got == 0) break;
    head += byte;
  }
  if (head.size() < sizeof kMagic || std::memcmp(head.data(), kMagic, sizeof kMagic) != 0) {
    return std::unique_ptr<FileReader>(new Plain(std::move(file), std::move(head)));
  }
  auto gunzip = std::make_unique<Gunzip>(std::move(file), path);
  DTG_TRY(gunzip->init(head));
  return std::unique_ptr<FileReader>(std::move(gunzip));
}

Result<std::unique_ptr<FileReader>> open_plain(Disk& disk, const std::string& path) {
  DTG_ASSIGN(auto file, disk.open_read(path));
  return plain_reader(std::move(file), path);
}

Result<std::string> read_all(FileReader& file, const std::string& path, int64_t bytes_max, Reservation& held) {
  std::string text;
  for (;;) {
    const size_t before = text.size();
    const size_t more = std::max(kChunk, before / 2);
    DTG_TRY(held.grow(static_cast<int64_t>(more), path.c_str()));
    text.resize(before + more);
    DTG_ASSIGN(const size_t got, file.read(text.data() + before, text.size() - before));
    text.resize(before + got);
    // The last chunk is not filled; what is short of it is given back.
    const auto unused = static_cast<int64_t>(more - got);
    if (held.budget) held.budget->release(unused), held.bytes -= unused;
    if (got == 0) return text;
    if (static_cast<int64_t>(text.size()) > bytes_max) {
      return resource_exhausted("read \"%s\": it holds more than the %lld bytes allowed here", path.c_str(),
                                static_cast<long long>(bytes_max));
    }
  }
}

Status read_fully(FileReader& file, void* into, size_t count, const std::string& path, const char* what) {
  auto* const at = static_cast<char*>(into);
  for (size_t done = 0; done < count;) {
    DTG_ASSIGN(const size_t got, file.read(at + done, count - done));
    if (got == 0) {
      return data_loss("read \"%s\": the file ends inside %s, %zu of %zu bytes short", path.c_str(), what, count - done, count);
    }
    done += got;
  }
  return {};
}

}  // namespace dtg
