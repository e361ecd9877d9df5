// Writes event files: protobuf messages in TensorFlow's record framing. See event_file.h for who may call.
#include "monitor/event_file.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <vector>

#include "base/record.h"
#include "monitor/png.h"

namespace dtg {
namespace {

constexpr size_t kBufferBytes = size_t{64} << 10;
constexpr size_t kBuckets = 30;

// Field numbers of tensorflow.Event, Summary, Summary.Value, SummaryMetadata, TensorProto, SessionLog.
constexpr uint32_t kEventWallTime = 1, kEventStep = 2, kEventFileVersion = 3, kEventGraphDef = 4, kEventSummary = 5;
constexpr uint32_t kEventSessionLog = 7, kEventSource = 10, kSourceWriter = 1;
constexpr uint32_t kSummaryValue = 1, kValueTag = 1, kValueSimple = 2, kValueTensor = 8, kValueMetadata = 9;
constexpr uint32_t kMetadataPlugin = 1, kMetadataDataClass = 4, kPluginName = 1, kPluginContent = 2;
constexpr uint32_t kTensorDtype = 1, kTensorShape = 2, kTensorContent = 4, kTensorString = 8, kShapeDim = 2, kDimSize = 1;
// HParamsPluginData, SessionStartInfo, SessionEndInfo, google.protobuf.Value.
constexpr uint32_t kHparamsStart = 3, kHparamsEnd = 4, kStartHparams = 1, kStartTime = 5, kEndStatus = 1, kEndTime = 2;
constexpr uint32_t kMapKey = 1, kMapValue = 2, kValueNumber = 2, kValueText = 3, kValueBool = 4;
constexpr uint32_t kLogStatus = 1, kLogStart = 1;
constexpr uint64_t kFloats = 1, kDoubles = 2, kStrings = 7;  // DT_FLOAT, DT_DOUBLE, DT_STRING
constexpr int kClassTensor = 2, kClassBlobs = 3;

void append_u32(std::string& out, uint32_t value) {
  for (int shift = 0; shift < 32; shift += 8) out += static_cast<char>(value >> shift & 0xffu);
}

// Part of a file's name, so only what is harmless there.
std::string host_name() {
  char name[256] = "";
  if (gethostname(name, sizeof name - 1) != 0 || name[0] == '\0') return "localhost";
  std::string host = name;
  for (char& c : host) {
    if (c == '/' || static_cast<unsigned char>(c) <= ' ') c = '_';
  }
  return host;
}

struct Bucket {
  double left, right, count;
};

std::vector<Bucket> make_buckets(std::span<const float> values) {
  double low = INFINITY, high = -INFINITY, count = 0;
  for (const float value : values) {
    if (!std::isfinite(value)) continue;
    low = std::min(low, double{value});
    high = std::max(high, double{value});
    ++count;
  }
  if (count == 0) return {};
  if (low == high) return {{low - 0.5, high + 0.5, count}};
  std::vector<Bucket> buckets(kBuckets);
  const double width = (high - low) / kBuckets;
  for (size_t i = 0; i < kBuckets; ++i) {
    buckets[i] = {low + width * static_cast<double>(i), low + width * static_cast<double>(i + 1), 0};
  }
  buckets.back().right = high;
  for (const float value : values) {
    if (!std::isfinite(value)) continue;
    const auto i = static_cast<size_t>((double{value} - low) / width);
    buckets[std::min(i, kBuckets - 1)].count += 1;
  }
  return buckets;
}

void append_shape(ProtoWriter& out, std::initializer_list<int64_t> dims) {
  const size_t shape = out.open(kTensorShape);
  for (const int64_t size : dims) {
    const size_t dim = out.open(kShapeDim);
    out.integer(kDimSize, size);
    out.close(dim);
  }
  out.close(shape);
}

}  // namespace

Result<std::unique_ptr<EventWriter>> EventWriter::open(Disk& disk, const Clock& clock, const std::string& directory,
                                                       const EventFileOptions& options) {
  DTG_TRY(disk.make_directories(directory).with_context("open an event file"));
  DTG_ASSIGN(const auto names, disk.list(directory));
  const bool fresh =
      std::none_of(names.begin(), names.end(), [](const std::string& name) { return name.find("tfevents") != std::string::npos; });
  const std::string host = options.host.empty() ? host_name() : options.host;
  const auto process = static_cast<long long>(options.process_id ? options.process_id : getpid());
  const double now = clock.wall_seconds();
  // Ten digits and a counter: the files of a run are read in the order of their names.
  const std::string stem =
      format("%s/events.out.tfevents.%010lld.%s.%lld.", directory.c_str(), static_cast<long long>(now), host.c_str(), process);
  std::string path;
  std::unique_ptr<FileWriter> file;
  for (int unique = 0; !file; ++unique) {
    path = stem + std::to_string(unique);
    auto mine = disk.open_new(path);
    if (mine.ok()) file = mine.take();
    else if (mine.status().code() != Code::already_exists) return mine.status();
  }
  std::unique_ptr<EventWriter> writer(new EventWriter(clock, std::move(path), std::move(file), options.flush_every_ns));

  ProtoWriter first;
  first.real64(kEventWallTime, now);
  first.bytes(kEventFileVersion, "brain.Event:2");
  const size_t source = first.open(kEventSource);
  first.bytes(kSourceWriter, "dtg");
  first.close(source);
  DTG_TRY(writer->add(first));
  // Readers take a directory's first session start for the beginning and each later one for a restart
  // that drops what it overtakes. So a new directory always gets one, and one more file without a step
  // to resume at gets none.
  if (fresh || options.resumed_at_step > 0) DTG_TRY(writer->session_start(options.resumed_at_step));
  DTG_TRY(writer->flush());
  return writer;
}

EventWriter::EventWriter(const Clock& clock, std::string path, std::unique_ptr<FileWriter> file, int64_t flush_every_ns)
    : clock_(clock),
      path_(std::move(path)),
      file_(std::move(file)),
      flush_every_ns_(flush_every_ns),
      flushed_at_ns_(clock.monotonic_ns()) {}

EventWriter::~EventWriter() {
  // Nobody is left to tell; close() is for those who want to know.
  const Status lost = close();
  static_cast<void>(lost);
}

ProtoWriter EventWriter::event(int64_t step) const {
  ProtoWriter event;
  event.real64(kEventWallTime, clock_.wall_seconds());
  event.integer(kEventStep, step);
  return event;
}

void EventWriter::open_value(ProtoWriter& event, size_t marks[2], std::string_view tag, std::string_view plugin, int data_class) {
  marks[0] = event.open(kEventSummary);
  marks[1] = event.open(kSummaryValue);
  event.bytes(kValueTag, tag);
  // Old-style scalars need no metadata; readers know them by their field.
  if (plugin.empty() || !tags_.emplace(tag).second) return;
  const size_t metadata = event.open(kValueMetadata);
  const size_t data = event.open(kMetadataPlugin);
  event.bytes(kPluginName, plugin);
  event.close(data);
  event.integer(kMetadataDataClass, data_class);
  event.close(metadata);
}

Status EventWriter::scalar(std::string_view tag, int64_t step, double value) {
  ProtoWriter record = event(step);
  size_t marks[2];
  open_value(record, marks, tag, "", 0);
  record.real32(kValueSimple, static_cast<float>(value));
  record.close(marks[1]);
  record.close(marks[0]);
  return add(record);
}

Status EventWriter::histogram(std::string_view tag, int64_t step, std::span<const float> values) {
  const std::vector<Bucket> buckets = make_buckets(values);
  ProtoWriter record = event(step);
  size_t marks[2];
  open_value(record, marks, tag, "histograms", kClassTensor);
  const size_t tensor = record.open(kValueTensor);
  record.varint(kTensorDtype, kDoubles);
  append_shape(record, {static_cast<int64_t>(buckets.size()), 3});
  std::string content;
  for (const Bucket& bucket : buckets) {
    for (const double number : {bucket.left, bucket.right, bucket.count}) {
      const auto bits = std::bit_cast<uint64_t>(number);
      append_u32(content, static_cast<uint32_t>(bits));
      append_u32(content, static_cast<uint32_t>(bits >> 32));
    }
  }
  record.bytes(kTensorContent, content);
  record.close(tensor);
  record.close(marks[1]);
  record.close(marks[0]);
  return add(record);
}

Status EventWriter::text(std::string_view tag, int64_t step, std::string_view markdown) {
  ProtoWriter record = event(step);
  size_t marks[2];
  open_value(record, marks, tag, "text", kClassTensor);
  const size_t tensor = record.open(kValueTensor);
  record.varint(kTensorDtype, kStrings);
  append_shape(record, {1});
  record.bytes(kTensorString, markdown);
  record.close(tensor);
  record.close(marks[1]);
  record.close(marks[0]);
  return add(record);
}

Status EventWriter::image(std::string_view tag, int64_t step, int64_t height, int64_t width, int64_t channels,
                          std::span<const uint8_t> pixels) {
  DTG_ASSIGN(const std::string png, encode_png(height, width, channels, pixels));
  ProtoWriter record = event(step);
  size_t marks[2];
  open_value(record, marks, tag, "images", kClassBlobs);
  const size_t tensor = record.open(kValueTensor);
  record.varint(kTensorDtype, kStrings);
  append_shape(record, {3});
  record.bytes(kTensorString, std::to_string(width));
  record.bytes(kTensorString, std::to_string(height));
  record.bytes(kTensorString, png);
  record.close(tensor);
  record.close(marks[1]);
  record.close(marks[0]);
  return add(record);
}

Status EventWriter::graph_def(std::string_view bytes) {
  ProtoWriter record = event(0);
  record.bytes(kEventGraphDef, bytes);
  return add(record);
}

Status EventWriter::session_start(int64_t step) {
  ProtoWriter record = event(step);
  const size_t log = record.open(kEventSessionLog);
  record.varint(kLogStatus, kLogStart);
  record.close(log);
  return add(record);
}

Status EventWriter::hyperparameters(std::span<const Hyperparameter> settings) {
  ProtoWriter content;
  const size_t start = content.open(kHparamsStart);
  for (const Hyperparameter& setting : settings) {
    const size_t entry = content.open(kStartHparams);
    content.bytes(kMapKey, setting.name);
    const size_t value = content.open(kMapValue);
    if (const bool* const flag = std::get_if<bool>(&setting.value)) content.varint(kValueBool, *flag ? 1 : 0);
    if (const double* const number = std::get_if<double>(&setting.value)) content.real64(kValueNumber, *number);
    if (const std::string* const words = std::get_if<std::string>(&setting.value)) {
      content.bytes(kValueText, *words);
    }
    content.close(value);
    content.close(entry);
  }
  content.real64(kStartTime, clock_.wall_seconds());
  content.close(start);
  return hparams("_hparams_/session_start_info", content);
}

Status EventWriter::finished(bool success) {
  ProtoWriter content;
  const size_t end = content.open(kHparamsEnd);
  content.varint(kEndStatus, success ? 1 : 2);
  content.real64(kEndTime, clock_.wall_seconds());
  content.close(end);
  return hparams("_hparams_/session_end_info", content);
}

Status EventWriter::hparams(std::string_view tag, const ProtoWriter& content) {
  ProtoWriter record = event(0);
  const size_t summary = record.open(kEventSummary);
  const size_t value = record.open(kSummaryValue);
  record.bytes(kValueTag, tag);
  const size_t metadata = record.open(kValueMetadata);
  const size_t data = record.open(kMetadataPlugin);
  record.bytes(kPluginName, "hparams");
  record.bytes(kPluginContent, content.text());
  record.close(data);
  record.integer(kMetadataDataClass, kClassTensor);
  record.close(metadata);
  const size_t tensor = record.open(kValueTensor);
  record.varint(kTensorDtype, kFloats);
  append_shape(record, {0});
  record.close(tensor);
  record.close(value);
  record.close(summary);
  return add(record);
}

Status EventWriter::add(const ProtoWriter& event) {
  DTG_TRY(failure_);
  if (!file_) return failed_precondition("add a record to \"%s\": the file is closed", path_.c_str());
  append_record(buffer_, event.text());
  const int64_t now = clock_.monotonic_ns();
  if (buffer_.size() < kBufferBytes && now - flushed_at_ns_ < flush_every_ns_) return {};
  return flush();
}

Status EventWriter::flush() {
  DTG_TRY(failure_);
  flushed_at_ns_ = clock_.monotonic_ns();
  if (buffer_.empty() || !file_) return {};
  failure_ = file_->append(buffer_);
  buffer_.clear();
  return failure_;
}

Status EventWriter::close() {
  if (!file_) return failure_;
  Status status = flush();
  const Status closed = file_->close();
  file_.reset();
  return status.ok() ? closed : status;
}

}  // namespace dtg
