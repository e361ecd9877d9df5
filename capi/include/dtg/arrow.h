/* dtg/arrow.h: data sets from tables of Apache Arrow, through its C data interface: what pyarrow, DuckDB, Polars and the Arrow libraries of
 * Go, Rust, Java and C++ hand over, with no library between them and no copy of numbers. Parquet, Feather and data bases come this way: the
 * other library reads, and exports a stream of what it has read.
 *
 *   struct ArrowArrayStream stream;                          filled by the other library
 *   dtg_arrow_options how = DTG_ARROW_OPTIONS_INIT;
 *   how.label = "species";
 *   dtg_dataset_arrow(NULL, &stream, &how, &data);
 *
 * Columns of whole and floating-point numbers keep their type, bools too; fixed-size lists of them are components of that shape; texts and
 * dictionaries of texts are names: int64 numbers by sorted order, as in CSV files. A column that comes in one piece, without missing
 * values, aligned, stays in the memory of the other library, which gets it back when the data set has gone; what is put together of pieces,
 * or has missing values, is copied once, and counts towards the memory limit meanwhile. Not there, and UNIMPLEMENTED with the name of the
 * column: lists of different lengths, structs, unions, dates, times, decimals, binaries and views, which the other library can cast.
 */
#ifndef DTG_ARROW_H
#define DTG_ARROW_H

#include <dtg/data.h>

DTG_BEGIN_DECLS

/* The struct of the interface's specification: the other library's header defines it. */
typedef struct ArrowArrayStream ArrowArrayStream;

/* How a table is read. Read during the call only. */
/* clang-format off */
typedef struct dtg_arrow_options {
  size_t struct_size;
  const char *label;         /* name of the column to predict. Then elements are {all other columns as a float32 vector, lists one
                                number after the other, label}; NULL: one component per column */
  size_t label_len;
  const char *const *columns; /* those to read, in this order, each ending with NUL; NULL: all */
  size_t num_columns;
  int32_t missing;           /* a DTG_MISSING_ constant, for columns of which the schema says nothing else */
  int32_t reserved0;
  const char *schema;        /* what is known of the columns, as for CSV files; NULL: nothing */
  size_t schema_len;
} dtg_arrow_options;
#define DTG_ARROW_OPTIONS_INIT {sizeof(dtg_arrow_options), NULL, DTG_STRLEN, NULL, 0, 0, 0, NULL, DTG_STRLEN}
/* clang-format on */

/* The rows of a stream of tables, all of them, in their order. The stream is the library's from here on, also where the call fails: it is
 * read to its end, released, and `stream->release` is NULL then. Where whole numbers or bools are missing and kept (NaN), or a mean or a
 * constant stands for them, the column is float32; floating-point numbers keep their type. Missing names that are kept are -1. `options`
 * may be NULL. dtg_dataset_schema tells what was found, for other streams and for files. Errors: NOT_FOUND (no such column), DATA_LOSS (a
 * missing value, with column and row; an array that cannot be; the stream's own errors, with its message; no row is left),
 * INVALID_ARGUMENT (a stream that was released; a name that the schema does not have), UNIMPLEMENTED (a type that elements cannot be of),
 * RESOURCE_EXHAUSTED. Since 0.1. */
DTG_ERR dtg_dataset_arrow(dtg_runtime *runtime, ArrowArrayStream *stream, const dtg_arrow_options *options, dtg_dataset **out) DTG_NOEXCEPT;

DTG_END_DECLS

#endif /* DTG_ARROW_H */
