// Groups from outside: every collective with every element type against a sum on one rank, uneven and empty contributions, one to many
// ranks, calls that do not fit, losses, leaving, coming back. The members are servers in this process, each with a runtime and a thread.
#include <atomic>
#include <barrier>
#include <functional>
#include <numeric>
#include <random>
#include <thread>

#include "job.h"

namespace outside {
namespace {

constexpr int64_t kMs = 1'000'000;

struct Member {
  int rank = 0;
  Server* server = nullptr;
  dtg_group* group = nullptr;
  ~Member() { dtg_group_release(group); }
};

// Servers of a job "worker" that stay for a whole test.
class Groups : public ::testing::Test {
 protected:
  void SetUp() override {
    directory_ = folder("group");
    ::mkdir(directory_.c_str(), 0700);
  }
  void TearDown() override {
    servers_.clear();
    dtg_cluster_release(cluster_);
    ::rmdir(directory_.c_str());
  }
  // `unshared`: goes without shared memory.
  void serve(int size, int unshared = -1) {
    std::string spec = "worker=";
    for (int i = 0; i < size; ++i) spec += (i ? ",unix:" : "unix:") + directory_ + "/w" + std::to_string(i);
    OK(dtg_cluster_parse(spec.c_str(), DTG_STRLEN, &cluster_));
    for (int i = 0; i < size; ++i) servers_.push_back(std::make_unique<Server>(cluster_, "worker", i, nullptr, 0, i == unshared));
  }
  // Every member in a thread of its own, joined.
  void all(const std::function<void(Member&)>& body, const char* name = nullptr) {
    std::vector<std::thread> threads;
    for (size_t i = 0; i < servers_.size(); ++i) {
      threads.emplace_back([&, i] {
        Member member;
        member.rank = static_cast<int>(i);
        member.server = servers_[i].get();
        dtg_group_options options = DTG_GROUP_OPTIONS_INIT;
        options.name = name;
        options.default_timeout_ns = 30'000 * kMs;
        OK(dtg_group_join(member.server->server, &options, &member.group));
        if (!member.group) return;
        EXPECT_EQ(dtg_group_rank(member.group), member.rank);
        EXPECT_EQ(dtg_group_size(member.group), static_cast<int32_t>(servers_.size()));
        body(member);
      });
    }
    for (std::thread& thread : threads) thread.join();
  }
  int size() const { return static_cast<int>(servers_.size()); }

