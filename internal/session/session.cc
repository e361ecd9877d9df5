// The run path. A warm synchronous run: hash what is asked, find the plan, take a frame, set addresses, run,
// give the frame back. No mutex and no allocation on that way.
#include "session/session.h"

#include <algorithm>
#include <cstring>

#include "cluster/driver.h"
#include "session/frame_wait.h"

namespace dtg {
namespace {

uint64_t mix(uint64_t hash, uint64_t value) {
  hash = (hash ^ value) * 0x9e3779b97f4a7c15ull;
  return hash ^ (hash >> 29);
}

bool same_request(const Plan& plan, const RunArgs& args) {
  const PlanRequest& request = plan.asked();
  if (!std::ranges::equal(request.fetches, args.fetches) || !std::ranges::equal(request.targets, args.targets)) return false;
  if (request.feeds.size() != args.feeds.size()) return false;
  for (size_t i = 0; i < args.feeds.size(); ++i) {
    if (request.feeds[i].value != args.feeds[i]) return false;
  }
  return feeds_match(plan, args.feed_tensors);
}

// Of everything that decides the plan.
uint64_t hash_of(const RunArgs& args) {
  uint64_t hash = mix(args.feeds.size(), args.fetches.size());
  for (size_t i = 0; i < args.feeds.size(); ++i) {
    const Tensor& tensor = *args.feed_tensors[i];
    hash = mix(mix(hash, args.feeds[i].id), static_cast<uint64_t>(tensor.dtype()));
    for (int64_t dim : tensor.shape().dims()) hash = mix(hash, static_cast<uint64_t>(dim));
  }
  for (Value fetch : args.fetches) hash = mix(hash, fetch.id);
  for (NodeId target : args.targets) hash = mix(hash, target);
  return hash;
}

}  // namespace

bool feeds_match(const Plan& plan, std::span<const Tensor* const> tensors) {
  const auto& feeds = plan.feeds();
  if (feeds.size() != tensors.size()) return false;
  for (size_t i = 0; i < feeds.size(); ++i) {
    if (feeds[i].dtype != tensors[i]->dtype() || !(feeds[i].shape == tensors[i]->shape())) return false;
  }
  return true;
}

Session::Session(Ref<Runtime> runtime, Ref<Graph> graph, const Options& options, std::vector<Device> devices, Ref<Driver> driver)
    : runtime_(std::move(runtime)),
      graph_(std::move(graph)),
      options_(options),
      driver_(std::move(driver)),
      placer_(std::move(devices), &runtime_->kernels(), options.soft_placement),
      runs_(runtime_->counters().counter("dtg_runs_total", "Runs of sessions, asynchronous ones included.")),
      failures_(runtime_->counters().counter("dtg_run_failures_total", "Runs that ended with an error.")),
      plans_made_(runtime_->counters().counter("dtg_plans_total",
                                               "Plans made; a number that grows with the runs means shapes that never repeat.")) {
  plans_.reserve(kPlans + 1);
  if (driver_ && driver_->here()) driver_->here()->enter(this);
}

Session::~Session() {
  if (driver_ && driver_->here()) driver_->here()->leave(this);
  plans_.clear();
  if (driver_) driver_->close();
}

// A target that is no local session names a task, which tells the rest of the cluster.
Result<Ref<Driver>> Session::connect_driver(const Ref<Runtime>& runtime, std::string_view target, const Options& options) {
  if (target.empty() || target == "local") return Ref<Driver>();
  if (options.connect_timeout_ns <= 0) return invalid_argument("connect a session: the connect timeout must be positive");
  DTG_ASSIGN(const Address address, Address::parse(target));
  DTG_ASSIGN(Host host, runtime->host());
  host.security = options.security;
  return Driver::connect(host, {}, address, Deadline::after(runtime->clock(), options.connect_timeout_ns), runtime);
}

Result<Ref<Session>> Session::connect(Ref<Runtime> runtime, std::string_view target, Ref<Graph> graph, const Options& options) {
  if (options.cpu_devices < 1 || options.cpu_devices > 256) {
    return invalid_argument("connect a session: cpu_devices is %d; from 1 to 256 are possible", options.cpu_devices);
  }
  if (options.default_timeout_ns <= 0) return invalid_argument("connect a session: the default timeout must be positive");
  DTG_ASSIGN(Ref<Driver> driver, connect_driver(runtime, target, options));
  std::vector<Device> devices;
  if (driver) devices = driver->devices();
  for (int i = 0; !driver && i < options.cpu_devices; ++i) {
    Device device;
    device.text = "/job:localhost/replica:0/task:0/device:CPU:" + std::to_string(i);
    DTG_ASSIGN(device.name, DeviceName::parse(device.text));
    device.type = "CPU";
    devices.push_back(std::move(device));
  }
  return Ref<Session>::adopt(new Session(std::move(runtime), std::move(graph), options, std::move(devices), std::move(driver)));
}

void Session::lock() const {
  while (word_.test_and_set(std::memory_order_acquire)) spin_pause();
}

Status Session::enter(Active& active) {
  lock();
  Status refusal = refusal_;
  if (refusal.ok()) {
    active.prev = nullptr;  // a repeated run comes more than once
    active.next = first_;
    if (first_) first_->prev = &active;
    first_ = &active;
  }
  unlock();
  return refusal;
}

void Session::evicted(const Status& why) {
  lock();
  if (refusal_.ok()) refusal_ = why;
  for (Active* run = first_; run; run = run->next) run->frame->step().abort(why);
  unlock();
}

void Session::leave(Active& active) {
  lock();
  (active.prev ? active.prev->next : first_) = active.next;
  if (active.next) active.next->prev = active.prev;
  unlock();
}

Status Session::check(const RunArgs& args) const {
  if (args.feeds.size() != args.feed_tensors.size())
    return invalid_argument("run: %zu feeds, but %zu tensors", args.feeds.size(), args.feed_tensors.size());
  for (const Tensor* tensor : args.feed_tensors) {
    if (!tensor || !tensor->valid()) return invalid_argument("run: a fed tensor is missing");
  }
  return {};
}

Result<Deadline> Session::deadline(int64_t timeout_ns) const {
  if (timeout_ns < 0)
    return invalid_argument("run: timeout_ns is %lld; 0 means the session's default, negative values are not accepted",
                            static_cast<long long>(timeout_ns));
  return Deadline::after(runtime_->clock(), timeout_ns ? timeout_ns : options_.default_timeout_ns);
}

Result<Ref<Plan>> Session::find_plan(const RunArgs& args, Deadline until) {
  const uint64_t hash = hash_of(args);
  Ref<Plan> found;
  lock();
  for (size_t i = plans_.size(); i-- > 0;) {
    if (plans_[i].hash != hash || !same_request(*plans_[i].plan, args)) continue;
    found = plans_[i].plan;
    if (i + 1 < plans_.size() && i + 16 < plans_.size())
      std::rotate(plans_.begin() + static_cast<std::ptrdiff_t>(i), plans_.begin() + static_cast<std::ptrdiff_t>(i) + 1, plans_.end());
    break;
  }
  unlock();
  if (found && found->is_current()) return found;
  return make_plan(hash, args, until);
}

// Whoever plans for a cluster may wait for other tasks; who comes after waits no longer than its own deadline.
Status Session::wait_to_plan(std::unique_lock<std::mutex>& planning, Deadline until) {
  if (!driver_) {
    planning.lock();
    return {};
  }
  std::mutex mutex;
  std::condition_variable pause;
  while (!planning.try_lock()) {
    if (until.passed(runtime_->clock()))
      return deadline_exceeded("run: another run of the session was being planned until the deadline passed");
    std::unique_lock lock(mutex);
    pause.wait_for(lock, std::chrono::milliseconds(1));
  }
  return {};
}

Result<Ref<Plan>> Session::make_plan(uint64_t hash, const RunArgs& args, Deadline until) {
  std::unique_lock planning(planning_, std::defer_lock);
  DTG_TRY(wait_to_plan(planning, until));
  PlanRequest request;
  for (size_t i = 0; i < args.feeds.size(); ++i)
    request.feeds.push_back({args.feeds[i], args.feed_tensors[i]->dtype(), args.feed_tensors[i]->shape()});
  request.fetches.assign(args.fetches.begin(), args.fetches.end());
  request.targets.assign(args.targets.begin(), args.targets.end());
  PlanContext context;
  context.kernels = &runtime_->kernels();
  context.ops = &runtime_->ops();
  context.pool = &runtime_->pool();
  context.store = &store_;
  context.placer = &placer_;
  context.clock = &runtime_->clock();
  context.tracer = &runtime_->tracer();
  context.fuse = options_.fusion;
  Ref<Plan> plan;
  if (driver_) {
    DTG_ASSIGN(plan, driver_->make_plan(context, graph_, std::move(request), until));
  } else {
    DTG_ASSIGN(plan, Plan::make(context, graph_, std::move(request)));
  }
  plans_made_.add();
  std::vector<Ref<Plan>> dropped;  // destroyed outside of the spin word
  dropped.reserve(4);
  lock();
  std::erase_if(plans_, [&](Entry& entry) {
    const bool stale = entry.hash == hash && same_request(*entry.plan, args);
    if (stale && dropped.size() < 4) dropped.push_back(std::move(entry.plan));
    return stale;
  });
  if (plans_.size() >= kPlans) {
    dropped.push_back(std::move(plans_.front().plan));
    plans_.erase(plans_.begin());
  }
  plans_.push_back({hash, plan});
  unlock();
  return plan;
}

Result<Ref<Plan>> Session::plan_for(const RunArgs& args) {
  DTG_TRY(check(args));
  DTG_ASSIGN(const Deadline until, deadline(args.timeout_ns));
  return find_plan(args, until);
}

Status Session::run(const RunArgs& args, std::span<Tensor> fetched) {
  DTG_TRY(check(args));
  DTG_ASSIGN(const Deadline until, deadline(args.timeout_ns));
  DTG_ASSIGN(Ref<Plan> plan, find_plan(args, until));
  return run_plan(plan, args, fetched, until);
}

Status Session::bind(Plan& plan, Frame& frame, std::span<const Tensor* const> feeds, std::span<Tensor> fetched) {
  for (size_t i = 0; i < feeds.size(); ++i) frame.bind(plan.feeds()[i].slot, feeds[i]->data());
  for (size_t i = 0; i < fetched.size(); ++i) {
    const Fetch& fetch = plan.fetches()[i];
    if (fetched[i].valid()) {
      const bool fits = fetched[i].dtype() == fetch.dtype && (fetch.dynamic || fetched[i].shape() == fetch.shape);
      if (!fits) {
        return invalid_argument("fetch \"%s\" into a given tensor: the value is %s%s, the tensor is %s",
                                plan.asked_graph().value_name(plan.asked().fetches[i]).c_str(), dtype_name(fetch.dtype),
                                fetch.dynamic ? "" : fetch.shape.text().c_str(), fetched[i].text().c_str());
      }
    } else if (!fetch.dynamic) {
      DTG_ASSIGN(fetched[i], plan.fetch_tensor(i));
    }
    if (fetch.direct) frame.bind(fetch.slot, fetched[i].data());
  }
  return plan.attendant() ? plan.attendant()->begin(frame) : Status();
}

Status Session::collect(Plan& plan, Frame& frame, std::span<Tensor> fetched) {
  for (size_t i = 0; i < fetched.size(); ++i) {
    const Fetch& fetch = plan.fetches()[i];
    if (fetch.direct) continue;
    if (fetch.dynamic) {
      const Shape& shape = frame.shape(fetch.slot);
      if (!fetched[i].valid()) {
        DTG_ASSIGN(fetched[i], Tensor::allocate(fetch.dtype, shape));
      } else if (!(fetched[i].shape() == shape)) {
        return invalid_argument("fetch \"%s\" into a given tensor: the value has shape %s, the tensor is %s",
                                plan.asked_graph().value_name(plan.asked().fetches[i]).c_str(), shape.text().c_str(),
                                fetched[i].text().c_str());
      }
    }
    if (fetched[i].bytes() > 0) std::memcpy(fetched[i].data(), frame.data(fetch.slot), static_cast<size_t>(fetched[i].bytes()));
  }
  return {};
}

Result<Frame*> Session::wait_for_frame(Plan& plan, Deadline deadline) {
  FrameWait wait;
  DTG_ASSIGN(Frame * frame, plan.lease(&wait));
  if (frame) return frame;
  if (Frame* granted = wait.until(runtime_->clock(), deadline)) return granted;
  if (plan.withdraw(&wait)) {
    return deadline_exceeded("run: %s", "other runs of the same plan took all its frames until the deadline passed");
  }
  return wait.until(runtime_->clock(), Deadline::never());
}

Status Session::run_plan(Ref<Plan>& plan, const RunArgs& args, std::span<Tensor> fetched, Deadline until) {
  bool outdated = false;
  Status status = attempt(*plan, args.feed_tensors, fetched, until, &outdated);
  if (!outdated) return status;
  DTG_ASSIGN(plan, find_plan(args, until));
  return attempt(*plan, args.feed_tensors, fetched, until, &outdated);
}

Status Session::attempt(Plan& plan, std::span<const Tensor* const> feeds, std::span<Tensor> fetched, Deadline until, bool* outdated) {
  DTG_ASSIGN(Frame * frame, plan.lease(nullptr));
  if (!frame) {
    DTG_ASSIGN(frame, wait_for_frame(plan, until));
  }
  frame->begin(sequence_.fetch_add(1, std::memory_order_relaxed), until);
  Active active;
  active.frame = frame;
  Status status = enter(active);
  if (status.ok()) {
    try {
      status = bind(plan, *frame, feeds, fetched);
      if (status.ok()) status = frame->run();
      if (status.ok()) status = collect(plan, *frame, fetched);
    } catch (const std::bad_alloc&) {
      status = resource_exhausted("run: out of memory");  // the frame and the list of runs must stay whole
    }
    leave(active);
  }
  *outdated = plan.give_back(*frame);
  runs_.add();
  if (!status.ok()) failures_.add();
  return status;
}

Result<Ref<Callable>> Session::prepare(std::span<const Value> feeds, std::span<const Value> fetches, std::span<const NodeId> targets) {
  for (Value feed : feeds) DTG_TRY(graph_->check(feed).with_context("prepare, feed"));
  for (Value fetch : fetches) DTG_TRY(graph_->check(fetch).with_context("prepare, fetch"));
  for (NodeId target : targets) DTG_TRY(graph_->check_node(target).with_context("prepare, target"));
  if (fetches.empty() && targets.empty()) return invalid_argument("prepare: nothing is asked for; name at least one fetch or target");
  return make_ref<Callable>(Ref<Session>::share(this), std::vector<Value>(feeds.begin(), feeds.end()),
                            std::vector<Value>(fetches.begin(), fetches.end()), std::vector<NodeId>(targets.begin(), targets.end()));
}

Callable::~Callable() {
  if (Plan* plan = last_.exchange(nullptr)) plan->release();
}

Status Callable::run(std::span<const Tensor* const> feeds, std::span<Tensor> fetched, int64_t timeout_ns) {
  if (feeds.size() != feeds_.size() || fetched.size() != fetches_.size()) {
    return invalid_argument("call: prepared with %zu feeds and %zu fetches, called with %zu and %zu", feeds_.size(), fetches_.size(),
                            feeds.size(), fetched.size());
  }
  for (const Tensor* tensor : feeds) {
    if (!tensor || !tensor->valid()) return invalid_argument("call: a fed tensor is missing");
  }
  const RunArgs args{feeds_, feeds, fetches_, targets_, timeout_ns};
  DTG_ASSIGN(const Deadline until, session_->deadline(timeout_ns));
  Ref<Plan> plan = Ref<Plan>::adopt(last_.exchange(nullptr, std::memory_order_acq_rel));
  if (!plan || !feeds_match(*plan, feeds) || !plan->is_current()) {
    DTG_ASSIGN(plan, session_->find_plan(args, until));
  }
  const Status status = session_->run_plan(plan, args, fetched, until);
  // Back into the cell, unless another call has put one there meanwhile.
  Plan* none = nullptr;
  Plan* const mine = plan.leak();
  if (!last_.compare_exchange_strong(none, mine, std::memory_order_acq_rel)) mine->release();
  return status;
}

Status Session::reset(const std::vector<std::string>& containers) {
  store_.reset(containers);
  if (!driver_) return {};
  DTG_ASSIGN(const Deadline until, deadline(0));
  return driver_->reset(containers, until);
}

Status Session::end_job(int64_t timeout_ns) {
  if (!driver_) return failed_precondition("end the job: this session is local, there are no other tasks");
  DTG_ASSIGN(const Deadline until, deadline(timeout_ns));
  return driver_->end_job(until);
}

Result<std::string> Session::inspect_cluster(int64_t timeout_ns) {
  if (!driver_) return failed_precondition("inspect the cluster: this session is local, there are no other tasks");
  DTG_ASSIGN(const Deadline until, deadline(timeout_ns));
  return driver_->inspect(until);
}

Status Session::close(int64_t timeout_ns) {
  if (timeout_ns < 0) return invalid_argument("close: the timeout may not be negative");
  const Deadline until = Deadline::after(runtime_->clock(), timeout_ns ? timeout_ns : options_.default_timeout_ns);
  const Status refusal = failed_precondition("run: the session is closed");
  lock();
  refusal_ = refusal;
  for (Active* run = first_; run; run = run->next)
    run->frame->step().abort(cancelled("the session was closed while this run was under way"));
  unlock();
  for (;;) {
    lock();
    const bool idle = first_ == nullptr;
    unlock();
    if (idle) {
      if (driver_) driver_->close();
      return {};
    }
    if (until.passed(runtime_->clock()))
      return deadline_exceeded("close: runs are still under way; they were cancelled and will end on their own");
    sched_yield();
  }
}

}  // namespace dtg
