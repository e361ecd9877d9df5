// Writing and reading TensorFlow's record framing; the layout and the thread rule are in record.h.
#include "base/record.h"

#include <algorithm>

#include "base/crc32c.h"

namespace dtg {
namespace {

constexpr size_t kHead = 12;  // length and its checksum

template <class Word>
void append_word(std::string& out, Word word) {
  for (size_t i = 0; i < sizeof(Word); ++i) out += static_cast<char>(word >> (8 * i) & 0xffu);
}

template <class Word>
Word word_at(const char* at) {
  Word word = 0;
  for (size_t i = sizeof(Word); i-- > 0;) {
    word = static_cast<Word>(word << 8 | static_cast<Word>(static_cast<unsigned char>(at[i])));
  }
  return word;
}

}  // namespace

void append_record(std::string& out, std::string_view payload) {
  const size_t start = out.size();
  append_word(out, uint64_t{payload.size()});
  append_word(out, mask_crc(crc32c(std::string_view(out).substr(start, 8))));
  out.append(payload);
  append_word(out, mask_crc(crc32c(payload)));
}

// As many bytes as there are, up to `count`.
Result<size_t> RecordReader::read(void* into, size_t count) {
  size_t done = 0;
  while (done < count) {
    DTG_ASSIGN(const size_t got, file_.read(static_cast<char*>(into) + done, count - done));
    if (got == 0) break;
    done += got;
  }
  offset_ += static_cast<int64_t>(done);
  return done;
}

Status RecordReader::damaged(const char* problem) const {
  return data_loss("read \"%s\": record %lld, near byte %lld, %s; the file is damaged or of another format", path_.c_str(),
                   static_cast<long long>(records_), static_cast<long long>(offset_), problem);
}

Result<bool> RecordReader::next(std::string& payload) {
  char head[kHead];
  payload.clear();
  DTG_ASSIGN(const size_t got, read(head, kHead));
  if (got == 0) return false;
  if (got < kHead) return damaged("is cut short");
  if (mask_crc(crc32c({head, 8})) != word_at<uint32_t>(head + 8)) return damaged("has a bad checksum of its length");
  const auto length = word_at<uint64_t>(head);
  if (length > record_bytes_max_) {
    return resource_exhausted("read \"%s\": record %lld has %llu bytes, at most %llu are accepted here", path_.c_str(),
                              static_cast<long long>(records_), static_cast<unsigned long long>(length),
                              static_cast<unsigned long long>(record_bytes_max_));
  }
  // Memory grows with what arrives, not with what is announced.
  while (payload.size() < length) {
    const size_t before = payload.size();
    payload.resize(std::min<size_t>(length, before * 2 + (size_t{1} << 16)));
    DTG_ASSIGN(const size_t more, read(payload.data() + before, payload.size() - before));
    if (more < payload.size() - before) return damaged("is cut short");
  }
  char crc[4];
  DTG_ASSIGN(const size_t tail, read(crc, sizeof crc));
  if (tail < sizeof crc) return damaged("is cut short");
  if (mask_crc(crc32c(payload)) != word_at<uint32_t>(crc)) return damaged("has a bad checksum");
  ++records_;
  return true;
}

}  // namespace dtg
