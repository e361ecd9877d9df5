// CallTable: numbers the calls under way, matches answers to them and ends them by alarm. On the loop's thread.
#include "net/call_table.h"

#include <exception>

namespace dtg {
namespace {

// One that throws does not keep the others from their end.
void tell(const CallTable::Done& done, const Status& failure) noexcept {
  try {
    done(failure, {});
  } catch (...) {
  }
}

}  // namespace

struct CallTable::Call final : Loop::Alarm {
  CallTable* table = nullptr;
  uint32_t number = 0;
  std::string what;
  Done done;
  void ring() override { table->expire(number); }
};

CallTable::CallTable(Loop& loop) : loop_(loop) {}

CallTable::~CallTable() {
  for (auto& [number, call] : calls_) loop_.cancel(*call);
}

uint32_t CallTable::start(std::string what, Deadline deadline, Done done) {
  do ++last_;
  while (last_ == 0 || calls_.count(last_) != 0);
  auto call = std::make_unique<Call>();
  call->table = this;
  call->number = last_;
  call->what = std::move(what);
  call->done = std::move(done);
  Call& added = *calls_.emplace(last_, std::move(call)).first->second;
  try {
    if (!deadline.is_never()) loop_.set(added, deadline.at_ns);
  } catch (...) {
    calls_.erase(last_);
    throw;
  }
  return last_;
}

bool CallTable::finish(uint32_t number, std::string_view header) {
  const auto at = calls_.find(number);
  if (at == calls_.end()) return false;
  const std::unique_ptr<Call> call = std::move(at->second);
  calls_.erase(at);
  loop_.cancel(*call);
  try {
    call->done({}, header);
  } catch (const std::exception& problem) {
    tell(call->done, resource_exhausted("%s: the answer could not be taken: %s", call->what.c_str(), problem.what()));
  }
  return true;
}

void CallTable::expire(uint32_t number) {
  const auto at = calls_.find(number);
  if (at == calls_.end()) return;
  const std::unique_ptr<Call> call = std::move(at->second);
  calls_.erase(at);
  tell(call->done, deadline_exceeded("%s: no answer came in time", call->what.c_str()));
}

void CallTable::fail_all(const Status& reason) {
  const auto calls = std::move(calls_);
  calls_.clear();
  for (auto& [number, call] : calls) {
    loop_.cancel(*call);
    tell(call->done, reason.with_context(call->what));
  }
}

}  // namespace dtg
