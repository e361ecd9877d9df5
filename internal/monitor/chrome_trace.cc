// Turns trace dumps into Chrome's trace JSON: complete events, marks, counters, flows and the names of processes and
// threads. Times are microseconds with three decimals. Pure functions; any thread.
#include "base/json.h"
#include "monitor/trace.h"

namespace dtg {
namespace {

void append_micros(std::string& out, int64_t ns) {
  const char* const sign = ns < 0 ? "-" : "";
  const uint64_t magnitude = ns < 0 ? 0 - static_cast<uint64_t>(ns) : static_cast<uint64_t>(ns);
  out +=
      format("%s%llu.%03llu", sign, static_cast<unsigned long long>(magnitude / 1000), static_cast<unsigned long long>(magnitude % 1000));
}

void append_name(std::string& out, const char* what, int64_t process, uint64_t thread, std::string_view name) {
  out += format("{\"ph\":\"M\",\"name\":\"%s\",\"pid\":%lld,\"tid\":%llu,\"args\":{\"name\":", what, static_cast<long long>(process),
                static_cast<unsigned long long>(thread));
  append_json_string(out, name);
  out += "}},\n";
}

const char* phase(TraceKind kind) {
  switch (kind) {
    case TraceKind::span: return "X";
    case TraceKind::mark: return "i";
    case TraceKind::count: return "C";
    case TraceKind::flow_out: return "s";
    case TraceKind::flow_in: return "f";
  }
  return "i";
}

void append_event(std::string& out, const TraceEvent& event, const TraceDump& dump, uint64_t thread) {
  out += format("{\"ph\":\"%s\",\"pid\":%lld,\"tid\":%llu,\"cat\":", phase(event.kind), static_cast<long long>(dump.process_id),
                static_cast<unsigned long long>(thread));
  append_json_string(out, event.category);
  out += ",\"name\":";
  append_json_string(out, event.name);
  out += ",\"ts\":";
  append_micros(out, event.start_ns + dump.offset_ns);
  const auto value = static_cast<unsigned long long>(event.value);
  switch (event.kind) {
    case TraceKind::span:
      out += ",\"dur\":";
      append_micros(out, event.duration_ns);
      if (value != 0) out += format(",\"args\":{\"value\":%llu}", value);
      break;
    case TraceKind::mark: out += format(",\"s\":\"t\",\"args\":{\"value\":%llu}", value); break;
    case TraceKind::count: out += format(",\"args\":{\"value\":%llu}", value); break;
    // Flow ids are text: readers in JavaScript would round a 64-bit number.
    case TraceKind::flow_out: out += format(",\"id\":\"%llx\"", value); break;
    case TraceKind::flow_in: out += format(",\"bp\":\"e\",\"id\":\"%llx\"", value); break;
  }
  out += "},\n";
}

}  // namespace

std::string chrome_trace(std::span<const TraceDump> dumps) {
  std::string out = "{\"displayTimeUnit\":\"ns\",\"traceEvents\":[\n";
  for (const TraceDump& dump : dumps) {
    append_name(out, "process_name", dump.process_id, 0, dump.process);
    for (const TraceThread& thread : dump.threads) {
      if (!thread.name.empty()) append_name(out, "thread_name", dump.process_id, thread.id, thread.name);
      for (const TraceEvent& event : thread.events) append_event(out, event, dump, thread.id);
    }
  }
  if (out.ends_with(",\n")) out.erase(out.size() - 2, 1);
  out += "]}\n";
  return out;
}

Status write_chrome_trace(Disk& disk, const std::string& path, std::span<const TraceDump> dumps) {
  DTG_ASSIGN(auto file, disk.open_write(path));
  DTG_TRY(file->append(chrome_trace(dumps)));
  return file->close();
}

}  // namespace dtg
