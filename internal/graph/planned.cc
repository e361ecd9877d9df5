// The families by how the names of their ops begin, in small letters, so that nobody takes them for ops that there are.
#include "graph/planned.h"

#include <algorithm>
#include <string>

namespace dtg {
namespace {

struct Family {
  const char* beginnings;  // words between spaces; one that ends with '.' is the whole name
  const char* what;
};

constexpr Family kFamilies[] = {
    {"symbolicgradient. remotecall. for. mapdefun. statefulfor.",
     "functions of TensorFlow's that are said otherwise here: While and PartitionedCall, placed on the device or task that is meant; gradients are added to the graph"},
    {"switch. merge. enter. exit. nextiteration. loopcond. refswitch. refmerge. refenter. refexit.",
     "the control flow of TensorFlow's first graphs, which imports will turn into today's"},
    {"tensorlistpushbackbatch.", "tensors whose elements are lists; a list is a value of its own here, which TensorListPushBack adds to"},
    {"tensorlist tensorarray tensormap",
     "lists, arrays and maps of tensors; those of today are the ops TensorList... and TensorArray...V3"},
    {"string unicode unsortedsegmentjoin.", "more of text, which is planned"},
    {"lookuptable hashtable mutablehashtable mutabledensehashtable anonymoushashtable initializetable",
     "tables of keys, which are planned"},
    {"sparsetensor sparsereshape. sparseadd sparseconcat. sparsereduce sparseslice. sparsesplit. sparsefill ragged deserializesparse serializesparse",
     "sparse and ragged tensors as values, which are planned"},
    {"fft ifft rfft irfft", "Fourier transforms, which are planned"},
    {"cholesky qr. svd. selfadjointeig eig. lu. matrixinverse. matrixsolve matrixdeterminant. matrixtriangularsolve. logmatrixdeterminant. einsum.",
     "linear algebra, which is planned"},
    {"collective ncclallreduce. nccl", "collectives, which come with all-reduce"},
    {"resizebilinear resizenearest resizebicubic cropandresize decodejpeg decodepng decodeimage nonmaxsuppression adjustcontrast adjusthue",
     "images, which are planned"},
    {"quantized requantiz uniformquantize uniformdequantize uniformrequantize",
     "arithmetic on numbers of 8 bits and fewer, which is planned; QuantizeV2 and Dequantize lead there and back"},
    {"conv3d maxpool3d avgpool3d dilation2d fractional", "further convolutions and pools, which are planned"},
    {"cudnn blocklstm lstmblock gru", "recurrent layers in one op; build them of products and activations until then"},
    {"iterator tensordataset. tensorslicedataset. batchdataset mapdataset. makeiterator. oneshotiterator. rangedataset. shuffledataset",
     "data sets, which are no ops here; use dtg/data.h"},
    {"save. savev2. saveslices. restore. restorev2. mergev2checkpoints. readfile. writefile. matchingfiles.",
     "files, which no graph reaches here; use dtg_model_save and dtg_model_restore"},
    {"pyfunc eagerpyfunc.", "Python inside of graphs, which will never be here"},
};

bool begins(std::string_view name, std::string_view word) {
  if (!word.ends_with('.')) return name.starts_with(word);
  word.remove_suffix(1);
  return name == word;
}

// What an op of that name belongs to; null where nothing is known.
const char* family_of(std::string_view op) {
  std::string name(op.substr(0, 64));
  std::ranges::transform(name, name.begin(), [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; });
  for (const Family& family : kFamilies) {
    std::string_view words = family.beginnings;
    while (!words.empty()) {
      const size_t end = std::min(words.find(' '), words.size());
      if (begins(name, words.substr(0, end))) return family.what;
      words.remove_prefix(std::min(end + 1, words.size()));
    }
  }
  return nullptr;
}

}  // namespace

Status no_such_op(std::string_view op, std::string_view nearest) {
  if (const char* const family = family_of(op)) {
    return unimplemented("no op \"%.*s\" yet: it is one of %s; `dtg ops` lists what there is", int(op.size()), op.data(), family);
  }
  const std::string hint = nearest.empty() ? "`dtg ops` lists what there is" : "did you mean \"" + std::string(nearest) + "\"?";
  return not_found("no op \"%.*s\": %s", int(op.size()), op.data(), hint.c_str());
}

}  // namespace dtg
