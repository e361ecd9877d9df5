// dtg/io.h: weight sets over checkpoint/, event writers over monitor/. One thread at a time uses either.
#include "dtg/io.h"

#include <algorithm>

#include "base/json.h"
#include "base/spelling.h"
#include "capi/guard.h"
#include "capi/objects.h"
#include "checkpoint/safetensors.h"
#include "monitor/event_file.h"

namespace dtg::capi {
namespace {

class WeightsObject final : public RefCounted {
 public:
  TensorFile file;
  Owner owner;
  NamedTensor* find(std::string_view name) {
    const auto at = std::ranges::find(file.tensors, name, &NamedTensor::name);
    return at == file.tensors.end() ? nullptr : &*at;
  }
};

class EventWriterObject final : public RefCounted {
 public:
  explicit EventWriterObject(std::unique_ptr<EventWriter> w) : writer(std::move(w)) {}
  const std::unique_ptr<EventWriter> writer;
  Owner owner;
};

template <class Fn>
dtg_error* with_weights(const dtg_weights* handle, Owner::Use use, Fn&& fn) {
  return guard([&]() -> Status {
    const Held<WeightsObject> held(handle, HandleType::weights);
    DTG_TRY(held.status());
    const Owner::Turn turn(held->owner, use);
    DTG_TRY(turn.status("weight set"));
    return fn(*held);
  });
}

template <class Fn>
dtg_error* with_writer(const dtg_event_writer* handle, Fn&& fn) {
  return guard([&]() -> Status {
    const Held<EventWriterObject> held(handle, HandleType::event_writer);
    DTG_TRY(held.status());
    const Owner::Turn turn(held->owner, Owner::Use::change);
    DTG_TRY(turn.status("event writer"));
    return fn(*held->writer);
  });
}

Status require_text(const char* data, size_t length, const char* what) {
  DTG_TRY(require(data, what));
  const std::string_view given = text(data, length);
  return given.empty() ? invalid_argument("%s is empty", what) : check_name(given, what);
}

// TensorBoard shows no file that holds bytes which are not UTF-8.
Status require_tag(const char* tag, size_t length) {
  DTG_TRY(require_text(tag, length, "tag"));
  return is_utf8(text(tag, length)) ? Status() : invalid_argument("tag: it is not UTF-8; TensorBoard could not show it");
}

Result<EventFileOptions> read_options(const dtg_event_writer_options* given) {
  dtg_event_writer_options c = DTG_EVENT_WRITER_OPTIONS_INIT;
  if (given) DTG_TRY(read_struct(given, sizeof(dtg_event_writer_options), "dtg_event_writer_options", &c));
  if (c.flush_every_ns < 0 || c.resumed_at_step < 0) {
    return invalid_argument("open an event writer: the time between flushes and the step it goes on from may not be negative");
  }
  EventFileOptions options;
  if (c.flush_every_ns) options.flush_every_ns = c.flush_every_ns;
  options.resumed_at_step = c.resumed_at_step;
  return options;
}

}  // namespace
}  // namespace dtg::capi

using namespace dtg;
using namespace dtg::capi;

