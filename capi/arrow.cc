// dtg/arrow.h: data sets from Arrow streams. The stream is taken over first of all, so that every way out gives it back to its producer.
#include "data/arrow.h"

#include "capi/data.h"
#include "dtg/arrow.h"

namespace dtg::capi {
namespace {

Result<CsvOptions> read_options(const dtg_arrow_options* given) {
  dtg_arrow_options c = DTG_ARROW_OPTIONS_INIT;
  if (given) DTG_TRY(read_struct(given, sizeof(dtg_arrow_options), "dtg_arrow_options", &c));
  DTG_TRY(check_field("dtg_arrow_options: `missing`", c.missing, DTG_MISSING_MEAN));
  CsvOptions options;
  options.missing = missing_of(c.missing);
  options.label = text(c.label, c.label_len);
  DTG_ASSIGN(options.columns, read_columns(c.columns, c.num_columns));
  const std::string_view schema = text(c.schema, c.schema_len);
  if (!schema.empty()) DTG_TRY(read_csv_schema(schema, options));
  return options;
}

// Given back when the call ends, whatever it was.
struct Given {
  ArrowArrayStream* stream;
  ~Given() {
    if (!stream || !stream->release) return;
    stream->release(stream);
    stream->release = nullptr;
  }
};

}  // namespace
}  // namespace dtg::capi

using namespace dtg;
using namespace dtg::capi;

extern "C" {

dtg_error* dtg_dataset_arrow(dtg_runtime* runtime, ArrowArrayStream* stream, const dtg_arrow_options* options, dtg_dataset** out) noexcept {
  const Given given{stream};
  return make_source(runtime, out, [&](const Seams& seams, Found& found) -> Result<DatasetPtr> {
    DTG_TRY(require(stream, "stream"));
    DTG_ASSIGN(CsvOptions read, read_options(options));
    read.budget = seams.budget;
    read.log = seams.log;
    return make_arrow(*stream, read, &found.schema, &found.left_out);
  });
}

}  // extern "C"
