// EventWriter: the event files that TensorBoard reads: scalars, histograms, texts, images and the graph of
// one run directory. One writer per file and one directory per role, because TensorBoard takes a directory
// for a run. Records wait in a buffer that is written when it is full, every few seconds and at flush().
//
// Owner: whoever trains; not thread-safe. After a failed write the file may end in a torn record, so
// every later call returns that first failure and writes nothing more.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <unordered_set>
#include <variant>

#include "base/clock.h"
#include "base/disk.h"
#include "base/proto.h"

namespace dtg {

// A setting of a run, for TensorBoard's table of hyperparameters.
struct Hyperparameter {
  std::string name;
  std::variant<bool, double, std::string> value;
};

struct EventFileOptions {
  std::string host;                                     // empty: this machine's name
  int64_t process_id = 0;                               // 0: this process
  int64_t flush_every_ns = int64_t{2} * 1'000'000'000;  // 0: every record at once
  // A run that continues from a checkpoint names its step: readers then drop what earlier files of the
  // directory say about this step and later ones.
  int64_t resumed_at_step = 0;
};

class EventWriter {
 public:
  // Makes the directory if need be and a new file in it that starts with the format's first record.
  static Result<std::unique_ptr<EventWriter>> open(Disk& disk, const Clock& clock, const std::string& directory,
                                                   const EventFileOptions& options = {});
  ~EventWriter();  // writes what is buffered; close() says whether that worked
  EventWriter(const EventWriter&) = delete;
  EventWriter& operator=(const EventWriter&) = delete;

  Status scalar(std::string_view tag, int64_t step, double value);
  // The distribution of the finite values in 30 equal buckets.
  Status histogram(std::string_view tag, int64_t step, std::span<const float> values);
  Status text(std::string_view tag, int64_t step, std::string_view markdown);
  // Rows of 8-bit pixels with 1 (grey), 3 (RGB) or 4 (RGBA) channels.
  Status image(std::string_view tag, int64_t step, int64_t height, int64_t width, int64_t channels, std::span<const uint8_t> pixels);
  // A serialized GraphDef.
  Status graph_def(std::string_view bytes);

  // The run's settings, once, at its beginning, and how it ended. Runs with settings are compared in one
  // table together with the last values of their scalars.
  Status hyperparameters(std::span<const Hyperparameter> settings);
  Status finished(bool success);

  Status flush();
  Status close();
  const std::string& path() const { return path_; }

 private:
  EventWriter(const Clock& clock, std::string path, std::unique_ptr<FileWriter> file, int64_t flush_every_ns);
  ProtoWriter event(int64_t step) const;
  // A Summary.Value in `event`, with the metadata that the first value of a tag needs; end with two close().
  void open_value(ProtoWriter& event, size_t marks[2], std::string_view tag, std::string_view plugin, int data_class);
  Status session_start(int64_t step);
  // A record of the hparams plugin, whose whole content is in the metadata.
  Status hparams(std::string_view tag, const ProtoWriter& content);
  Status add(const ProtoWriter& event);

  const Clock& clock_;
  const std::string path_;
  std::unique_ptr<FileWriter> file_;
  const int64_t flush_every_ns_;
  int64_t flushed_at_ns_ = 0;
  std::string buffer_;
  std::unordered_set<std::string> tags_;  // whose metadata is written
  Status failure_;
};

}  // namespace dtg
