// A program as text: its segments, the instructions that are prepared with the plan, and where every value lives.
#include <algorithm>
#include <map>

#include "plan/emit.h"
#include "plan/explain.h"

namespace dtg {
namespace {

class ProgramText {
 public:
  ProgramText(const Ir& ir, const Program& program) : ir_(ir), program_(program) {}

  std::string write() {
    text_ = "program: " + count(program_.segments.size(), "segment") + ", " + count(program_.instructions.size(), "instruction") + ", " +
            count(program_.slot_count, "slot") + ", " + count(program_.events, "event") + ", " + count(program_.pin_count, "pin") +
            ", a frame of " + std::to_string(program_.frame_bytes) + " bytes" + parts() + (program_.open ? ", shapes depend on data" : "") +
            (program_.blocking ? ", may wait for others" : "") + "\n";
    for (uint32_t s = 0; s < program_.segments.size(); ++s) append_segment(s);
    find_homes();
    append_slots();
    return std::move(text_);
  }

 private:
  std::string parts() const {
    std::string text;
    for (const Program::Part& part : program_.parts) text += ", " + std::to_string(part.bytes) + " on " + part.device->name();
    return text;
  }
  static std::string count(size_t number, const char* what) { return std::to_string(number) + " " + what + (number == 1 ? "" : "s"); }

  void append_segment(uint32_t s) {
    const Chunk& chunk = program_.segments[s];
    text_ += "segment " + std::to_string(s) + ": waits for " + std::to_string(program_.waits[s]);
    for (uint32_t next : program_.after_segment[s]) text_ += ", then segment " + std::to_string(next);
    for (uint32_t event : program_.raised[s]) text_ += ", raises event " + std::to_string(event);
    text_ += ", its first chunk has " + count(chunk.instructions.size(), "instruction");
    if (!chunk.last) {
      text_ += ", " + std::to_string(ir_.segments[chunk.planned].nodes.size() - chunk.end) + " more " +
               (ir_.segments[chunk.planned].nodes.size() - chunk.end == 1 ? "node" : "nodes") + " when shapes are known";
    }
    text_ += "\n";
    uint32_t stop = chunk.stop;
    for (size_t i = 0; i <= chunk.instructions.size(); ++i) {
      for (; stop < chunk.stops_end && program_.stops[stop].at == i; ++stop) append_stop(stop);
      if (i < chunk.instructions.size()) append_instruction(i, chunk.instructions[i]);
    }
  }

  // The segment's own coming counts as one.
  void append_stop(uint32_t stop) {
    text_ += "  stop: waits for " + std::to_string(program_.waits[program_.segments.size() + stop] - 1) + "\n";
  }

  void append_instruction(size_t number, const Instruction& instruction) {
    const char* const own = Emitter::own_name(instruction);
    text_ += "  " + std::to_string(number) + ": " + (own ? std::string(own) : instruction.node->op->name()) + " \"" +
             std::string(instruction.node->name) + "\"";
    if (instruction.workspace >= 0) text_ += " workspace at " + std::to_string(instruction.workspace);
    if (instruction.async) text_ += " may wait";
    if (instruction.event >= 0) text_ += " event " + std::to_string(instruction.event);
    text_ += "\n";
  }

  // What the program says of slots. Fetches that are written straight have no place; a feed is where the host has it.
  void find_homes() {
    for (const Place& place : program_.places) homes_[place.slot] = "frame at " + std::to_string(place.offset);
    for (const Program::Part& part : program_.parts) {
      for (const Place& place : part.places) homes_[place.slot] = part.device->name() + " at " + std::to_string(place.offset);
    }
    for (const Program::Constant& constant : program_.constants) {
      const bool bound =
          std::ranges::any_of(program_.resources, [&](const Ref<RefCounted>& resource) { return resource.get() == constant.data; });
      homes_[constant.slot] = bound ? "handle" : "constant";
    }
    for (size_t i = 0; i < program_.feeds.size(); ++i) homes_[program_.feeds[i].slot] = "feed " + std::to_string(i);
    for (size_t i = 0; i < program_.fetches.size(); ++i) {
      const Fetch& fetch = program_.fetches[i];
      if (fetch.direct) homes_[fetch.slot] = "fetched " + std::to_string(i);
      else copies_[fetch.slot] += ", copied to fetch " + std::to_string(i);
    }
    later_.resize(ir_.nodes.size());
    for (const Chunk& chunk : program_.segments) {
      const std::vector<uint32_t>& nodes = ir_.segments[chunk.planned].nodes;
      for (size_t i = chunk.end; i < nodes.size(); ++i) later_[nodes[i]] = true;
    }
  }

  std::string home_of(const IrValue& value) const {
    if (value.producer != kNone && ir_.nodes[value.producer].pin != kNone)
      return "variable, pin " + std::to_string(ir_.nodes[value.producer].pin);
    if (const auto at = homes_.find(value.slot); at != homes_.end()) return at->second;
    if (value.producer != kNone && later_[value.producer]) return "leased by a later chunk";
    return "leased";
  }

  // The values that a run meets, in the order of their slots; names that share a slot stand on one line.
  void append_slots() {
    std::vector<bool> met(ir_.values.size());
    for (uint32_t n : ir_.order) {
      if (ir_.nodes[n].barrier) continue;
      for (uint32_t v : ir_.nodes[n].inputs) met[v] = true;
      for (uint32_t v : ir_.nodes[n].outputs) met[v] = true;
    }
    for (uint32_t v : ir_.feeds) met[v] = true;
    for (uint32_t v : ir_.fetches) met[v] = true;
    std::map<uint32_t, std::string> lines;
    for (uint32_t v = 0; v < ir_.values.size(); ++v) {
      const IrValue& value = ir_.values[v];
      if (!met[v] || value.slot == kNone) continue;
      std::string& line = lines[value.slot];
      if (line.empty()) {
        line =
            "slot " + std::to_string(value.slot) + ": " + home_of(value) + ", " + dtype_name(value.info->dtype) + value.info->shape.text();
        if (const auto copy = copies_.find(value.slot); copy != copies_.end()) line += copy->second;
      }
      line += " %" + std::to_string(v) + " \"" + ir_.value_text(v) + "\"";
    }
    for (const auto& [slot, line] : lines) text_ += line + "\n";
  }

  const Ir& ir_;
  const Program& program_;
  std::string text_;
  std::map<uint32_t, std::string> homes_, copies_;  // by slot
  std::vector<bool> later_;                         // nodes that no first chunk has
};

}  // namespace

std::string program_text(const Ir& ir, const Program& program) { return ProgramText(ir, program).write(); }

}  // namespace dtg
