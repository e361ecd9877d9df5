// Little-endian words one after the other.
#include "cluster/commit_record.h"

#include <cstring>

namespace dtg {
namespace {

template <class Word>
void put(std::string& out, Word word) {
  for (size_t i = 0; i < sizeof(Word); ++i) out += static_cast<char>(word >> (8 * i) & 0xffu);
}

class Words {
 public:
  explicit Words(std::string_view bytes) : bytes_(bytes) {}
  template <class Word>
  Word take() {
    Word word = 0;
    if (bytes_.size() < sizeof(Word)) {
      ok_ = false;
      return word;
    }
    for (size_t i = sizeof(Word); i-- > 0;) word = static_cast<Word>(word << 8 | static_cast<unsigned char>(bytes_[i]));
    bytes_.remove_prefix(sizeof(Word));
    return word;
  }
  std::string_view bytes(uint64_t count) {
    if (bytes_.size() < count) {
      ok_ = false;
      return {};
    }
    const std::string_view taken = bytes_.substr(0, static_cast<size_t>(count));
    bytes_.remove_prefix(static_cast<size_t>(count));
    return taken;
  }
  // A count of things that take at least so many bytes each.
  uint32_t count(size_t least) {
    const auto number = take<uint32_t>();
    if (number > bytes_.size() / least) ok_ = false;
    return ok_ ? number : 0;
  }
  bool ok() const { return ok_; }
  bool at_end() const { return ok_ && bytes_.empty(); }

 private:
  std::string_view bytes_;
  bool ok_ = true;
};

Status damaged() { return data_loss("a record of the log is not one that this release writes"); }

Result<Tensor> take_tensor(Words& words) {
  const auto dtype = static_cast<DType>(words.take<uint8_t>());
  const uint8_t rank = words.take<uint8_t>();
  if (!words.ok() || rank > kRankMax || dtype_size(dtype) == 0) return damaged();
  std::vector<int64_t> dims;
  for (uint8_t i = 0; i < rank; ++i) dims.push_back(static_cast<int64_t>(words.take<uint64_t>()));
  const auto size = words.take<uint64_t>();
  const std::string_view bytes = words.bytes(size);
  if (!words.ok()) return damaged();
  auto shape = Shape::make(dims);
  if (!shape.ok() || static_cast<uint64_t>(shape.value().count()) > size) return damaged();
  if (static_cast<uint64_t>(shape.value().count() * dtype_size(dtype)) != size) return damaged();
  DTG_ASSIGN(Tensor tensor, Tensor::allocate(dtype, shape.value()));
  if (size > 0) std::memcpy(tensor.data(), bytes.data(), static_cast<size_t>(size));
  return tensor;
}

}  // namespace

std::string encode_commit_head(const CommitRecord& head, size_t values) {
  std::string out;
  put(out, static_cast<uint8_t>(RecordKind::commit));
  put(out, head.number);
  put(out, head.writes);
  put(out, head.write.writer);
  put(out, head.write.sequence);
  put(out, head.phase);
  if (Ledger::is_strand(head.phase)) put(out, static_cast<uint64_t>(head.round));
  put(out, static_cast<uint32_t>(values));
  return out;
}

std::string describe_value(DType dtype, const Shape& shape) {
  std::string out;
  put(out, static_cast<uint8_t>(dtype));
  put(out, static_cast<uint8_t>(shape.rank()));
  for (const int64_t dim : shape.dims()) put(out, static_cast<uint64_t>(dim));
  put(out, static_cast<uint64_t>(shape.count() * dtype_size(dtype)));
  return out;
}

std::string encode(const LoggedWrites& writes) {
  std::string out;
  put(out, static_cast<uint8_t>(RecordKind::writes));
  put(out, writes.key);
  put(out, static_cast<uint32_t>(writes.fed.size()));
  for (const LoggedWrites::Fed& fed : writes.fed) {
    put(out, fed.node);
    put(out, fed.output);
  }
  put(out, static_cast<uint32_t>(writes.writes.size()));
  for (const NodeId write : writes.writes) put(out, write);
  return out + writes.graph;
}

std::string encode_failure(uint64_t number) {
  std::string out;
  put(out, static_cast<uint8_t>(RecordKind::failure));
  put(out, number);
  return out;
}

Result<RecordKind> record_kind(std::string_view record) {
  const auto kind = record.empty() ? RecordKind{} : static_cast<RecordKind>(record[0]);
  if (kind == RecordKind::writes || kind == RecordKind::commit || kind == RecordKind::failure) return kind;
  return damaged();
}

Status decode(std::string_view record, LoggedWrites& writes) {
  Words words(record);
  if (words.take<uint8_t>() != static_cast<uint8_t>(RecordKind::writes)) return damaged();
  writes.key = words.take<uint64_t>();
  for (uint32_t left = words.count(8); left > 0; --left) {
    const auto node = words.take<NodeId>();
    writes.fed.push_back({node, words.take<uint32_t>()});
  }
  for (uint32_t left = words.count(4); left > 0; --left) writes.writes.push_back(words.take<NodeId>());
  if (!words.ok()) return damaged();
  writes.graph = record.substr(1 + 8 + 4 + writes.fed.size() * 8 + 4 + writes.writes.size() * 4);
  return {};
}

Status decode(std::string_view record, uint64_t& number) {
  Words words(record);
  if (words.take<uint8_t>() != static_cast<uint8_t>(RecordKind::failure)) return damaged();
  number = words.take<uint64_t>();
  return words.at_end() ? Status() : damaged();
}

Status decode(std::string_view record, CommitRecord& commit) {
  Words words(record);
  if (words.take<uint8_t>() != static_cast<uint8_t>(RecordKind::commit)) return damaged();
  commit.number = words.take<uint64_t>();
  commit.writes = words.take<uint64_t>();
  commit.write.writer = words.take<uint64_t>();
  commit.write.sequence = words.take<uint64_t>();
  commit.phase = words.take<uint32_t>();
  if (Ledger::is_strand(commit.phase)) commit.round = static_cast<int64_t>(words.take<uint64_t>());
  if (commit.round < 0) return damaged();
  for (uint32_t left = words.count(10); left > 0; --left) {
    DTG_ASSIGN(Tensor tensor, take_tensor(words));
    commit.values.push_back(std::move(tensor));
  }
  return words.at_end() ? Status() : damaged();
}

}  // namespace dtg
