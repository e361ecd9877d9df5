// What a task writes down of its commits: graphs that repeat writes, and commits, each a graph's number and the values it was fed.
// Values; bytes come from a file that may hold anything.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cluster/ledger.h"
#include "graph/value.h"
#include "plan/passes.h"
#include "tensor/tensor.h"

namespace dtg {

// The writes of one phase of a part, as they are kept: IrCommit in bytes.
struct LoggedWrites {
  struct Fed {
    NodeId node = 0;
    uint32_t output = 0;
  };
  uint64_t key = 0;   // of the contents
  std::string graph;  // as the wire carries it
  std::vector<Fed> fed;
  std::vector<NodeId> writes;
};

struct CommitRecord {
  uint64_t number = 0;  // 1, 2, ... in the life of a task's state
  uint64_t writes = 0;  // LoggedWrites::key
  WriteId write;
  uint32_t phase = 0;
  int64_t round = 0;           // where the phase is a strand's row
  std::vector<Tensor> values;  // to be fed
};

// The head of a commit's record; the bytes of the values follow, each behind the text that describes() it.
std::string encode_commit_head(const CommitRecord& head, size_t values);
std::string describe_value(DType dtype, const Shape& shape);
std::string encode(const LoggedWrites& writes);

// That a commit which was begun has failed.
std::string encode_failure(uint64_t number);

enum class RecordKind : uint8_t { writes = 1, commit = 2, failure = 3 };
// DATA_LOSS for anything that was not written by the functions above.
Result<RecordKind> record_kind(std::string_view record);
Status decode(std::string_view record, LoggedWrites& writes);
Status decode(std::string_view record, CommitRecord& commit);
// Of a failure: which commit.
Status decode(std::string_view record, uint64_t& number);

}  // namespace dtg