  std::string directory_;
  dtg_cluster* cluster_ = nullptr;
  std::vector<std::unique_ptr<Server>> servers_;
};

template <class T>
dtg_tensor* tensor_of(dtg_dtype dtype, const std::vector<int64_t>& dims, const std::vector<T>& values) {
  dtg_tensor* tensor = nullptr;
  OK(dtg_tensor_create(dtype, dims.data(), dims.size(), const_cast<T*>(values.data()), values.size() * sizeof(T), nullptr, nullptr,
                       &tensor));
  return tensor;
}

template <class T>
std::vector<T> values_of(const dtg_tensor* tensor) {
  size_t bytes = 0;
  const T* const data = static_cast<const T*>(dtg_tensor_data(tensor, &bytes));
  return std::vector<T>(data, data + bytes / sizeof(T));
}

template <class T>
std::vector<T> contribution(int rank, int64_t count) {
  std::vector<T> values(static_cast<size_t>(count));
  auto state = static_cast<uint32_t>(rank * 7919 + count);
  for (T& value : values) {
    state = state * 1664525u + 1013904223u;
    if constexpr (std::is_floating_point_v<T>) value = static_cast<T>(static_cast<double>(state >> 8) * 0x1p-22 - 2);
    else value = static_cast<T>(1 + (state >> 16) % 3);
  }
  return values;
}

// Left to right over the ranks, from `first` on.
template <class T>
std::vector<T> expected(dtg_reduction reduction, int size, int64_t count, int first = 0) {
  std::vector<T> sum = contribution<T>(first, count);
  for (int i = 1; i < size; ++i) {
    const std::vector<T> more = contribution<T>((first + i) % size, count);
    for (size_t k = 0; k < sum.size(); ++k) {
      switch (reduction) {
        case DTG_REDUCE_MIN: sum[k] = std::min(sum[k], more[k]); break;
        case DTG_REDUCE_MAX: sum[k] = std::max(sum[k], more[k]); break;
        case DTG_REDUCE_PRODUCT: sum[k] = static_cast<T>(sum[k] * more[k]); break;
        default: sum[k] = static_cast<T>(sum[k] + more[k]);
      }
    }
  }
  if (reduction == DTG_REDUCE_MEAN) {
    for (T& each : sum) each = static_cast<T>(each / static_cast<T>(size));
  }
  return sum;
}

template <class T>
void check_reduce(Member& member, dtg_dtype dtype, dtg_reduction reduction, int64_t count, dtg_reduce_algorithm algorithm, bool in_place,
                  uint32_t bucket = 0) {
  const int size = dtg_group_size(member.group);
  dtg_collective_args args = DTG_COLLECTIVE_ARGS_INIT;
  args.reduction = reduction;
  args.algorithm = algorithm;
  args.bucket = bucket;
  dtg_tensor* const in = tensor_of<T>(dtype, {count}, contribution<T>(member.rank, count));
  dtg_tensor* out = in_place ? in : nullptr;
  OK(dtg_group_all_reduce(member.group, in, &args, &out));
  const bool same = out && values_of<T>(out) == expected<T>(reduction, size, count, static_cast<int>(bucket) % size);
  EXPECT_TRUE(same) << "rank " << member.rank << " of " << size << ", dtype " << dtype << ", reduction " << reduction << ", count " << count
                    << ", algorithm " << algorithm << (in_place ? ", in place" : "");
  if (!in_place) dtg_tensor_release(out);
  dtg_tensor_release(in);
}

TEST_F(Groups, AllReduceGivesTheBitsOfASumOnOneRank) {
  for (const int ranks : {1, 2, 3, 4, 7}) {
    serve(ranks);
    all([&](Member& member) {
      for (const int64_t count : {0, 1, 5, 1000, 20'000, 70'000, 600'000}) {
        for (const dtg_reduce_algorithm algorithm : {0, 1, 2, 3})
          check_reduce<float>(member, DTG_F32, DTG_REDUCE_SUM, count, algorithm, count % 2 == 0);
      }
      // Whole numbers, of which any order of additions gives the same.
      for (const int64_t count : {0, 1, 5, 1000, 70'000}) {
        for (dtg_reduce_algorithm algorithm = DTG_ALGORITHM_ANY; algorithm <= DTG_ALGORITHM_HIERARCHY; ++algorithm)
          check_reduce<int32_t>(member, DTG_I32, DTG_REDUCE_SUM, count, algorithm, count % 2 == 0);
      }
      for (uint32_t bucket = 1; bucket < 4; ++bucket) {
        for (const dtg_reduce_algorithm algorithm : {1, 2, 3})
          check_reduce<float>(member, DTG_F32, DTG_REDUCE_MEAN, 300'000, algorithm, true, bucket);
      }
    });
    TearDown();
    SetUp();
    cluster_ = nullptr;
  }
}

TEST_F(Groups, EveryTypeAndReduction) {
  serve(3);
  all([&](Member& member) {
    for (dtg_reduction reduction = 0; reduction <= DTG_REDUCE_PRODUCT; ++reduction) {
      check_reduce<float>(member, DTG_F32, reduction, 1003, 0, false);
      check_reduce<double>(member, DTG_F64, reduction, 40'003, 0, true);
      check_reduce<int8_t>(member, DTG_I8, reduction, 1003, 0, false);
      check_reduce<uint8_t>(member, DTG_U8, reduction, 1003, 0, true);
      check_reduce<int16_t>(member, DTG_I16, reduction, 1003, 0, false);
      check_reduce<uint16_t>(member, DTG_U16, reduction, 1003, 0, false);
      check_reduce<int32_t>(member, DTG_I32, reduction, 50'003, 0, false);
      check_reduce<uint32_t>(member, DTG_U32, reduction, 1003, 0, false);
      check_reduce<int64_t>(member, DTG_I64, reduction, 1003, 0, false);
      check_reduce<uint64_t>(member, DTG_U64, reduction, 1003, 0, false);
    }
    for (const dtg_dtype dtype : {DTG_BOOL, DTG_STRING}) {
      const std::vector<char> bytes = {1, 0};
      dtg_tensor *in = nullptr, *out = nullptr;
      const int64_t dims[] = {2};
      const char* const texts[] = {"a", "b"};
      if (dtype == DTG_BOOL) in = tensor_of<char>(dtype, {2}, bytes);
      else OK(dtg_tensor_create_strings(dims, 1, texts, nullptr, &in));
      refused(dtg_group_all_reduce(member.group, in, nullptr, &out), DTG_INVALID_ARGUMENT, "a sum of such");
      dtg_tensor_release(in);
    }
    OK(dtg_group_barrier(member.group, 0));  // what all refuse keeps nobody waiting
  });
}

TEST_F(Groups, GatherScatterBroadcastAndAllToAll) {
  for (const int ranks : {1, 2, 5}) {
    serve(ranks);
    all([&](Member& member) {
      const int rank = member.rank;
      for (const int64_t scale : {int64_t{0}, int64_t{1}, int64_t{3}, int64_t{40'000}}) {
        // Rank r brings r * scale rows of 3.
        std::vector<int32_t> mine(static_cast<size_t>(rank * scale * 3), rank), whole;
        for (int r = 0; r < ranks; ++r) whole.insert(whole.end(), static_cast<size_t>(r * scale * 3), r);
        dtg_tensor *in = tensor_of<int32_t>(DTG_I32, {rank * scale, 3}, mine), *out = nullptr;
        OK(dtg_group_all_gather(member.group, in, nullptr, &out));
        EXPECT_EQ(values_of<int32_t>(out), whole) << "all_gather " << scale << " rank " << rank;
        dtg_tensor_release(in);
        dtg_tensor_release(out);

        // Rank r sends (r + to + 1) * scale rows to rank `to`.
        std::vector<int64_t> splits;
        std::vector<int32_t> sends, gets;
        for (int to = 0; to < ranks; ++to) {
          splits.push_back((rank + to + 1) * scale);
          sends.insert(sends.end(), static_cast<size_t>(splits.back()), rank * 100 + to);
          gets.insert(gets.end(), static_cast<size_t>(splits.back()), to * 100 + rank);
        }
        dtg_collective_args args = DTG_COLLECTIVE_ARGS_INIT;
        args.splits = splits.data();
        args.num_splits = splits.size();
        in = tensor_of<int32_t>(DTG_I32, {static_cast<int64_t>(sends.size())}, sends);
        out = nullptr;
        OK(dtg_group_all_to_all(member.group, in, &args, &out));
        EXPECT_EQ(values_of<int32_t>(out), gets) << "all_to_all " << scale << " rank " << rank;
        dtg_tensor_release(in);
        dtg_tensor_release(out);

        const int64_t rows = scale + 2;
        in = tensor_of<float>(DTG_F32, {rows, 2}, contribution<float>(rank, rows * 2));
        out = nullptr;
        OK(dtg_group_reduce_scatter(member.group, in, nullptr, &out));
        const std::vector<float> sum = expected<float>(DTG_REDUCE_SUM, ranks, rows * 2);
        const int64_t begin = rows / ranks * rank + std::min<int64_t>(rank, rows % ranks), length = rows / ranks + (rank < rows % ranks);
        EXPECT_EQ(values_of<float>(out), std::vector<float>(sum.begin() + begin * 2, sum.begin() + (begin + length) * 2))
            << "reduce_scatter " << scale;
        dtg_tensor_release(in);
        dtg_tensor_release(out);

        for (int root = 0; root < ranks; ++root) {
          args = DTG_COLLECTIVE_ARGS_INIT;
          args.root = root;
          in = root == rank ? tensor_of<float>(DTG_F32, {scale, 5}, contribution<float>(root, scale * 5)) : nullptr;
          out = nullptr;
          OK(dtg_group_broadcast(member.group, in, &args, &out));
          EXPECT_EQ(values_of<float>(out), contribution<float>(root, scale * 5)) << "broadcast " << scale;
          EXPECT_EQ(dtg_tensor_dim(out, 1), 5);
          dtg_tensor_release(in);
          dtg_tensor_release(out);
        }
        OK(dtg_group_barrier(member.group, 0));
      }
    });
    TearDown();
    SetUp();
    cluster_ = nullptr;
  }
}

// Members that come late, and calls in flight at once.
TEST_F(Groups, ManyAtOnceInAnyTiming) {
  serve(3);
  all([&](Member& member) {
    std::mt19937 random(std::random_device{}());
    dtg_cq* cq = nullptr;
    OK(dtg_cq_create(&cq));
    constexpr int kCalls = 60;
    std::vector<dtg_tensor*> tensors;
    std::vector<dtg_collective*> calls(kCalls);
    const auto count_of = [](int call) { return int64_t{1} << (call % 20); };
    for (int call = 0; call < kCalls; ++call) {
      if (random() % 8 == 0) std::this_thread::sleep_for(std::chrono::microseconds(random() % 3000));
      tensors.push_back(tensor_of<float>(DTG_F32, {count_of(call)}, contribution<float>(member.rank, count_of(call))));
      OK(dtg_group_start(member.group, DTG_ALL_REDUCE, tensors.back(), nullptr, nullptr, cq, static_cast<uint64_t>(call),
                         &calls[static_cast<size_t>(call)]));
    }
    wait_for(cq, kCalls);
    for (int call = 0; call < kCalls; ++call) {
      dtg_tensor* out = nullptr;
      OK(dtg_collective_take_result(calls[static_cast<size_t>(call)], &out));
      EXPECT_EQ(values_of<float>(out), expected<float>(DTG_REDUCE_SUM, 3, count_of(call))) << call;
      refused(dtg_collective_take_result(calls[static_cast<size_t>(call)], &out), DTG_FAILED_PRECONDITION, "taking twice");
      dtg_tensor_release(out);
      dtg_tensor_release(tensors[static_cast<size_t>(call)]);
      dtg_collective_release(calls[static_cast<size_t>(call)]);
    }
    dtg_cq_release(cq);
  });
}

// Each kind of disagreement, by each rank in turn: all are told, who it was, and what it called.
TEST_F(Groups, WhoeverCallsSomethingElseIsNamed) {
  serve(3);
  for (int odd = 0; odd < 3; ++odd) {
    all(
        [&](Member& member) {
          for (int kind = 0; kind < 6; ++kind) {
            dtg_tensor* const in = tensor_of<float>(DTG_F32, {8}, contribution<float>(member.rank, 8));
            dtg_tensor* const longer = tensor_of<float>(DTG_F32, {9}, contribution<float>(member.rank, 9));
            dtg_tensor* const whole = tensor_of<int32_t>(DTG_I32, {8}, contribution<int32_t>(member.rank, 8));
            dtg_tensor* out = nullptr;
            dtg_collective_args args = DTG_COLLECTIVE_ARGS_INIT;
            const bool is_odd = member.rank == odd;
            if (is_odd && kind == 0) args.reduction = DTG_REDUCE_MAX;
            if (is_odd && kind == 4) args.bucket = 1;
            dtg_error* error = nullptr;
            const auto before = std::chrono::steady_clock::now();
            if (is_odd && kind == 3) error = dtg_group_all_gather(member.group, in, nullptr, &out);
            else if (is_odd && kind == 5) error = dtg_group_barrier(member.group, 0);
            else error = dtg_group_all_reduce(member.group, is_odd && kind == 1 ? longer : is_odd && kind == 2 ? whole : in, &args, &out);
            const std::string message = refused(error, DTG_INVALID_ARGUMENT, "kind " + std::to_string(kind));
            EXPECT_NE(message.find("rank " + std::to_string(odd) + " (/job:worker/replica:0/task:" + std::to_string(odd) + ") called"),
                      message.npos)
                << message;
            EXPECT_NE(message.find("the others all_reduce(float32[8], sum)"), message.npos) << message;
            EXPECT_LT(std::chrono::steady_clock::now() - before, std::chrono::seconds(5));
            // Until they agree again nothing goes on.
            refused(dtg_group_barrier(member.group, 0), DTG_INVALID_ARGUMENT, "after a disagreement");
            OK(dtg_group_reform(member.group, 0, 0));
            OK(dtg_group_barrier(member.group, 0));
            dtg_tensor_release(in);
            dtg_tensor_release(longer);
            dtg_tensor_release(whole);
          }
        },
        ("odd" + std::to_string(odd)).c_str());
  }
}

// One way after the other in which a call is refused at its own member; none of them is made.
dtg_error* bad_call(Member& member, int kind, const dtg_tensor* in, dtg_cq* cq) {
  dtg_collective_args args = DTG_COLLECTIVE_ARGS_INIT;
  dtg_tensor *out = nullptr, *const longer = tensor_of<float>(DTG_F32, {9}, contribution<float>(0, 9));
  dtg_error* error = nullptr;
  switch (kind) {
    case 0: args.reduction = 17; break;
    case 1: args.timeout_ns = -1; break;
    case 2: error = dtg_group_all_reduce(member.group, nullptr, nullptr, &out); break;
    case 3: error = dtg_group_all_reduce(member.group, in, nullptr, nullptr); break;
    case 4: error = dtg_group_start(member.group, 17, in, nullptr, nullptr, cq, 1, nullptr); break;
    case 5: error = dtg_group_start(member.group, DTG_ALL_REDUCE, in, nullptr, nullptr, nullptr, 1, nullptr); break;
    default: out = longer; error = dtg_group_all_reduce(member.group, in, nullptr, &out);  // by the group itself: no room for the result
  }
  if (kind < 2) error = dtg_group_all_reduce(member.group, in, &args, &out);
  dtg_tensor_release(longer);
  return error;
}

// The others' next call is not this member's one after it.
TEST_F(Groups, ARefusedCallIsCountedAndItsMemberNamed) {
  serve(3);
  std::barrier through(3);
  all([&](Member& member) {
    dtg_tensor* const in = tensor_of<float>(DTG_F32, {8}, contribution<float>(member.rank, 8));
    dtg_cq* cq = nullptr;
    OK(dtg_cq_create(&cq));
    for (int kind = 0; kind < 7; ++kind) {
      const int odd = kind % 3;
      const std::string what = "kind " + std::to_string(kind), name = "rank " + std::to_string(odd) + " (/job:worker/replica:0/task:";
      // Where everybody refuses the same, nothing has happened.
      refused(bad_call(member, kind, in, cq), DTG_INVALID_ARGUMENT, what + " everywhere");
      check_reduce<float>(member, DTG_F32, DTG_REDUCE_SUM, 100, 0, false);
      through.arrive_and_wait();  // or the end of the epoch could meet a sum that is still under way
      // It is the root of a broadcast too, from which the others only wait to hear.
      dtg_collective_args args = DTG_COLLECTIVE_ARGS_INIT;
      args.root = odd;
      dtg_tensor* out = nullptr;
      if (member.rank == odd) refused(bad_call(member, kind, in, cq), DTG_INVALID_ARGUMENT, what);
      dtg_error* const error =
          kind < 3 ? dtg_group_broadcast(member.group, in, &args, &out) : dtg_group_all_reduce(member.group, in, nullptr, &out);
      const std::string message = error ? refused(error, DTG_INVALID_ARGUMENT, what) : "";
      // A root is done when it has sent, and hears of the end with its next call.
      if (!error) refused(dtg_group_barrier(member.group, 0), DTG_INVALID_ARGUMENT, what + ", after a broadcast");
      else EXPECT_TRUE(message.find(name) != message.npos && message.find(" refused ") != message.npos) << what << ": " << message;
      dtg_tensor_release(out);
      OK(dtg_group_reform(member.group, 0, 0));
    }
    dtg_cq_release(cq);
    dtg_tensor_release(in);
  });
}

TEST_F(Groups, DeadlinesAndCancelsEndTheEpochForAll) {
  serve(3);
  all([&](Member& member) {
    dtg_tensor* const in = tensor_of<float>(DTG_F32, {8}, contribution<float>(member.rank, 8));
    dtg_tensor* out = nullptr;
    dtg_collective_args args = DTG_COLLECTIVE_ARGS_INIT;
    args.timeout_ns = 300 * kMs;
    std::string origin;
    if (member.rank != 2) {
      const std::string message =
          refused(dtg_group_all_reduce(member.group, in, &args, &out), DTG_DEADLINE_EXCEEDED, "nobody at the other end", &origin);
      EXPECT_NE(message.find("nothing has come from rank 2"), message.npos) << message;
    } else {
      std::this_thread::sleep_for(std::chrono::milliseconds(900));
      const std::string message =
          refused(dtg_group_all_reduce(member.group, in, nullptr, &out), DTG_DEADLINE_EXCEEDED, "too late", &origin);
      EXPECT_EQ(message.find("all_reduce("), message.rfind("all_reduce(")) << "what is late is this call: " << message;
    }
    // Whoever of the others found it.
    EXPECT_NE(origin.find("/job:worker/replica:0/task:"), origin.npos) << origin;
    EXPECT_NE(origin.find(", /job:worker/replica:0/task:2, run"), origin.npos) << origin;
    OK(dtg_group_reform(member.group, 0, 0));
    dtg_cq* cq = nullptr;
    OK(dtg_cq_create(&cq));
    dtg_collective* call = nullptr;
    if (member.rank != 1) {
      OK(dtg_group_start(member.group, DTG_ALL_REDUCE, in, nullptr, nullptr, cq, 1, &call));
      if (member.rank == 0) dtg_collective_cancel(call);
      wait_for(cq, 1, DTG_CANCELLED);
      refused(dtg_collective_take_result(call, &out), DTG_CANCELLED, "taking what was cancelled");
      dtg_collective_release(call);
    } else {
      std::this_thread::sleep_for(std::chrono::milliseconds(300));
      refused(dtg_group_barrier(member.group, 0), DTG_CANCELLED, "after a cancel");
    }
    OK(dtg_group_reform(member.group, 0, 0));
    OK(dtg_group_barrier(member.group, 0));
    dtg_cq_release(cq);
    dtg_tensor_release(in);
  });
}

// One goes, the others go on without it at once, and take it in again later.
TEST_F(Groups, GoingOnWithoutAMemberAndTakingItInAgain) {
  serve(4);
  for (int gone = 0; gone < 4; ++gone) {
    const std::string name = "gone" + std::to_string(gone);
    std::atomic<int> formed = 0;
    all(
        [&](Member& member) {
          check_reduce<float>(member, DTG_F32, DTG_REDUCE_SUM, 100'000, 0, true);
          dtg_group_options options = DTG_GROUP_OPTIONS_INIT;
          options.name = name.c_str();
          if (member.rank == gone) {
            OK(dtg_group_leave(member.group));
            OK(dtg_group_leave(member.group));
            refused(dtg_group_barrier(member.group, 0), DTG_CANCELLED, "after leaving");
            dtg_group_release(member.group);
            member.group = nullptr;
            while (formed < 3 && !HasFailure()) std::this_thread::sleep_for(std::chrono::milliseconds(5));
            OK(dtg_group_join(member.server->server, &options, &member.group));
          } else {
            const std::string message = refused(dtg_group_barrier(member.group, 0), DTG_UNAVAILABLE, "without one");
            EXPECT_NE(message.find("task:" + std::to_string(gone)), message.npos) << message;
            const auto before = std::chrono::steady_clock::now();
            OK(dtg_group_reform(member.group, 2, 0));
            EXPECT_LT(std::chrono::steady_clock::now() - before, std::chrono::seconds(10));  // within one, where there is time
            ++formed;
            EXPECT_EQ(dtg_group_size(member.group), 3);
            EXPECT_EQ(dtg_group_rank(member.group), member.rank - (member.rank > gone));
            dtg_tensor *in = tensor_of<float>(DTG_F32, {1}, {1.0f}), *out = nullptr;
            OK(dtg_group_all_reduce(member.group, in, nullptr, &out));
            EXPECT_EQ(values_of<float>(out), std::vector<float>{3});
            dtg_tensor_release(in);
            dtg_tensor_release(out);
            OK(dtg_group_reform(member.group, 0, 0));
          }
          EXPECT_EQ(dtg_group_size(member.group), 4);
          check_reduce<float>(member, DTG_F32, DTG_REDUCE_SUM, 1000, 0, false);
        },
        name.c_str());
  }
}

// The root of a broadcast is through with it as soon as it has sent, so it may be gone when others come to it.
TEST_F(Groups, WhatWasSentBeforeLeavingIsThereForThoseWhoComeToItLater) {
  serve(3);
  std::barrier left(3);
  all([&](Member& member) {
    dtg_tensor* const in = member.rank == 0 ? tensor_of<int64_t>(DTG_I64, {2}, {42, 43}) : nullptr;
    if (member.rank != 0) left.arrive_and_wait();
    dtg_tensor* out = nullptr;
    OK(dtg_group_broadcast(member.group, in, nullptr, &out));
    EXPECT_TRUE(out && values_of<int64_t>(out) == (std::vector<int64_t>{42, 43}));
    dtg_tensor_release(out);
    dtg_tensor_release(in);
    if (member.rank == 0) {
      OK(dtg_group_leave(member.group));
      left.arrive_and_wait();
    }
    left.arrive_and_wait();
    if (member.rank == 0) return;
    // What needs it cannot be made any more.
    const std::string message = refused(dtg_group_barrier(member.group, 0), DTG_UNAVAILABLE, "without the root");
    EXPECT_NE(message.find("rank 0 (/job:worker/replica:0/task:0) has left it"), message.npos) << message;
  });
}

// One goes on to another epoch as soon as it is through, a second one asks for a call that cannot be made without it, and the third still
// has what both have sent.
TEST_F(Groups, WhatSomebodyHasEndedTheOthersEndToo) {
  serve(3);
  all([&](Member& member) {
    for (int round = 0; round < 150 && !HasFailure(); ++round) {
      check_reduce<int32_t>(member, DTG_I32, DTG_REDUCE_SUM, 100'000 * (1 + round % 3), 0, false);
      if (round % 3 != member.rank) refused(dtg_group_barrier(member.group, 0), DTG_UNAVAILABLE, "without one");
      OK(dtg_group_reform(member.group, 0, 0));
    }
  });
}

// Links of the group, and of a session, whoever dials them.
TEST_F(Groups, SharedMemoryIsLeftOutWhereEitherEndSaysSo) {
  for (const int unshared : {-1, 0, 1}) {
    serve(2, unshared);
    dtg_graph* graph = nullptr;
    dtg_session* session = nullptr;
    OK(dtg_graph_create(servers_[0]->runtime, &graph));
    OK(dtg_session_connect(servers_[0]->runtime, dtg_server_target(servers_[0]->server), DTG_STRLEN, graph, nullptr, &session));
    dtg_tensor *one = tensor_of<float>(DTG_F32, {1}, {1}), *back = nullptr;
    dtg_value there{};
    OK(dtg_graph_push_device(graph, "/job:worker/task:1", DTG_STRLEN));
    OK(dtg_const(graph, one, &there));
    dtg_run_args args = DTG_RUN_ARGS_INIT;
    args.fetches = &there;
    args.fetched = &back;
    args.num_fetches = 1;
    OK(dtg_session_run(session, &args));
    dtg_tensor_release(one);
    dtg_tensor_release(back);
    all([&](Member& member) {
      OK(dtg_group_barrier(member.group, 0));
      if (member.rank == 0) return;
      dtg_string* text = nullptr;
      OK(dtg_server_status(member.server->server, &text));
      const std::string status = dtg_string_data(text, nullptr);
      dtg_string_release(text);
      EXPECT_EQ(status.find("\"channel\":\"shared memory\"") != status.npos, unshared < 0) << unshared << ": " << status;
    });
    dtg_session_release(session);
    dtg_graph_release(graph);
    TearDown();
    SetUp();
    cluster_ = nullptr;
  }
}

// The quick ones join anew while the slow ones are in the group as it was, and link with it.
TEST_F(Groups, LeavingAndJoiningAgainAtOnce) {
  for (const int members : {2, 3}) {
    serve(members);
    all([&](Member& member) {
      uint64_t before = 0;
      for (int round = 0; round < 8 * members && member.group; ++round) {
        const uint64_t epoch = dtg_group_epoch(member.group);
        EXPECT_GT(epoch, before);
        before = epoch;
        OK(dtg_group_barrier(member.group, 0));
        if (round % members == member.rank) {
          std::this_thread::sleep_for(std::chrono::milliseconds(1 << round % 6));
          // That its epoch ends is no affair of those who have joined anew.
          if (round / members % 2 == 0) refused(dtg_group_barrier(member.group, 0), DTG_UNAVAILABLE, "the others have left");
        }
        OK(dtg_group_leave(member.group));
        dtg_group_release(std::exchange(member.group, nullptr));
        OK(dtg_group_join(member.server->server, nullptr, &member.group));
      }
    });
    TearDown();
    cluster_ = nullptr;
    SetUp();
  }
}

TEST_F(Groups, WhoDoesNotComeIsNamed) {
  serve(2);
  dtg_group_options options = DTG_GROUP_OPTIONS_INIT;
  options.join_timeout_ns = 300 * kMs;
  dtg_group* group = nullptr;
  std::string origin;
  const std::string message = refused(dtg_group_join(servers_[0]->server, &options, &group), DTG_DEADLINE_EXCEEDED, "alone", &origin);
  EXPECT_EQ(origin, "/job:worker/replica:0/task:0, /job:worker/replica:0/task:1, form");
  EXPECT_NE(message.find("task:1"), message.npos) << message;
  EXPECT_NE(message.find("has not joined"), message.npos) << message;
  // Another list of members.
  options.join_timeout_ns = 600 * kMs;
  const char* const turned[] = {"/job:worker/task:1", "/job:worker/task:0"};
  const char* const straight[] = {"/job:worker/task:0", "/job:worker/task:1"};
  std::thread other([&] {
    dtg_group_options theirs = options;
    theirs.members = turned;
    theirs.num_members = 2;
    dtg_group* none = nullptr;
    refused(dtg_group_join(servers_[1]->server, &theirs, &none), DTG_DEADLINE_EXCEEDED, "another order");
  });
  options.members = straight;
  options.num_members = 2;
  const std::string order = refused(dtg_group_join(servers_[0]->server, &options, &group), DTG_DEADLINE_EXCEEDED, "another order");
  other.join();
  EXPECT_NE(order.find("another order"), order.npos) << order;
  const char* const nobody[] = {"/job:worker/task:0", "/job:worker/task:7"};
  options.members = nobody;
  refused(dtg_group_join(servers_[0]->server, &options, &group), DTG_INVALID_ARGUMENT, "no such task");
  const char* const twice[] = {"/job:worker/task:0", "/job:worker/task:0"};
  options.members = twice;
  refused(dtg_group_join(servers_[0]->server, &options, &group), DTG_INVALID_ARGUMENT, "a member twice");
}

}  // namespace
}  // namespace outside
