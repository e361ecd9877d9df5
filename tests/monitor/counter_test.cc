// Counters, histograms and their Prometheus text. With DTG_PROMTOOL set to Prometheus' promtool, that tool
// judges the text too.
#include "monitor/counter.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <thread>

#include "monitor/prometheus.h"
#include "scratch.h"

namespace dtg {
namespace {

TEST(Counters, SameNameAndLabelsAreTheSameCounter) {
  Counters counters;
  Counter& sent = counters.counter("dtg_bytes_total", "Bytes.", {{"peer", "a"}});
  EXPECT_EQ(&sent, &counters.counter("dtg_bytes_total", "Bytes.", {{"peer", "a"}}));
  EXPECT_NE(&sent, &counters.counter("dtg_bytes_total", "Bytes.", {{"peer", "b"}}));
  sent.add(3);
  sent.add();
  EXPECT_EQ(sent.value(), 4);
  const auto snapshot = counters.snapshot();
  ASSERT_EQ(snapshot.size(), 1u);
  ASSERT_EQ(snapshot[0].samples.size(), 2u);
  EXPECT_EQ(snapshot[0].samples[0].value, 4);
}

TEST(Counters, OddNamesAndClashesLoseNothing) {
  Counters counters;
  counters.counter("9 lives", "").add(1);
  counters.counter("same", "").add(2);
  counters.gauge("same", "").set(7);
  const auto snapshot = counters.snapshot();
  ASSERT_EQ(snapshot.size(), 3u);
  EXPECT_EQ(snapshot[0].name, "__lives");
  EXPECT_EQ(snapshot[1].name, "same");
  EXPECT_EQ(snapshot[2].name, "same_gauge");
  EXPECT_EQ(snapshot[2].samples[0].value, 7);
}

TEST(Counters, ManyThreadsCountWithoutLoss) {
  Counters counters;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&counters] {
      Counter& counter = counters.counter("n_total", "");
      Gauge& gauge = counters.gauge("g", "");
      Histogram& histogram = counters.histogram("h", "", HistogramUnit::plain);
      for (int i = 0; i < 10000; ++i) {
        counter.add();
        gauge.add(0.5);
        histogram.record(i);
      }
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(counters.counter("n_total", "").value(), 40000);
  EXPECT_EQ(counters.gauge("g", "").value(), 20000);
  EXPECT_EQ(counters.histogram("h", "", HistogramUnit::plain).counts().count, 40000);
}

TEST(Histogram, EveryValueIsWithinItsBucket) {
  for (int shift = 0; shift < 62; ++shift) {
    for (int64_t delta = -1; delta <= 1; ++delta) {
      const int64_t value = std::max<int64_t>(0, (int64_t{5} << shift) / 4 + delta);
      const size_t index = Histogram::index_of(value);
      ASSERT_LT(index, kHistogramBuckets);
      EXPECT_LE(value, Histogram::bound(index));
      if (index > 0) {
        EXPECT_GT(value, Histogram::bound(index - 1)) << value;
      }
    }
  }
  EXPECT_LT(Histogram::index_of(INT64_MAX), kHistogramBuckets);
}

TEST(Histogram, QuantilesAndCumulativeCounts) {
  Histogram histogram;
  EXPECT_EQ(histogram.counts().quantile(0.5), 0);
  for (int i = 1; i <= 1000; ++i) histogram.record(i);
  const HistogramCounts counts = histogram.counts();
  EXPECT_EQ(counts.sum, 500500);
  EXPECT_NEAR(static_cast<double>(counts.quantile(0.5)), 500, 125);
  EXPECT_NEAR(static_cast<double>(counts.quantile(0.99)), 990, 250);
  for (const int64_t bound : {1, 2, 64, 512}) EXPECT_EQ(counts.at_most(bound), bound);
}

TEST(Prometheus, TextIsWhatTheToolAccepts) {
  Counters counters;
  counters.counter("dtg_rpc_bytes_total", "Bytes sent to and taken from peers.", {{"dir", "out"}, {"peer", "a\"b\\c\nd"}}).add(12);
  counters.gauge("dtg_ps_staleness_steps", "Steps \\ between\nread and apply.").set(-1.5);
  counters.gauge("dtg_build_info", "Version.", {{"version", "0.1.0"}}).set(1);
  Histogram& steps = counters.histogram("dtg_step_duration_seconds", "Duration of a step.", HistogramUnit::nanoseconds);
  steps.record(1024);
  steps.record(1025);
  steps.record(2'000'000'000);
  const std::string text = prometheus_text(counters.snapshot());
  EXPECT_NE(text.find("# TYPE dtg_rpc_bytes_total counter\n"), std::string::npos);
  EXPECT_NE(text.find("dtg_rpc_bytes_total{dir=\"out\",peer=\"a\\\"b\\\\c\\nd\"} 12\n"), std::string::npos);
  EXPECT_NE(text.find("# HELP dtg_ps_staleness_steps Steps \\\\ between\\nread and apply.\n"), std::string::npos);
  EXPECT_NE(text.find("dtg_ps_staleness_steps -1.5\n"), std::string::npos);
  EXPECT_NE(text.find("dtg_step_duration_seconds_bucket{le=\"1.024e-06\"} 1\n"), std::string::npos) << text;
  EXPECT_NE(text.find("dtg_step_duration_seconds_bucket{le=\"4.096e-06\"} 2\n"), std::string::npos) << text;
  EXPECT_NE(text.find("dtg_step_duration_seconds_bucket{le=\"+Inf\"} 3\n"), std::string::npos);
  EXPECT_NE(text.find("dtg_step_duration_seconds_count 3\n"), std::string::npos);
  EXPECT_EQ(text.back(), '\n');
  if (const char* tool = std::getenv("DTG_PROMTOOL")) {
    const Scratch scratch;
    const std::string path = scratch.write("metrics", text);
    EXPECT_EQ(std::system((std::string(tool) + " check metrics < " + path).c_str()), 0) << text;
  }
}

}  // namespace
}  // namespace dtg
