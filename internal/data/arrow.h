// A data set source: a stream of tables through the Arrow C data interface, by which the libraries of other languages hand tables over
// without a copy. Numbers keep their type; texts and dictionaries are names, numbered in sorted order, as in data/csv.h, whose rules say
// what stands for missing values. A column that comes in one piece, without missing values, stays where it lies.
//
// The stream is read to its end on the calling thread, and its tables are given back when the last column of them is gone. Structs and
// pointers are the producer's word; what can be checked is.
#pragma once

#include <cstdint>
#include <string>

#include "data/csv.h"

// The interface, which is the same for all who speak it; each says it for itself, whoever comes first.
// clang-format off
extern "C" {
#ifndef ARROW_C_DATA_INTERFACE
#define ARROW_C_DATA_INTERFACE
#define ARROW_FLAG_DICTIONARY_ORDERED 1
#define ARROW_FLAG_NULLABLE 2
#define ARROW_FLAG_MAP_KEYS_SORTED 4
struct ArrowSchema {
  const char *format, *name, *metadata;
  int64_t flags, n_children;
  struct ArrowSchema **children, *dictionary;
  void (*release)(struct ArrowSchema *);
  void *private_data;
};
struct ArrowArray {
  int64_t length, null_count, offset, n_buffers, n_children;
  const void **buffers;
  struct ArrowArray **children, *dictionary;
  void (*release)(struct ArrowArray *);
  void *private_data;
};
#endif
#ifndef ARROW_C_STREAM_INTERFACE
#define ARROW_C_STREAM_INTERFACE
struct ArrowArrayStream {
  int (*get_schema)(struct ArrowArrayStream *, struct ArrowSchema *out);
  int (*get_next)(struct ArrowArrayStream *, struct ArrowArray *out);
  const char *(*get_last_error)(struct ArrowArrayStream *);
  void (*release)(struct ArrowArrayStream *);
  void *private_data;
};
#endif
}
// clang-format on

namespace dtg {

// Takes the stream over, whether this succeeds or not. `schema` (may be null) receives what was found out; `left_out` (too) the rows that
// were dropped.
Result<DatasetPtr> make_arrow(ArrowArrayStream& stream, const CsvOptions& options, std::string* schema = nullptr,
                              LeftOut* left_out = nullptr);

}  // namespace dtg
