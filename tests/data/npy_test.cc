// NumPy's files: what real NumPy wrote is read to the bit, what no tensor can hold is refused by name, and no cut or changed file does
// more than answer with an error.
#include "data/npy.h"

#include <gtest/gtest.h>

#include <cmath>
#include <complex>
#include <fstream>
#include <iterator>
#include <map>

#include "data/zip.h"
#include "judge.h"
#include "scratch.h"

namespace dtg {
namespace {

std::string bytes_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

// One-dimensional int32 {1, 2, 3}, as NumPy writes it, with another dictionary if one is given.
std::string small(std::string dictionary = "{'descr': '<i4', 'fortran_order': False, 'shape': (3,), }", char version = 1) {
  while ((dictionary.size() + 11) % 64 != 0) dictionary += ' ';
  dictionary += '\n';
  std::string bytes =
      "\x93NUMPY" + std::string{version, '\0'} + static_cast<char>(dictionary.size() & 255) + static_cast<char>(dictionary.size() >> 8);
  if (version > 1) bytes += std::string(2, '\0');
  return bytes + dictionary + std::string("\1\0\0\0\2\0\0\0\3\0\0\0", 12);
}

class Text final : public FileReader {
 public:
  explicit Text(std::string text) : text_(std::move(text)) {}
  Result<size_t> read(void* into, size_t count) override {
    const size_t given = std::min({count, text_.size() - at_, size_t{5}});
    if (given != 0) std::memcpy(into, text_.data() + at_, given);
    at_ += given;
    return given;
  }

