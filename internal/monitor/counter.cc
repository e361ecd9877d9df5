// The registry behind Counters: families sorted by name, each with its samples. Any thread.
#include "monitor/counter.h"

#include <algorithm>

namespace dtg {
namespace {

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool is_digit(char c) { return c >= '0' && c <= '9'; }

std::string legal_name(std::string_view name, bool colons) {
  std::string legal;
  for (const char c : name) {
    const bool fine = is_letter(c) || (colons && c == ':') || (is_digit(c) && !legal.empty());
    legal += fine ? c : '_';
  }
  return legal.empty() ? "_" : legal;
}

const char* kind_suffix(MetricKind kind) {
  switch (kind) {
    case MetricKind::counter: return "_counter";
    case MetricKind::gauge: return "_gauge";
    case MetricKind::histogram: return "_histogram";
  }
  return "";
}

}  // namespace

struct Counters::Sample {
  Labels labels;
  Counter counter;
  Gauge gauge;
  std::unique_ptr<Histogram> histogram;
};

struct Counters::Family {
  std::string name;
  std::string help;
  MetricKind kind;
  HistogramUnit unit;
  std::vector<std::unique_ptr<Sample>> samples;
};

Counters::Counters() = default;
Counters::~Counters() = default;

Counters::Sample& Counters::sample(std::string_view name, std::string_view help, MetricKind kind, HistogramUnit unit,
                                   const Labels& labels) {
  std::string legal = legal_name(name, true);
  Labels wanted;
  for (const Label& label : labels) wanted.push_back({legal_name(label.name, false), label.value});

  const std::lock_guard lock(mutex_);
  const auto at = [this](const std::string& key) {
    return std::lower_bound(families_.begin(), families_.end(), key,
                            [](const auto& family, const std::string& wanted_name) { return family->name < wanted_name; });
  };
  auto place = at(legal);
  while (place != families_.end() && (*place)->name == legal && (*place)->kind != kind) {
    legal += kind_suffix(kind);
    place = at(legal);
  }
  if (place == families_.end() || (*place)->name != legal) {
    place = families_.insert(place, std::unique_ptr<Family>(new Family{legal, std::string(help), kind, unit, {}}));
  }
  Family& family = **place;
  for (const auto& sample : family.samples) {
    if (sample->labels == wanted) return *sample;
  }
  family.samples.push_back(std::make_unique<Sample>());
  Sample& made = *family.samples.back();
  made.labels = std::move(wanted);
  if (kind == MetricKind::histogram) made.histogram = std::make_unique<Histogram>(family.unit);
  return made;
}

Counter& Counters::counter(std::string_view name, std::string_view help, const Labels& labels) {
  return sample(name, help, MetricKind::counter, HistogramUnit::plain, labels).counter;
}

Gauge& Counters::gauge(std::string_view name, std::string_view help, const Labels& labels) {
  return sample(name, help, MetricKind::gauge, HistogramUnit::plain, labels).gauge;
}

Histogram& Counters::histogram(std::string_view name, std::string_view help, HistogramUnit unit, const Labels& labels) {
  return *sample(name, help, MetricKind::histogram, unit, labels).histogram;
}

std::vector<MetricFamily> Counters::snapshot() const {
  std::vector<MetricFamily> snapshot;
  const std::lock_guard lock(mutex_);
  snapshot.reserve(families_.size());
  for (const auto& family : families_) {
    MetricFamily& copy = snapshot.emplace_back();
    copy.name = family->name;
    copy.help = family->help;
    copy.kind = family->kind;
    copy.unit = family->unit;
    for (const auto& sample : family->samples) {
      MetricSample& value = copy.samples.emplace_back();
      value.labels = sample->labels;
      if (family->kind == MetricKind::counter) value.value = static_cast<double>(sample->counter.value());
      if (family->kind == MetricKind::gauge) value.value = sample->gauge.value();
      if (family->kind == MetricKind::histogram) value.histogram = sample->histogram->counts();
    }
  }
  return snapshot;
}

}  // namespace dtg
