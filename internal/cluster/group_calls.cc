// Which piece belongs to which call, and who meant what.
#include "cluster/group_calls.h"

#include <algorithm>
#include <cstring>

#include "cluster/group.h"

namespace dtg {
namespace {

constexpr size_t kCallsMost = 4096;  // of one member at a time
constexpr size_t kEndedKept = 64;
constexpr int64_t kStatementsNs = 1'000'000'000;  // how long the odd one is looked for

wire::GroupTerms to_wire(const CallTerms& terms) {
  wire::GroupTerms out;
  out.kind = static_cast<uint8_t>(terms.kind);
  out.reduction = static_cast<uint8_t>(terms.reduction);
  out.algorithm = static_cast<uint8_t>(terms.algorithm);
  out.open = terms.open;
  out.dtype = terms.dtype;
  out.root = terms.root;
  out.bucket = terms.bucket;
  out.shape = terms.shape;
  out.parts = terms.parts;
  if (terms.purpose) out.purpose = *terms.purpose;
  return out;
}

Result<CallTerms> from_wire(const wire::GroupTerms& terms) {
  if (terms.kind > kCollectiveMax || terms.reduction > kReductionMax || terms.algorithm > kAlgorithmMax)
    return data_loss("a collective came that this library does not know");
  if (terms.purpose.size() > CallTerms::kPurposeMax) return data_loss("the purpose of a collective came with too many letters");
  CallTerms out;
  out.kind = static_cast<Collective>(terms.kind);
  out.reduction = static_cast<Reduction>(terms.reduction);
  out.algorithm = static_cast<Algorithm>(terms.algorithm);
  out.open = terms.open;
  out.dtype = terms.dtype;
  out.root = terms.root;
  out.bucket = terms.bucket;
  out.shape = terms.shape;
  out.parts = terms.parts;
  out.rows = terms.rows;
  if (!terms.purpose.empty()) out.purpose = std::make_shared<const std::string>(terms.purpose);
  return out;
}

}  // namespace

GroupCalls::GroupCalls(Epoch& epoch) : epoch_(epoch), verdict_([this] { judge(judging_); }) {}

void GroupCalls::restart(uint64_t epoch, int rank, std::vector<int> members) {
  number_ = epoch;
  rank_ = rank;
  members_ = std::move(members);
  counts_.clear();
  drop_before(epoch);
}

// Nobody asks for what came or was said in earlier epochs.
void GroupCalls::drop_before(uint64_t epoch) {
  ended_.clear();
  stated_.clear();
  asked_.clear();
  epoch_.loop().cancel(verdict_);
  std::erase_if(refused_, [&](const auto& each) { return each.first.first < epoch; });
  std::erase_if(early_, [&](const auto& each) { return each.first.epoch < epoch; });
  std::erase_if(early_grants_, [&](const auto& each) { return each.first.epoch < epoch; });
  early_counts_.clear();
  for (const auto& [key, stream] : early_) ++early_counts_[key.member];
}

GroupCalls::Flight* GroupCalls::find(const Key& key) {
  const auto at = flights_.find(key);
  return at == flights_.end() ? nullptr : &at->second;
}

std::string GroupCalls::describe(const Key& key, const CallTerms& terms) const {
  return terms.text() + " " + number_text(key, "", "of ") + " of group \"" + epoch_.group_name() + "\"";
}

// Which call of the row, and of which instance where ops made it.
std::string GroupCalls::number_text(const Key& key, const char* what, const char* of_instance) {
  if (key.stream == 0) return format("%s#%llu", what, static_cast<unsigned long long>(key.number + 1));
  return format("%sinstance %d", of_instance, static_cast<int>(static_cast<int32_t>(static_cast<uint32_t>(key.stream))));
}

void GroupCalls::begin(const Ref<GroupCall>& call) {
  const std::string what = call->what_.terms.text();
  // The refusal of an op's call ends its run, and the run the epoch.
  const auto end = [&](const Status& why) {
    if (call->stream_ == 0) refuse(0, what, why);
    call->end(why, {});
  };
  if (flights_.size() >= kCallsMost) {
    return end(resource_exhausted("%s: %zu collectives of this member are under way already; wait for some of them", what.c_str(),
                                  flights_.size()));
  }
  if (!counts_.has_room() && counts_.count(call->stream_) == 0) {
    return end(resource_exhausted("%s: more than %zu instances that are not numbered one after the other were called in this epoch; "
                                  "use some of them again, or form the group \"%s\" anew",
                                  what.c_str(), InstanceCounts::kRunsMost, epoch_.group_name().c_str()));
  }
  if (takes_any_order(call->what_.terms.algorithm)) call->what_.hosts = epoch_.hosts();
  auto exchange = Exchange::make(std::move(call->what_), rank_, static_cast<int>(members_.size()), *this, epoch_.budget());
  if (!exchange.ok()) return end(exchange.status());
  const Key key{call->stream_, counts_.count(call->stream_)};
  exchange.value()->stream = key.stream;
  exchange.value()->number = key.number;
  const Ref<Exchange> kept = exchange.value();
  flights_[key] = {call, kept, false};
  const Status status = kept->begin();
  if (!kept->begun()) {
    // Nobody has heard of it.
    flights_.erase(key);
    return end(status.ok() ? internal_error("a collective did not begin") : status);
  }
  counts_.add(key.stream);
  call->alarm_ = std::make_unique<AlarmCall>([this, key] { late(key); });
  epoch_.loop().set(*call->alarm_, call->deadline().at_ns);
  if (const auto refused = refused_.extract(std::pair(number_, key))) return epoch_.poison(refused.mapped());
  if (!status.ok()) return settle(key, status);
  if (find(key)) catch_up(key);
  if (std::erase(asked_, key) > 0) state(key);
}

void GroupCalls::refuse(uint64_t stream, const std::string& what, const Status& why) {
  const Key key{stream, counts_.count(stream)};
  const Status told = why.with_context(format("%s refused %s %s of group \"%s\"", epoch_.name_of(rank_).c_str(), what.c_str(),
                                              number_text(key, "", "of ").c_str(), epoch_.group_name().c_str()));
  if (key.number == 0 && !counts_.has_room()) return epoch_.poison(told);
  counts_.add(stream);
  refused_.erase({number_, key});
  std::erase(asked_, key);
  forget_early(key);
  // A dispute that says at once what it is about.
  wire::GroupWord word;
  word.verb = static_cast<uint8_t>(GroupVerb::dispute);
  word.epoch = number_;
  word.stream = key.stream;
  word.number = key.number;
  word.status = told;
  for (int rank = 0; rank < static_cast<int>(members_.size()); ++rank) {
    if (rank != rank_) epoch_.send(rank, word);
  }
}

// Nobody takes what was sent ahead for that call.
void GroupCalls::forget_early(const Key& key) {
  for (const auto& [early, stream] : early_) {
    if (early.epoch == number_ && early.key == key) --early_counts_[early.member];
  }
  std::erase_if(early_, [&](const auto& each) { return each.first.epoch == number_ && each.first.key == key; });
  std::erase_if(early_grants_, [&](const auto& each) { return each.first.epoch == number_ && each.first.key == key; });
}

void GroupCalls::refused_elsewhere(uint64_t epoch, const Key& key, const Status& why) {
  if (epoch == number_ && find(key)) return epoch_.poison(why);
  // It has ended here without that member, or was refused here too.
  if (epoch == number_ && key.number < counts_.count(key.stream)) return;
  if (refused_.size() < kEarlyMost) refused_.try_emplace({epoch, key}, why);
  else if (epoch == number_) epoch_.poison(why);
}

// What others have sent ahead.
void GroupCalls::catch_up(const Key& key) {
  const uint32_t lanes = find(key)->exchange->lanes();
  for (int rank = 0; rank < static_cast<int>(members_.size()); ++rank) {
    for (uint8_t lane = 0; lane < lanes; ++lane) {
      const EarlyKey early{number_, key, members_[static_cast<size_t>(rank)], lane};
      if (const auto grant = early_grants_.extract(early)) {
        if (Flight* const flight = find(key)) settle(key, flight->exchange->granted(rank, lane, grant.mapped()));
      }
      const auto stream = early_.extract(early);
      if (!stream) continue;
      --early_counts_[early.member];
      wire::GroupData& data = stream.mapped().first;
      Flight* const flight = find(key);
      if (!flight) continue;
      const Ref<Exchange> exchange = flight->exchange;
      const auto met = meet(key, rank, data);
      Status status = met.status();
      if (met.ok() && met.value()) {
        const auto to = exchange->landing(rank, lane, 0, stream.mapped().arrived, data.total);
        status = to.status();
        if (status.ok() && stream.mapped().arrived > 0) std::memcpy(to.value(), stream.mapped().bytes->data(), stream.mapped().arrived);
        if (status.ok()) status = exchange->arrived(rank, lane, 0, stream.mapped().arrived);
      }
      settle(key, status);
    }
  }
  settle(key, {});
}

// The first piece of a stream: do both ends mean the same?
// Where not, the epoch may have ended before this returns, and the flight with it.
Result<bool> GroupCalls::meet(const Key& key, int rank, const wire::GroupData& data) {
  Flight* const flight = find(key);
  if (!flight || flight->disputed) return false;
  if (!data.has_terms) return true;
  DTG_ASSIGN(const CallTerms theirs, from_wire(data.terms));
  if (flight->exchange->terms().agrees(theirs)) {
    DTG_TRY(flight->exchange->learn(rank, theirs));
    return true;
  }
  flight->disputed = true;
  dispute(key);
  return false;
}

Result<Channel::Landing> GroupCalls::piece_begins(int member, int rank, const wire::GroupData& data, uint64_t bytes, Ref<Buffer>* early) {
  const Key key{data.stream, data.number};
  Flight* const flight = rank >= 0 ? find(key) : nullptr;
  if (flight) {
    const Ref<Exchange> exchange = flight->exchange;
    const auto met = meet(key, rank, data);
    if (!met.ok()) settle(key, met.status());
    if (!met.ok() || !met.value()) return Channel::Landing{};
    const auto to = exchange->landing(rank, data.lane, data.offset, bytes, data.total);
    if (to.ok()) return Channel::Landing{to.value(), exchange.get(), true};
    settle(key, to.status());
    return Channel::Landing{};
  }
  // Of a call that has ended here without it.
  if (rank >= 0 && data.number < counts_.count(data.stream)) return Channel::Landing{};
  if (data.offset + bytes > kUnaskedBytes) return data_loss("a piece of a collective came unasked");
  if (early_counts_[member] >= kEarlyMost) return resource_exhausted("more than %zu streams were sent ahead", kEarlyMost);
  if (bytes == 0) return Channel::Landing{};
  DTG_ASSIGN(*early, Buffer::allocate(static_cast<int64_t>(bytes)));
  return Channel::Landing{(*early)->data(), nullptr};
}

Status GroupCalls::piece_arrived(int member, int rank, const wire::GroupData& data, uint64_t bytes, const Ref<Buffer>& early,
                                 const void* lent) {
  const Key key{data.stream, data.number};
  Flight* const flight = rank >= 0 ? find(key) : nullptr;
  if (flight) {
    if (flight->disputed) return {};
    const Ref<Exchange> exchange = flight->exchange;
    if (early) {  // the call began while the piece was on its way
      const auto met = meet(key, rank, data);
      if (!met.ok() || !met.value()) return settle(key, met.status()), Status();
      const auto to = exchange->landing(rank, data.lane, data.offset, bytes, data.total);
      if (!to.ok()) return settle(key, to.status()), Status();
      std::memcpy(to.value(), early->data(), bytes);
    }
    settle(key, exchange->arrived(rank, data.lane, data.offset, bytes, lent));
    return {};
  }
  if (rank >= 0 && data.number < counts_.count(data.stream)) return {};
  const EarlyKey at{data.epoch, key, member, data.lane};
  auto found = early_.find(at);
  if (found == early_.end()) {
    if (data.offset != 0 || !data.has_terms) return data_loss("a stream of a collective came without its beginning");
    found = early_.emplace(at, EarlyStream{data, nullptr, 0}).first;
    ++early_counts_[member];
  }
  EarlyStream& stream = found->second;
  if (data.offset != stream.arrived) return data_loss("a piece of a collective came that is out of place");
  if (bytes == 0) return {};
  if (!stream.bytes) {
    if (data.offset == 0 && bytes == std::min(data.total, kUnaskedBytes)) {
      stream.bytes = early;
      stream.arrived = bytes;
      return {};
    }
    DTG_ASSIGN(stream.bytes, Buffer::allocate(static_cast<int64_t>(kUnaskedBytes)));
  }
  std::memcpy(static_cast<char*>(stream.bytes->data()) + stream.arrived, early->data(), bytes);
  stream.arrived += bytes;
  return {};
}

Status GroupCalls::granted(int member, int rank, const wire::GroupWord& word) {
  const Key key{word.stream, word.number};
  Flight* const flight = rank >= 0 ? find(key) : nullptr;
  if (flight) {
    const Ref<Exchange> exchange = flight->exchange;
    settle(key, exchange->granted(rank, word.lane, word.value));
    return {};
  }
  if (rank >= 0 && word.number < counts_.count(word.stream)) return {};
  if (early_grants_.size() >= kEarlyMost * 4) return resource_exhausted("too much credit came ahead of its calls");
  uint64_t& upto = early_grants_[{word.epoch, key, member, word.lane}];
  upto = std::max(upto, word.value);
  return {};
}

void GroupCalls::forget(int member, bool has_left) {
  const auto useless = [&](const auto& each) { return each.first.member == member && !(has_left && each.first.epoch >= number_); };
  early_counts_[member] -= std::erase_if(early_, useless);
  std::erase_if(early_grants_, useless);
}

// ---- sending -------------------------------------------------------------------------------------------------

void GroupCalls::send(Exchange& exchange, const Piece& piece) {
  const Key key = key_of(exchange);
  wire::GroupData data;
  data.epoch = number_;
  data.stream = key.stream;
  data.number = key.number;
  data.lane = piece.lane;
  data.offset = piece.offset;
  data.total = piece.total;
  data.has_terms = piece.offset == 0;
  if (data.has_terms) data.terms = to_wire(exchange.terms());
  data.terms.rows = piece.rows;
  auto frame = std::make_unique<OutFrame>();
  frame->head = wire::make_head(wire::Kind::group_data, 0, wire::encode(data), piece.bytes);
  frame->payload = piece.bytes > 0 ? piece.data : nullptr;
  frame->payload_bytes = piece.bytes;
  frame->owner = &exchange;
  frame->data = true;
  frame->taken = [this, keeper = epoch_.keeper(), kept = Ref<Exchange>::share(&exchange), key, rank = piece.rank, lane = piece.lane,
                  bytes = piece.bytes] { sent(key, kept.get(), rank, lane, bytes); };
  epoch_.send(piece.rank, std::move(frame));
}

void GroupCalls::grant(Exchange& exchange, int rank, uint8_t lane, uint64_t upto) {
  wire::GroupWord word;
  word.verb = static_cast<uint8_t>(GroupVerb::credit);
  word.epoch = number_;
  word.stream = exchange.stream;
  word.number = exchange.number;
  word.lane = lane;
  word.value = upto;
  epoch_.send(rank, std::move(word));
}

void GroupCalls::sent(const Key& key, const Exchange* exchange, int rank, uint8_t lane, uint64_t bytes) {
  Flight* const flight = find(key);
  if (!flight || flight->exchange.get() != exchange) return;
  settle(key, flight->exchange->sent(rank, lane, bytes));
}

// ---- ends ----------------------------------------------------------------------------------------------------

void GroupCalls::settle(const Key& key, const Status& status) {
  Flight* const flight = find(key);
  if (!flight) return;
  if (!status.ok()) return epoch_.poison(status.with_context(describe(key, flight->exchange->terms())));
  if (!flight->exchange->done()) return;
  const Flight ended = std::move(*flight);
  flights_.erase(key);
  ended_.emplace_back(key, ended.exchange->terms());
  if (ended_.size() > kEndedKept) ended_.pop_front();
  if (ended.call->alarm_) epoch_.loop().cancel(*ended.call->alarm_);
  ended.call->end({}, ended.exchange->result());
}

void GroupCalls::late(const Key& key) {
  Flight* const flight = find(key);
  if (!flight) return;
  const bool silent = !flight->exchange->missing(true).empty();
  std::string names;
  const auto missing = flight->exchange->missing(silent);
  for (const int rank : missing) names += (names.empty() ? "" : ", ") + epoch_.name_of(rank);
  if (!flight->exchange->hears_all() && !names.empty()) names += ", which by this algorithm may wait for others in turn";
  const std::string why =
      names.empty() ? "others have not taken what it sends" : (silent ? "nothing has come from " : "it waits for ") + names;
  const Status late = deadline_exceeded("%s did not end within its time: %s%s", describe(key, flight->exchange->terms()).c_str(),
                                        why.c_str(), other_calls(key, {missing.begin(), missing.end()}).c_str());
  epoch_.poison(missing.empty() ? late : late.at_peer(epoch_.task_of(missing[0])));
}

// Ops whose graphs number their calls differently wait for each other, and neither is the one to blame: what those called that are waited
// for, as far as it was heard here.
std::string GroupCalls::other_calls(const Key& key, const std::vector<int>& ranks) const {
  if (key.stream == 0) return "";
  std::map<int, Key> called;
  std::string text;
  for (const auto& [early, stream] : early_) {
    const auto rank = std::ranges::find(members_, early.member) - members_.begin();
    if (early.epoch != number_ || std::ranges::find(ranks, static_cast<int>(rank)) == ranks.end()) continue;
    const auto terms = from_wire(stream.first.terms);
    if (!terms.ok() || !called.emplace(early.member, early.key).second) continue;
    text +=
        "; " + epoch_.name_of(static_cast<int>(rank)) + " has called " + describe(early.key, terms.value()) + ", which was not called here";
  }
  return text +
         "; where the members' graphs differ they wait for each other: check that all have made the same strategies and models of the "
         "group, as many and in the same order, and run the same";
}

std::map<GroupCalls::Key, GroupCalls::Flight>::iterator GroupCalls::find(const Ref<GroupCall>& call) {
  return std::ranges::find_if(flights_, [&](const auto& each) { return each.second.call == call; });
}

void GroupCalls::out_of_time(const Ref<GroupCall>& call) {
  if (const auto at = find(call); at != flights_.end()) late(Key(at->first));
}

void GroupCalls::cancel(const Ref<GroupCall>& call, const Status& why) {
  const auto at = find(call);
  if (at != flights_.end()) epoch_.poison(why.with_context(describe(at->first, at->second.exchange->terms())));
}

void GroupCalls::fail_all(const Status& cause, bool ends_for_good) {
  auto flights = std::exchange(flights_, {});
  for (auto& [key, flight] : flights) {
    if (flight.call->alarm_) epoch_.loop().cancel(*flight.call->alarm_);
    epoch_.let_go(*flight.exchange);
  }
  // What comes for a later one is kept: others may be in it already.
  drop_before(ends_for_good ? UINT64_MAX : number_ + 1);
  for (auto& [key, flight] : flights) flight.call->end(cause, {});
}

bool GroupCalls::needs(int rank) const {
  return std::ranges::any_of(flights_, [&](const auto& each) { return each.second.exchange->needs(rank); });
}

// ---- who is the odd one ----------------------------------------------------------------------------------------

void GroupCalls::dispute(const Key& key) {
  wire::GroupWord word;
  word.verb = static_cast<uint8_t>(GroupVerb::dispute);
  word.epoch = number_;
  word.stream = key.stream;
  word.number = key.number;
  for (int rank = 0; rank < static_cast<int>(members_.size()); ++rank) {
    if (rank != rank_) epoch_.send(rank, word);
  }
  state(key);
}

void GroupCalls::disputed(const wire::GroupWord& word) {
  const Key key{word.stream, word.number};
  if (!word.status.ok()) return refused_elsewhere(word.epoch, key, word.status);
  if (std::ranges::find(asked_, key) == asked_.end()) state(key);
}

// Tells rank 0 what this member means, or will when it comes to it.
void GroupCalls::state(const Key& key) {
  const CallTerms* terms = nullptr;
  if (Flight* const flight = find(key)) {
    flight->disputed = true;
    terms = &flight->exchange->terms();
  } else if (const auto at = std::ranges::find(ended_, key, &std::pair<Key, CallTerms>::first); at != ended_.end()) {
    terms = &at->second;
  }
  if (!terms) {
    if (asked_.size() < kCallsMost) asked_.push_back(key);
    return;
  }
  wire::GroupWord word;
  word.verb = static_cast<uint8_t>(GroupVerb::statement);
  word.epoch = number_;
  word.stream = key.stream;
  word.number = key.number;
  word.status = invalid_argument("%s", terms->text().c_str());
  if (rank_ == 0) stated(0, word);
  else epoch_.send(0, std::move(word));
}

void GroupCalls::stated(int rank, const wire::GroupWord& word) {
  if (rank_ != 0) return;
  const Key key{word.stream, word.number};
  if (stated_.size() >= kCallsMost && !stated_.contains(key)) return;
  auto& all = stated_[key];
  if (stated_.size() == 1 && all.empty()) {
    judging_ = key;
    epoch_.loop().set(verdict_, epoch_.loop().clock().monotonic_ns() + kStatementsNs);
  }
  all[rank] = word.status.message();
  if (all.size() == members_.size()) judge(key);
}

void GroupCalls::judge(const Key& key) {
  const auto found = stated_.find(key);
  if (found == stated_.end()) return;
  const auto& all = found->second;
  std::map<std::string, std::vector<int>> by_text;
  for (const auto& [rank, text] : all) by_text[text].push_back(rank);
  const auto most = std::ranges::max_element(by_text, {}, [](const auto& each) { return each.second.size(); });
  const bool clear = std::ranges::count_if(by_text, [&](const auto& each) { return each.second.size() == most->second.size(); }) == 1;
  std::string odd, others = clear ? "the others " + most->first : "";
  for (const auto& [text, ranks] : by_text) {
    if (clear && text == most->first) continue;
    for (const int rank : ranks) odd += (odd.empty() ? "" : ", ") + epoch_.name_of(rank) + " called " + text;
  }
  const std::string which = number_text(key, "collective ", "the collective of ");
  epoch_.poison(invalid_argument("%s of group \"%s\" is not the same everywhere: %s%s%s", which.c_str(), epoch_.group_name().c_str(),
                                 odd.c_str(), clear ? ", " : "", others.c_str()));
}

}  // namespace dtg