 private:
  const std::string text_;
  size_t at_ = 0;
};

Result<Tensor> read(const std::string& bytes) {
  Text file(bytes);
  return read_npy(file, "f.npy", 1 << 20);
}

template <class T>
void expect_numbers(const Tensor& tensor) {
  for (int64_t i = 0; i < tensor.count(); ++i) {
    const auto plain = static_cast<int>(i * 7 % 100);
    if constexpr (std::is_same_v<T, bool>) EXPECT_EQ(tensor.as<bool>()[i], plain % 2 == 1);
    else if constexpr (std::is_same_v<T, std::complex<float>> || std::is_same_v<T, std::complex<double>>) {
      typename T::value_type parts[2];
      std::memcpy(parts, tensor.as<char>() + i * int64_t{sizeof(T)}, sizeof parts);
      EXPECT_EQ(parts[0], static_cast<typename T::value_type>(plain));
      EXPECT_EQ(parts[1], 1);
    } else EXPECT_EQ(tensor.as<T>()[i], static_cast<T>(plain)) << i;
  }
}

void expect_right(const std::string& type, const Tensor& tensor) {
  if (type == "b1") return expect_numbers<bool>(tensor);
  if (type == "i1") return expect_numbers<int8_t>(tensor);
  if (type == "i2") return expect_numbers<int16_t>(tensor);
  if (type == "i4") return expect_numbers<int32_t>(tensor);
  if (type == "i8") return expect_numbers<int64_t>(tensor);
  if (type == "u1") return expect_numbers<uint8_t>(tensor);
  if (type == "u2") return expect_numbers<uint16_t>(tensor);
  if (type == "u4") return expect_numbers<uint32_t>(tensor);
  if (type == "u8") return expect_numbers<uint64_t>(tensor);
  if (type == "f4") return expect_numbers<float>(tensor);
  if (type == "f8") return expect_numbers<double>(tensor);
  if (type == "c8") return expect_numbers<std::complex<float>>(tensor);
  if (type == "c16") return expect_numbers<std::complex<double>>(tensor);
  ASSERT_EQ(type, "f2");
  for (int64_t i = 0; i < tensor.count(); ++i) {
    uint16_t bits;
    std::memcpy(&bits, tensor.as<char>() + 2 * i, 2);
    const double value = bits == 0 ? 0 : std::ldexp(1024 + (bits & 1023), (bits >> 10) - 25);
    EXPECT_EQ(value, static_cast<double>(i * 7 % 100));
  }
}

TEST(Npy, WhatNumPyWroteIsReadToTheBit) {
  const Scratch scratch;
  const Verdict verdict = judge("tests/data/write_npy.py", scratch.path());
  if (verdict == Verdict::absent) GTEST_SKIP() << "no Python with tests/requirements.txt; see tests/judge.h";
  ASSERT_EQ(verdict, Verdict::fine);
  const auto file = [&](const std::string& name) { return scratch.path() + "/" + name; };
  const std::vector<std::string> types = {"b1", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8", "c8", "c16"};
  const std::map<char, std::string> shapes = {{'v', "[5]"}, {'m', "[4,3]"}, {'t', "[2,3,4]"}, {'e', "[0,2]"}, {'s', "[]"}};
  for (const std::string& type : types) {
    for (const auto& [letter, shape] : shapes) {
      for (const char* order : {"C", "F"}) {
        SCOPED_TRACE(type + letter + order);
        auto tensor = read(bytes_of(file(type + "_" + letter + "_" + order + ".npy")));
        ASSERT_TRUE(tensor.ok()) << tensor.status().message();
        EXPECT_EQ(tensor.value().shape().text(), shape);
        expect_right(type, tensor.value());
      }
    }
  }
  for (const char* archive : {"stored.npz", "packed.npz"}) {
    auto all = parse_npz(bytes_of(file(archive)), archive, {});
    ASSERT_TRUE(all.ok()) << all.status().message();
    ASSERT_EQ(all.value().size(), types.size());
    for (size_t i = 0; i < types.size(); ++i) expect_right(types[i], all.value()[i]);
    const std::string two[] = {"f8", "u1"};
    auto data = make_npz(system_disk(), file(archive), two);
    ASSERT_TRUE(data.ok()) << data.status().message();
    EXPECT_EQ(data.value()->cardinality(), 2);
    EXPECT_EQ(data.value()->spec()[0].dtype, DType::f64);
    EXPECT_EQ(data.value()->spec()[1].shape.text(), "[3,4]");
    const std::string none[] = {"g"};
    EXPECT_EQ(make_npz(system_disk(), file(archive), none).status().code(), Code::not_found);
  }
  const std::pair<const char*, const char*> refused[] = {
      {"big", "big-endian"}, {"objects", "Python objects"}, {"text", "<U2"}, {"fields", "('a', '<i4')"}, {"dates", "astype('M8[D]')"}};
  for (const auto& [name, word] : refused) {
    const auto status = read(bytes_of(file(std::string(name) + ".npy"))).status();
    EXPECT_EQ(status.code(), Code::unimplemented);
    EXPECT_NE(status.message().find(word), std::string::npos) << status.message();
  }
  // Every byte of an archive changed in turn, and every cut: an error or the same numbers, for a comment or a date is nobody's.
  const std::string whole = bytes_of(file("packed.npz"));
  for (size_t at = 0; at < whole.size(); ++at) {
    std::string changed = whole;
    changed[at] = static_cast<char>(changed[at] ^ (1 << at % 8));
    auto all = parse_npz(changed, "f", std::span(types).first(1), 1 << 20);
    if (all.ok()) expect_right("b1", all.value()[0]);
    EXPECT_FALSE(parse_npz(std::string_view(whole).substr(0, at), "f", {}, 1 << 20).ok());
  }
}

TEST(Npy, HeadersOfAllVersionsAndWhatIsRefused) {
  for (const char version : {1, 2, 3})
    EXPECT_EQ(read(small("{'descr': '<i4', 'fortran_order': True, 'shape': (3L,)}", version)).value().text(), "int32[3]");
  EXPECT_EQ(read(small("{\"shape\":(3,),\"fortran_order\":False,\"descr\":\"<u4\"}")).value().dtype(), DType::u32);
  const std::string whole = small();
  for (size_t cut = 0; cut < whole.size(); ++cut) EXPECT_EQ(read(whole.substr(0, cut)).status().code(), Code::data_loss) << cut;
  EXPECT_EQ(read(whole + "x").status().code(), Code::data_loss);
  for (const char* dictionary :
       {"", "{", "{}", "{'descr': '<i4'}", "{'descr': '<i4', 'fortran_order': 1, 'shape': (3,)}",
        "{'descr': '<i4', 'fortran_order': False, 'shape': (-3,)}", "{'descr': '<i4', 'fortran_order': False, 'shape': (3,)} x",
        "{'descr': '<i4', 'fortran_order': False, 'shape': (99999999999999999999,)}",
        "{'descr': '<i4', 'fortran_order': False, 'shape': (3,), 'more': 1}"}) {
    EXPECT_EQ(read(small(dictionary)).status().code(), Code::data_loss) << dictionary;
  }
  EXPECT_EQ(read(small("{'descr': '<i4', 'fortran_order': False, 'shape': (999999999,)}")).status().code(), Code::resource_exhausted);
  EXPECT_EQ(read(small("{'descr': '<i4', 'fortran_order': False, 'shape': (4611686018427387904, 4)}")).status().code(), Code::data_loss);
  std::string four = small("{'descr': '<i4', 'fortran_order': False, 'shape': (4,)}");
  EXPECT_NE(read(four).status().message().find("4 of 16 bytes short"), std::string::npos) << read(four).status().message();
}

TEST(Npy, FilesAreComponents) {
  const Scratch scratch;
  const std::string one = scratch.write("one.npy", small());
  const std::string other = scratch.write("other.npy", small("{'descr': '|u1', 'fortran_order': False, 'shape': (3, 4)}"));
  const std::string none = scratch.write("none.npy", small("{'descr': '|u1', 'fortran_order': False, 'shape': (4, 3)}"));
  const std::string both[] = {one, other};
  auto data = make_npy(system_disk(), both).take();
  EXPECT_EQ(data->cardinality(), 3);
  Element element;
  ASSERT_TRUE(data->next(element).value());
  EXPECT_EQ(element[0].as<int32_t>()[0], 1);
  EXPECT_EQ(element[1].as<uint8_t>()[0], 1);
  const std::string unlike[] = {one, none};
  EXPECT_EQ(make_npy(system_disk(), unlike).status().code(), Code::invalid_argument);
}

}  // namespace
}  // namespace dtg
