// Counters: the numbers a runtime keeps about itself, by name and labels: counters that only grow, gauges
// that move both ways, histograms. Asking for one takes a lock and is done once, at set-up; the answer
// keeps its address for the life of the registry, and using it is one relaxed atomic. The runtime owns
// the registry; any thread may ask, count and take a snapshot.
//
//   Counter& sent = counters.counter("dtg_rpc_bytes_total", "Bytes sent to peers.", {{"peer", name}});
//   sent.add(bytes);
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "monitor/histogram.h"

namespace dtg {

// On a cache line of its own: counters made one after the other are often used by different threads.
class alignas(64) Counter {
 public:
  void add(int64_t amount = 1) { value_.fetch_add(amount, std::memory_order_relaxed); }
  int64_t value() const { return value_.load(std::memory_order_relaxed); }

 private:
  std::atomic<int64_t> value_{0};
};

class alignas(64) Gauge {
 public:
  void set(double value) { value_.store(value, std::memory_order_relaxed); }
  void add(double amount) {
    double seen = value_.load(std::memory_order_relaxed);
    while (!value_.compare_exchange_weak(seen, seen + amount, std::memory_order_relaxed)) {
    }
  }
  double value() const { return value_.load(std::memory_order_relaxed); }

 private:
  std::atomic<double> value_{0};
};

struct Label {
  std::string name;
  std::string value;
  bool operator==(const Label&) const = default;
};
using Labels = std::vector<Label>;

enum class MetricKind : uint8_t { counter, gauge, histogram };

struct MetricSample {
  Labels labels;
  double value = 0;           // counter, gauge
  HistogramCounts histogram;  // histogram
};

// All samples of one name.
struct MetricFamily {
  std::string name;
  std::string help;
  MetricKind kind = MetricKind::counter;
  HistogramUnit unit = HistogramUnit::plain;
  std::vector<MetricSample> samples;
};

class Counters {
 public:
  Counters();
  ~Counters();
  Counters(const Counters&) = delete;
  Counters& operator=(const Counters&) = delete;

  // The one with this name and these labels, made if there is none. These never fail: characters that
  // Prometheus does not allow in a name become '_', and a name that already stands for another kind gets
  // the kind appended, so that a clash of names is visible in the output and loses no number.
  Counter& counter(std::string_view name, std::string_view help, const Labels& labels = {});
  Gauge& gauge(std::string_view name, std::string_view help, const Labels& labels = {});
  Histogram& histogram(std::string_view name, std::string_view help, HistogramUnit unit, const Labels& labels = {});

  // Every family in order of name, samples in order of their making.
  std::vector<MetricFamily> snapshot() const;

 private:
  struct Sample;
  struct Family;
  Sample& sample(std::string_view name, std::string_view help, MetricKind kind, HistogramUnit unit, const Labels& labels);
  mutable std::mutex mutex_;                       // guards families_ and the lists of samples, never their values
  std::vector<std::unique_ptr<Family>> families_;  // by name
};

}  // namespace dtg