extern "C" {

dtg_error* dtg_weights_create(dtg_weights** out) noexcept {
  return guard([&]() -> Status {
    DTG_TRY(require(out, "out"));
    return give(HandleType::weights, make_ref<WeightsObject>(), out);
  });
}

dtg_error* dtg_weights_load(dtg_runtime* runtime, const char* path, size_t path_len, dtg_weights** out) noexcept {
  return guard([&]() -> Status {
    DTG_TRY(require(out, "out"));
    DTG_ASSIGN(const std::string file, read_path(path, path_len));
    DTG_ASSIGN(const Ref<Runtime> held, runtime_of(runtime));
    const Seams& seams = held->seams();
    auto weights = make_ref<WeightsObject>();
    DTG_ASSIGN(weights->file, read_tensors(*seams.disk, file, {.budget = seams.budget}));
    return give(HandleType::weights, std::move(weights), out);
  });
}

dtg_error* dtg_weights_save(const dtg_weights* weights, const char* path, size_t path_len) noexcept {
  return with_weights(weights, Owner::Use::read, [&](WeightsObject& object) -> Status {
    DTG_ASSIGN(const std::string file, read_path(path, path_len));
    return write_tensors(system_disk(), file, object.file.tensors, object.file.metadata);
  });
}

dtg_error* dtg_weights_set(dtg_weights* weights, const char* name, size_t name_len, const dtg_tensor* tensor) noexcept {
  return with_weights(weights, Owner::Use::change, [&](WeightsObject& object) -> Status {
    DTG_TRY(require_text(name, name_len, "name"));
    const Held<TensorObject> held(tensor, HandleType::tensor);
    DTG_TRY(held.status());
    NamedTensor* const present = object.find(text(name, name_len));
    if (present) present->tensor = held->tensor;
    else object.file.tensors.push_back({std::string(text(name, name_len)), held->tensor});
    return {};
  });
}

dtg_error* dtg_weights_get(const dtg_weights* weights, const char* name, size_t name_len, dtg_tensor** out) noexcept {
  return with_weights(weights, Owner::Use::read, [&](WeightsObject& object) -> Status {
    DTG_TRY(require(out, "out"));
    DTG_TRY(require_text(name, name_len, "name"));
    const std::string wanted(text(name, name_len));
    const NamedTensor* const found = object.find(wanted);
    if (!found) {
      return not_found("the weight set has no tensor \"%s\": %s", wanted.c_str(),
                       names_text(wanted, object.file.tensors, &NamedTensor::name).c_str());
    }
    return give(HandleType::tensor, Ref<TensorObject>::adopt(TensorObject::make(found->tensor)), out);
  });
}

size_t dtg_weights_count(const dtg_weights* weights) noexcept {
  const Held<WeightsObject> held(weights, HandleType::weights);
  if (!held) return 0;
  const Owner::Turn turn(held->owner, Owner::Use::read);
  return turn.inside() ? held->file.tensors.size() : 0;
}

const char* dtg_weights_name(const dtg_weights* weights, size_t i) noexcept {
  const Held<WeightsObject> held(weights, HandleType::weights);
  if (!held) return nullptr;
  const Owner::Turn turn(held->owner, Owner::Use::read);
  return turn.inside() && i < held->file.tensors.size() ? held->file.tensors[i].name.c_str() : nullptr;
}

dtg_error* dtg_weights_set_metadata(dtg_weights* weights, const char* key, size_t key_len, const char* value, size_t value_len) noexcept {
  return with_weights(weights, Owner::Use::change, [&](WeightsObject& object) -> Status {
    DTG_TRY(require_text(key, key_len, "key"));
    DTG_TRY(read_name(value, value_len, "value").status());
    auto& pairs = object.file.metadata;
    const auto at = std::ranges::find(pairs, text(key, key_len), &TextPairs::value_type::first);
    if (at != pairs.end()) at->second = text(value, value_len);
    else pairs.emplace_back(text(key, key_len), text(value, value_len));
    return {};
  });
}

const char* dtg_weights_metadata(const dtg_weights* weights, const char* key, size_t key_len) noexcept {
  const Held<WeightsObject> held(weights, HandleType::weights);
  if (!held || !key) return nullptr;
  const Owner::Turn turn(held->owner, Owner::Use::read);
  if (!turn.inside()) return nullptr;
  const auto& pairs = held->file.metadata;
  const auto at = std::ranges::find(pairs, text(key, key_len), &TextPairs::value_type::first);
  return at == pairs.end() ? nullptr : at->second.c_str();
}

dtg_weights* dtg_weights_retain(dtg_weights* weights) noexcept { return retain_handle(weights, HandleType::weights); }
void dtg_weights_release(dtg_weights* weights) noexcept { release_handle(weights, HandleType::weights); }

dtg_error* dtg_event_writer_open(const char* directory, size_t directory_len, const dtg_event_writer_options* options,
                                 dtg_event_writer** out) noexcept {
  return guard([&]() -> Status {
    DTG_TRY(require(out, "out"));
    DTG_ASSIGN(const std::string folder, read_path(directory, directory_len));
    DTG_ASSIGN(const EventFileOptions settings, read_options(options));
    DTG_ASSIGN(auto writer, EventWriter::open(system_disk(), system_clock(), folder, settings));
    return give(HandleType::event_writer, make_ref<EventWriterObject>(std::move(writer)), out);
  });
}

dtg_error* dtg_event_writer_scalar(dtg_event_writer* writer, const char* tag, size_t tag_len, int64_t step, double value) noexcept {
  return with_writer(writer, [&](EventWriter& file) -> Status {
    DTG_TRY(require_tag(tag, tag_len));
    return file.scalar(text(tag, tag_len), step, value);
  });
}

dtg_error* dtg_event_writer_histogram(dtg_event_writer* writer, const char* tag, size_t tag_len, int64_t step,
                                      const dtg_tensor* tensor) noexcept {
  return with_writer(writer, [&](EventWriter& file) -> Status {
    DTG_TRY(require_tag(tag, tag_len));
    const Held<TensorObject> held(tensor, HandleType::tensor);
    DTG_TRY(held.status());
    if (held->tensor.dtype() != DType::f32)
      return invalid_argument("a histogram of %s; only float32 is supported", held->tensor.text().c_str());
    return file.histogram(text(tag, tag_len), step, held->tensor.values<float>());
  });
}

dtg_error* dtg_event_writer_text(dtg_event_writer* writer, const char* tag, size_t tag_len, int64_t step, const char* markdown,
                                 size_t markdown_len) noexcept {
  return with_writer(writer, [&](EventWriter& file) -> Status {
    DTG_TRY(require_tag(tag, tag_len));
    DTG_TRY(require(markdown, "markdown"));
    return file.text(text(tag, tag_len), step, text(markdown, markdown_len));
  });
}

dtg_error* dtg_event_writer_flush(dtg_event_writer* writer) noexcept {
  return with_writer(writer, [](EventWriter& file) { return file.flush(); });
}
dtg_error* dtg_event_writer_close(dtg_event_writer* writer) noexcept {
  return with_writer(writer, [](EventWriter& file) { return file.close(); });
}
dtg_event_writer* dtg_event_writer_retain(dtg_event_writer* writer) noexcept { return retain_handle(writer, HandleType::event_writer); }
void dtg_event_writer_release(dtg_event_writer* writer) noexcept { release_handle(writer, HandleType::event_writer); }

}  // extern "C"
