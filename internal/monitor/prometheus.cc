// Writes a snapshot of the registry in the text format: HELP and TYPE per family, one line per sample, cumulative
// buckets for histograms. The set of buckets is fixed per unit, because a set that changes between two scrapes would
// break every rate() over it. A pure function; any thread.
#include "monitor/prometheus.h"

#include <charconv>
#include <cmath>

namespace dtg {
namespace {

struct Bounds {
  int first;  // exponents of two
  int last;
  int step;
  double scale;
};

Bounds bounds_of(HistogramUnit unit) {
  switch (unit) {
    case HistogramUnit::nanoseconds: return {10, 40, 2, 1e-9};  // 1 microsecond to 18 minutes
    case HistogramUnit::bytes: return {6, 34, 4, 1};            // 64 B to 16 GiB
    case HistogramUnit::plain: break;
  }
  return {0, 20, 1, 1};
}

void append_number(std::string& out, double value) {
  if (std::isnan(value)) {
    out += "NaN";
  } else if (std::isinf(value)) {
    out += value > 0 ? "+Inf" : "-Inf";
  } else {
    char digits[40];
    out.append(digits, std::to_chars(digits, digits + sizeof digits, value).ptr);
  }
}

void append_escaped(std::string& out, std::string_view text, bool quotes) {
  for (const char c : text) {
    if (c == '\\') out += "\\\\";
    else if (c == '\n') out += "\\n";
    else if (c == '"' && quotes) out += "\\\"";
    else out += c;
  }
}

// name{labels,le="bound"} value
void append_line(std::string& out, const std::string& name, const char* suffix, const Labels& labels, std::string_view bound,
                 double value) {
  out += name;
  out += suffix;
  char separator = '{';
  for (const Label& label : labels) {
    out += separator;
    out += label.name;
    out += "=\"";
    append_escaped(out, label.value, true);
    out += '"';
    separator = ',';
  }
  if (!bound.empty()) {
    out += separator;
    out += "le=\"";
    out += bound;
    out += '"';
    separator = ',';
  }
  out += separator == ',' ? "} " : " ";
  append_number(out, value);
  out += '\n';
}

void append_histogram(std::string& out, const MetricFamily& family, const MetricSample& sample) {
  const Bounds bounds = bounds_of(family.unit);
  for (int exponent = bounds.first; exponent <= bounds.last; exponent += bounds.step) {
    const int64_t bound = int64_t{1} << exponent;
    std::string text;
    append_number(text, static_cast<double>(bound) * bounds.scale);
    append_line(out, family.name, "_bucket", sample.labels, text, static_cast<double>(sample.histogram.at_most(bound)));
  }
  const auto count = static_cast<double>(sample.histogram.count);
  append_line(out, family.name, "_bucket", sample.labels, "+Inf", count);
  append_line(out, family.name, "_sum", sample.labels, "", static_cast<double>(sample.histogram.sum) * bounds.scale);
  append_line(out, family.name, "_count", sample.labels, "", count);
}

const char* kind_name(MetricKind kind) {
  switch (kind) {
    case MetricKind::counter: return "counter";
    case MetricKind::gauge: return "gauge";
    case MetricKind::histogram: return "histogram";
  }
  return "untyped";
}

}  // namespace

std::string prometheus_text(std::span<const MetricFamily> families) {
  std::string out;
  for (const MetricFamily& family : families) {
    out += "# HELP " + family.name + ' ';
    append_escaped(out, family.help, false);
    out += "\n# TYPE " + family.name + ' ' + kind_name(family.kind) + '\n';
    for (const MetricSample& sample : family.samples) {
      if (family.kind == MetricKind::histogram) {
        append_histogram(out, family, sample);
      } else {
        append_line(out, family.name, "", sample.labels, "", sample.value);
      }
    }
  }
  return out;
}

}  // namespace dtg
