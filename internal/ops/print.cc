// Print, PrintV2 and StringFormat: tensors as text, in the words of TensorFlow. What is printed goes to the log of the task's runtime,
// never to stdout. Registered once by the runtime; kernels run on any thread.
#include <algorithm>
#include <atomic>
#include <charconv>
#include <cmath>
#include <cstdlib>

#include "base/log.h"
#include "device/cpu/copy.h"
#include "exec/task_log.h"
#include "graph/gradient.h"
#include "ops/all.h"
#include "ops/integers.h"
#include "ops/texts.h"

namespace dtg::ops {
namespace {

constexpr int64_t kTextMost = 1 << 20;  // bytes of one line

struct Shown {
  DType dtype = DType::invalid;
  Shape shape;
};

// "\n" for a new line, and so on for what would disturb a terminal; UTF-8 stays.
std::string escaped(std::string_view text) {
  static constexpr char kNames[] = "nrt\"'\\", kMeant[] = "\n\r\t\"'\\";
  std::string made;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    const size_t at = std::string_view(kMeant).find(c);
    if (at != std::string_view::npos) made += {'\\', kNames[at]};
    else if (byte < 0x20 || byte == 0x7f)
      made += {'\\', static_cast<char>('0' + byte / 64), static_cast<char>('0' + byte / 8 % 8), static_cast<char>('0' + byte % 8)};
    else made += c;
  }
  return made;
}

// In few digits where those say it all, else in as many as it takes.
std::string number(double value) {
  const std::string few = format("%.15g", value);
  return std::strtod(few.c_str(), nullptr) == value || std::isnan(value) ? few : format("%.17g", value);
}
std::string number(float value) {
  const std::string few = format("%.6g", static_cast<double>(value));
  return std::strtof(few.c_str(), nullptr) == value || std::isnan(value) ? few : format("%.9g", static_cast<double>(value));
}

std::string element(const void* data, DType dtype, int64_t i, bool quoted) {
  switch (dtype) {
    case DType::f32: return number(static_cast<const float*>(data)[i]);
    case DType::f64: return number(static_cast<const double*>(data)[i]);
    case DType::f16: return number(float(static_cast<const Half*>(data)[i]));
    case DType::bf16: return number(float(static_cast<const BFloat16*>(data)[i]));
    case DType::boolean: return static_cast<const bool*>(data)[i] ? "1" : "0";
    case DType::string: {
      const std::string text = escaped(static_cast<const Text*>(data)[i].view());
      return quoted ? "\"" + text + "\"" : text;
    }
    default: break;
  }
  return dtype_is_integer(dtype) ? std::to_string(integer_at(data, dtype, i)) : std::string("?");
}

// The first and last `ends` of each dimension, one row on a line; all where `ends` is below 0.
class Nested {
 public:
  Nested(const Shown& shown, const void* data, int64_t ends) : shown_(shown), data_(data), ends_(ends < 0 ? INT64_MAX / 4 : ends) {}

  std::string text() {
    dimension(0, 0);
    return std::move(text_);
  }

 private:
  void dimension(int d, int64_t at) {
    if (static_cast<int64_t>(text_.size()) > kTextMost) return;
    const int rank = shown_.shape.rank();
    if (d == rank) {
      text_ += element(data_, shown_.dtype, at, true);
      return;
    }
    const int64_t count = shown_.shape.dim(d), each = shown_.shape.count(d + 1, rank);
    text_ += '[';
    for (int64_t i = 0; i < count; ++i) {
      if (i == ends_ && count > 2 * ends_) {
        space(d, rank);
        text_ += "...";
        i = count - ends_;
        if (i >= count) break;
      }
      if (i > 0) space(d, rank);
      dimension(d + 1, at + i * each);
    }
    text_ += ']';
  }
  void space(int d, int rank) {
    if (d == rank - 1) {
      text_ += ' ';
      return;
    }
    text_.append(static_cast<size_t>(rank - d - 1), '\n');
    text_.append(static_cast<size_t>(d + 1), ' ');
  }

  const Shown& shown_;
  const void* const data_;
  const int64_t ends_;
  std::string text_;
};

// The first `limit` elements, in brackets by dimension, as the first Print shows them.
class Flat {
 public:
  Flat(const Shown& shown, const void* data, int64_t limit)
      : shown_(shown), data_(data), limit_(limit < 0 ? shown.shape.count() : std::min(limit, shown.shape.count())) {}

  std::string text() {
    if (shown_.shape.rank() == 0) {
      if (limit_ > 0) text_ = element(data_, shown_.dtype, 0, false);
    } else {
      dimension(0);
    }
    if (shown_.shape.count() > limit_) text_ += "...";
    return std::move(text_);
  }

 private:
  void dimension(int d) {
    const int64_t count = shown_.shape.dim(d);
    const bool last = d == shown_.shape.rank() - 1;
    for (int64_t i = 0; i < count && static_cast<int64_t>(text_.size()) < kTextMost; ++i) {
      if (at_ >= limit_) {
        if (last && d != 0) text_ += "...";
        return;
      }
      if (last) {
        if (i > 0) text_ += ' ';
        text_ += element(data_, shown_.dtype, at_++, false);
      } else {
        text_ += '[';
        dimension(d + 1);
        text_ += ']';
      }
    }
  }

