// Writing and walking protobuf messages; see proto.h. Every length is compared with what is left before
// it is used, and no value makes memory grow beyond the size of the input.
#include "base/proto.h"

#include <bit>
#include <cstring>

namespace dtg {
namespace {

constexpr uint32_t kFieldMax = (1u << 29) - 1;
constexpr size_t kMessageMax = size_t{1} << 31;

template <class Word>
Word load_word(const char* at) {
  Word word = 0;
  for (size_t i = 0; i < sizeof(Word); ++i) {
    word = static_cast<Word>(word | static_cast<Word>(static_cast<unsigned char>(at[i])) << (8 * i));
  }
  return word;
}

template <class Word>
void append_word(std::string& out, Word word) {
  char bytes[sizeof(Word)];
  for (size_t i = 0; i < sizeof(Word); ++i) bytes[i] = static_cast<char>(word >> (8 * i) & 0xffu);
  out.append(bytes, sizeof bytes);
}

// The varint at the front of `left`, which is shortened; false when it is cut short or too long.
bool take_varint(std::string_view& left, uint64_t& value) {
  value = 0;
  for (size_t i = 0; i < 10 && i < left.size(); ++i) {
    const auto byte = static_cast<unsigned char>(left[i]);
    if (i == 9 && byte > 1) return false;
    value |= static_cast<uint64_t>(byte & 0x7fu) << (7 * i);
    if ((byte & 0x80u) == 0) {
      left.remove_prefix(i + 1);
      return true;
    }
  }
  return false;
}

}  // namespace

void ProtoWriter::raw_varint(uint64_t value) {
  char bytes[10];
  size_t count = 0;
  while (value >= 0x80u) {
    bytes[count++] = static_cast<char>(value | 0x80u);
    value >>= 7;
  }
  bytes[count++] = static_cast<char>(value);
  out_.append(bytes, count);
}

void ProtoWriter::tag(uint32_t field, ProtoWire wire) { raw_varint(uint64_t{field} << 3 | static_cast<uint64_t>(wire)); }

void ProtoWriter::varint(uint32_t field, uint64_t value) {
  tag(field, ProtoWire::varint);
  raw_varint(value);
}

void ProtoWriter::fixed32(uint32_t field, uint32_t value) {
  tag(field, ProtoWire::fixed32);
  append_word(out_, value);
}

void ProtoWriter::fixed64(uint32_t field, uint64_t value) {
  tag(field, ProtoWire::fixed64);
  append_word(out_, value);
}

void ProtoWriter::real32(uint32_t field, float value) { fixed32(field, std::bit_cast<uint32_t>(value)); }
void ProtoWriter::real64(uint32_t field, double value) { fixed64(field, std::bit_cast<uint64_t>(value)); }

void ProtoWriter::bytes(uint32_t field, std::string_view value) {
  tag(field, ProtoWire::bytes);
  raw_varint(value.size());
  out_.append(value);
}

void ProtoWriter::packed(uint32_t field, std::span<const int64_t> values) {
  const size_t mark = open(field);
  for (const int64_t value : values) raw_varint(static_cast<uint64_t>(value));
  close(mark);
}

void ProtoWriter::packed(uint32_t field, std::span<const float> values) {
  tag(field, ProtoWire::bytes);
  raw_varint(values.size_bytes());
  for (const float value : values) append_word(out_, std::bit_cast<uint32_t>(value));
}

void ProtoWriter::packed(uint32_t field, std::span<const double> values) {
  tag(field, ProtoWire::bytes);
  raw_varint(values.size_bytes());
  for (const double value : values) append_word(out_, std::bit_cast<uint64_t>(value));
}

size_t ProtoWriter::open(uint32_t field) {
  tag(field, ProtoWire::bytes);
  return out_.size();
}

// The length goes in front of what has been written meanwhile: moving a few bytes is cheaper than
// measuring every message before writing it.
void ProtoWriter::close(size_t mark) {
  const size_t end = out_.size();
  raw_varint(end - mark);
  char length[10];
  const size_t count = out_.size() - end;
  std::memcpy(length, out_.data() + end, count);
  std::memmove(out_.data() + mark + count, out_.data() + mark, end - mark);
  std::memcpy(out_.data() + mark, length, count);
}

float ProtoField::real32() const { return std::bit_cast<float>(static_cast<uint32_t>(value)); }
double ProtoField::real64() const { return std::bit_cast<double>(value); }

ProtoReader::ProtoReader(std::string_view message, const char* what) : whole_(message), left_(message), what_(what) {}

Status ProtoReader::fail(const char* problem) {
  const size_t at = whole_.size() - left_.size();
  left_ = {};
  return data_loss("read %s of %zu bytes: %s at byte %zu; the file is damaged or of another format", what_, whole_.size(), problem, at);
}

bool ProtoReader::raw_varint(uint64_t& value) { return take_varint(left_, value); }

Result<bool> ProtoReader::next(ProtoField& field) {
  if (left_.empty()) return false;
  if (whole_.size() > kMessageMax) return fail("more than the 2 GiB a message may have");
  uint64_t tag = 0;
  if (!raw_varint(tag)) return fail("a field's tag is cut short or too long");
  const uint64_t number = tag >> 3;
  if (number == 0 || number > kFieldMax) return fail("a field number out of range");
  field.number = static_cast<uint32_t>(number);
  field.value = 0;
  field.bytes = {};
  switch (tag & 7u) {
    case 0:
      field.wire = ProtoWire::varint;
      if (!raw_varint(field.value)) return fail("an integer is cut short or too long");
      return true;
    case 1:
      field.wire = ProtoWire::fixed64;
      if (left_.size() < 8) return fail("a 64-bit value is cut short");
      field.value = load_word<uint64_t>(left_.data());
      left_.remove_prefix(8);
      return true;
    case 2: {
      field.wire = ProtoWire::bytes;
      uint64_t length = 0;
      if (!raw_varint(length)) return fail("a length is cut short or too long");
      if (length > left_.size()) return fail("a length beyond the end");
      field.bytes = left_.substr(0, static_cast<size_t>(length));
      left_.remove_prefix(static_cast<size_t>(length));
      return true;
    }
    case 5:
      field.wire = ProtoWire::fixed32;
      if (left_.size() < 4) return fail("a 32-bit value is cut short");
      field.value = load_word<uint32_t>(left_.data());
      left_.remove_prefix(4);
      return true;
    default:
      // Groups (3, 4) left the language in 2008 and none of the formats read here has them.
      return fail("a wire type that is not in use");
  }
}

Status proto_append_integers(const ProtoField& field, std::vector<int64_t>& values) {
  if (field.wire == ProtoWire::varint) {
    values.push_back(field.integer());
    return {};
  }
  if (field.wire != ProtoWire::bytes) return data_loss("read protobuf field %u: not an integer", field.number);
  std::string_view left = field.bytes;
  while (!left.empty()) {
    uint64_t value = 0;
    if (!take_varint(left, value)) return data_loss("read packed protobuf field %u: cut short", field.number);
    values.push_back(static_cast<int64_t>(value));
  }
  return {};
}

namespace {
template <class Word, class Real>
Status append_reals(const ProtoField& field, ProtoWire single, std::vector<Real>& values) {
  if (field.wire == single) {
    values.push_back(std::bit_cast<Real>(static_cast<Word>(field.value)));
    return {};
  }
  if (field.wire != ProtoWire::bytes || field.bytes.size() % sizeof(Word) != 0) {
    return data_loss("read packed protobuf field %u: not a list of %zu-byte reals", field.number, sizeof(Word));
  }
  values.reserve(values.size() + field.bytes.size() / sizeof(Word));
  for (size_t at = 0; at < field.bytes.size(); at += sizeof(Word)) {
    values.push_back(std::bit_cast<Real>(load_word<Word>(field.bytes.data() + at)));
  }
  return {};
}
}  // namespace

Status proto_append_reals(const ProtoField& field, std::vector<float>& values) {
  return append_reals<uint32_t>(field, ProtoWire::fixed32, values);
}

Status proto_append_reals(const ProtoField& field, std::vector<double>& values) {
  return append_reals<uint64_t>(field, ProtoWire::fixed64, values);
}

}  // namespace dtg
