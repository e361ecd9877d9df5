// Spans, rings and Chrome's JSON; the flight recorder.
#include "monitor/trace.h"

#include <gtest/gtest.h>

#include <thread>

#include "base/json.h"
#include "monitor/recorder.h"
#include "scratch.h"

namespace dtg {
namespace {

TEST(Trace, OffRecordsNothing) {
  Tracer tracer(system_clock());
  { TraceSpan span(tracer, "exec", "MatMul"); }
  tracer.mark("net", "connected");
  EXPECT_TRUE(tracer.collect("p").threads.empty());
}

TEST(Trace, SpansBecomeChromeJson) {
  SteppedClock clock;
  Tracer tracer(clock);
  tracer.start();
  tracer.name_thread("loop \"1\"");
  clock.now_ns = 1500;
  {
    TraceSpan outer(tracer, "exec", "step");
    clock.now_ns = 2500;
    {
      TraceSpan inner(tracer, "exec", tracer.keep(std::string("dense") + "/MatMul"), 64);
      clock.now_ns = 3501;
    }
    tracer.flow_out("net", "edge", 0xabcdef0123456789u);
    tracer.count("ps", "queue", 3);
    clock.now_ns = 4000;
  }
  TraceDump dump = tracer.collect("/job:worker/task:0");
  ASSERT_EQ(dump.threads.size(), 1u);
  ASSERT_EQ(dump.threads[0].events.size(), 4u);
  EXPECT_EQ(dump.threads[0].events[0].name, "dense/MatMul");
  EXPECT_EQ(dump.threads[0].events[0].duration_ns, 1001);
  TraceDump other = dump;
  other.process_id = 2;
  other.offset_ns = -10000;
  const TraceDump dumps[] = {dump, other};

  auto json = parse_json(chrome_trace(dumps), "trace");
  ASSERT_TRUE(json.ok()) << json.status().message() << chrome_trace(dumps);
  const Json::Array& events = *json.value().find("traceEvents")->array();
  ASSERT_EQ(events.size(), 12u);
  EXPECT_EQ(*events[1].find("args")->find("name")->string(), "loop \"1\"");
  EXPECT_EQ(*events[2].find("ph")->string(), "X");
  EXPECT_EQ(*events[2].find("ts")->real(), 2.5);
  EXPECT_EQ(*events[2].find("dur")->real(), 1.001);
  EXPECT_EQ(*events[3].find("id")->string(), "abcdef0123456789");
  EXPECT_EQ(*events[8].find("ts")->real(), -7.5);

  const Scratch scratch;
  ASSERT_TRUE(write_chrome_trace(system_disk(), scratch / "trace.json", dumps).ok());
  EXPECT_EQ(scratch.read("trace.json"), chrome_trace(dumps));
  EXPECT_TRUE(parse_json(chrome_trace({}), "empty trace").ok());
}

TEST(Trace, RingKeepsTheLatest) {
  Tracer tracer(system_clock());
  tracer.start();
  const size_t extra = 100;
  for (size_t i = 0; i < Tracer::kEventsPerThread + extra; ++i) tracer.mark("c", "n", i);
  const TraceDump dump = tracer.collect("p");
  EXPECT_EQ(dump.threads[0].lost, extra);
  ASSERT_EQ(dump.threads[0].events.size(), Tracer::kEventsPerThread);
  EXPECT_EQ(dump.threads[0].events.front().value, extra);
}

TEST(Trace, CollectingWhileThreadsWriteSeesWholeEvents) {
  Tracer tracer(system_clock());
  tracer.start();
  std::atomic<bool> stop{false};
  std::vector<std::thread> threads;
  for (int t = 0; t < 2; ++t) {
    threads.emplace_back([&tracer, &stop] {
      for (uint64_t i = 0; !stop.load(std::memory_order_relaxed); ++i) {
        tracer.add(TraceKind::span, "c", "n", static_cast<int64_t>(i), static_cast<int64_t>(2 * i), 3 * i);
      }
    });
  }
  size_t seen = 0;
  while (seen < 20000) {
    for (const TraceThread& thread : tracer.collect("p").threads) {
      for (const TraceEvent& event : thread.events) {
        ASSERT_EQ(event.duration_ns, 2 * event.start_ns);
        ASSERT_EQ(event.value, 3 * static_cast<uint64_t>(event.start_ns));
      }
      seen += thread.events.size();
    }
  }
  stop = true;
  for (auto& thread : threads) thread.join();
}

TEST(Trace, TwoTracersOnOneThreadKeepApart) {
  auto first = std::make_unique<Tracer>(system_clock());
  Tracer second(system_clock());
  first->start();
  second.start();
  for (int i = 0; i < 3; ++i) {
    first->mark("c", "first");
    second.mark("c", "second");
  }
  EXPECT_EQ(first->collect("p").threads[0].events.size(), 3u);
  first = std::make_unique<Tracer>(system_clock());
  first->start();
  first->mark("c", "first again");
  EXPECT_EQ(first->collect("p").threads[0].events.size(), 1u);
  EXPECT_EQ(second.collect("p").threads[0].events.size(), 3u);
}

TEST(Recorder, KeepsTheLastEventsInOrder) {
  SteppedClock clock;
  Recorder recorder(clock);
  EXPECT_EQ(recorder.text(), "");
  for (int64_t i = 0; i < 5000; ++i) {
    clock.now_ns = i * 1000;
    recorder.record("step", "/job:worker/replica:0/task:17", i, -i);
  }
  const auto events = recorder.events();
  ASSERT_EQ(events.size(), Recorder::kEvents);
  EXPECT_EQ(events.front().a, 5000 - 4096);
  EXPECT_EQ(events.back().a, 4999);
  EXPECT_EQ(events.back().b, -4999);
  EXPECT_EQ(events.back().label, std::string("/job:worker/replica:0/task:17").substr(5));
  EXPECT_NE(recorder.text().find("task:17 4999 -4999\n"), std::string::npos);
}

TEST(Recorder, ManyWritersAndAReader) {
  Recorder recorder(system_clock());
  std::atomic<int> running{3};
  std::vector<std::thread> threads;
  for (int t = 0; t < 3; ++t) {
    threads.emplace_back([&recorder, &running] {
      for (int64_t i = 0; i < 30000; ++i) recorder.record("event", "label", i, 7 * i);
      running.fetch_sub(1);
    });
  }
  while (running.load() > 0) {
    for (const RecordedEvent& event : recorder.events()) {
      ASSERT_EQ(event.b, 7 * event.a);
      ASSERT_EQ(event.label, "label");
    }
  }
  for (auto& thread : threads) thread.join();
  EXPECT_GE(recorder.events().size() + recorder.dropped(), Recorder::kEvents);
}

}  // namespace
}  // namespace dtg