  const Shown& shown_;
  const void* const data_;
  const int64_t limit_;
  int64_t at_ = 0;
  std::string text_;
};

// ---- Print, PrintV2 ----------------------------------------------------------------------------------------

struct PrintArgs {
  std::span<const Shown> data;
  std::string message, end;
  int64_t first = -1, summarize = 3, bytes = 0;
  LogSink* log = nullptr;
  LogLevel level = LogLevel::warn;
  std::unique_ptr<std::atomic<int64_t>> calls = std::make_unique<std::atomic<int64_t>>(0);
};

Status print_run(RunContext& c) {
  const auto& a = c.args<PrintArgs>();
  if (a.bytes > 0 && c.in<char>(0) != c.out<char>(0)) std::memcpy(c.out<char>(0), c.in<char>(0), static_cast<size_t>(a.bytes));
  if (a.first >= 0 && a.calls->fetch_add(1, std::memory_order_relaxed) >= a.first) return {};
  std::string text = a.message;
  for (size_t k = 0; k < a.data.size(); ++k) text += "[" + Flat(a.data[k], c.in<void>(static_cast<int>(k) + 1), a.summarize).text() + "]";
  a.log->write(LogLevel::warn, "print", text);
  return {};
}

std::span<const Shown> shown_inputs(PrepareContext& c, int first) {
  std::vector<Shown> data;
  for (int i = first; i < c.num_inputs(); ++i) data.push_back({c.input(i).dtype, c.input(i).shape});
  return c.arena().copy(std::span<const Shown>(data));
}

Status print_prepare(PrepareContext& c) {
  auto& a = *c.args<PrintArgs>();
  a.data = shown_inputs(c, 1);
  a.message = c.attr<std::string>("message");
  a.first = c.integer("first_n");
  a.summarize = c.integer("summarize");
  a.bytes = c.input(0).bytes();
  a.log = &TaskLog::of(c.store());
  c.may_overwrite(0, 0);
  return c.sync(print_run);
}

Status print_v2_run(RunContext& c) {
  const auto& a = c.args<PrintArgs>();
  // A line of the log has an end of its own.
  std::string text(c.in<Text>(0)->view());
  if (a.end != "\n") text += a.end;
  a.log->write(a.level, "print", text);
  return {};
}

Status print_v2_prepare(PrepareContext& c) {
  auto& a = *c.args<PrintArgs>();
  const auto& stream = c.attr<std::string>("output_stream");
  a.end = c.attr<std::string>("end");
  a.log = &TaskLog::of(c.store());
  if (stream == "log(info)") a.level = LogLevel::info;
  else if (stream == "log(error)") a.level = LogLevel::error;
  else if (stream != "stderr" && stream != "stdout" && stream != "log(warning)")
    return c.error("output_stream is \"%s\"; it must be stdout, stderr or log(info), log(warning), log(error): a graph reaches no files",
                   stream.c_str());
  return c.sync(print_v2_run);
}

// dx = dy
Status print_grad(GradContext& c) {
  c.dx(0, c.dy());
  return {};
}

// ---- StringFormat ------------------------------------------------------------------------------------------

Status format_run(RunContext& c) {
  const auto& a = c.args<PrintArgs>();
  std::string text;
  std::string_view rest = a.message;
  size_t used = 0;
  for (size_t at = rest.find(a.end); at != rest.npos && used < a.data.size(); at = rest.find(a.end)) {
    text += rest.substr(0, at);
    text += Nested(a.data[used], c.in<void>(static_cast<int>(used)), a.summarize).text();
    ++used;
    rest.remove_prefix(at + a.end.size());
  }
  text += rest;
  TextSpace space;
  space.want(text.size());
  DTG_TRY(space.take(c));
  const char* const from = space.here();
  space.put(text);
  *c.out<Text>(0) = space.since(from);
  return {};
}

Status format_prepare(PrepareContext& c) {
  auto& a = *c.args<PrintArgs>();
  a.data = shown_inputs(c, 0);
  a.message = c.attr<std::string>("template");
  a.end = c.attr<std::string>("placeholder");
  a.summarize = c.integer("summarize");
  size_t places = 0;
  for (size_t at = 0; !a.end.empty() && (at = a.message.find(a.end, at)) != std::string::npos; at += a.end.size()) ++places;
  if (places != a.data.size()) {
    return c.error("the template \"%s\" has %zu places \"%s\" for %zu inputs", a.message.c_str(), places, a.end.c_str(), a.data.size());
  }
  return c.sync(format_run);
}

}  // namespace

void register_print(OpTable& ops, KernelTable& kernels) {
  ops.add(OpDef::make("Print")
              .input("input: T")
              .input("data: U")
              .output("output: T")
              .attr("T: type")
              .attr("U: list(type) >= 0")
              .attr("message: string = ''")
              .attr("first_n: int = -1")
              .attr("summarize: int = 3")
              .shape(unchanged_shape)
              .stateful()
              .gradient(print_grad)
              .doc("Its input; the data go to the log each time, or the first times."));
  kernels.add({.op = "Print", .types = {{"T", kMovable}}, .prepare = print_prepare, .mode = KernelMode::host});
  ops.add(OpDef::make("PrintV2")
              .input("input: string", {.rank = 0})
              .attr("output_stream: string = 'stderr'")
              .attr("end: string = '\n'")
              .shape(no_outputs)
              .stateful()
              .no_gradient()
              .doc("The string goes to the log: as a warning, or as log(info), log(warning) or log(error) says."));
  kernels.add({.op = "PrintV2", .prepare = print_v2_prepare});
  ops.add(OpDef::make("StringFormat")
              .input("inputs: T")
              .output("output: string")
              .attr("T: list(type) >= 0")
              .attr("template: string = '%s'")
              .attr("placeholder: string = '%s'")
              .attr("summarize: int = 3")
              .shape(scalar_shape)
              .no_gradient()
              .doc("The template with the inputs in its places, each with the first and last elements of its dimensions."));
  kernels.add({.op = "StringFormat", .prepare = format_prepare, .mode = KernelMode::host});
}

}  // namespace dtg::ops
