// Decodes messages from header bytes that come from anywhere. Every root is verified first; every number that means a
// size, a type or a code is checked before it becomes one. Pure functions; any thread.
#include <algorithm>

#include "wire/messages.h"
#include "wire/schema/messages_generated.h"
#include "wire/verified.h"

namespace dtg::wire {
namespace {

constexpr size_t kHeaderMax = size_t{1} << 20;
constexpr size_t kTextMax = 16384;
constexpr size_t kNameMax = 256;

template <class T>
Result<Verified<T>> open(std::string_view header, Kind kind) {
  return Verified<T>::make(header, nullptr, kHeaderMax, kind_name(kind));
}

std::string text(const flatbuffers::String* of, size_t bytes_max = kTextMax) {
  const std::string_view found = text_of(of);
  return std::string(found.substr(0, std::min(found.size(), bytes_max)));
}

Status status(const fb::StatusValue* of) {
  if (!of || of->code() == 0) return {};
  const int32_t number = of->code();
  const Code code = number > 0 && number <= 16 ? static_cast<Code>(number) : Code::unknown;
  Origin origin;
  origin.task = text(of->task(), kNameMax);
  origin.peer = text(of->peer(), kNameMax);
  origin.node = text(of->node(), kNameMax);
  origin.phase = text(of->phase(), kNameMax);
  return Status(code, text(of->message()), std::move(origin));
}

std::vector<std::string> lines(const flatbuffers::String* of) {
  std::vector<std::string> all;
  std::string_view left = text_of(of);
  while (!left.empty()) {
    const size_t end = std::min(left.find('\n'), left.size());
    all.emplace_back(left.substr(0, end));
    left.remove_prefix(std::min(end + 1, left.size()));
  }
  return all;
}

// A time that another machine says is left: capped at a day, so that sums cannot overflow.
int64_t nanoseconds(uint64_t of) {
  constexpr uint64_t kDay = uint64_t{86'400} * 1'000'000'000;
  return static_cast<int64_t>(std::min(of, kDay));
}

Status bad(Kind kind, const char* what) { return data_loss("read a %s: %s", kind_name(kind), what); }

}  // namespace

Status decode(std::string_view header, Hello& m) {
  DTG_ASSIGN(const auto root, open<fb::Hello>(header, Kind::hello));
  m.version_min = root->version_min();
  m.version_max = root->version_max();
  m.features = root->features();
  if (root->role() > 3) return bad(Kind::hello, "an unknown role");
  m.role = static_cast<Role>(root->role());
  m.task = text(root->task(), kNameMax);
  m.session = root->session();
  m.wanted_task = text(root->wanted_task(), kNameMax);
  m.wanted_incarnation = root->wanted_incarnation();
  m.heartbeat_ns = root->heartbeat_ns();
  m.life = root->life();
  m.group = text(root->group(), kNameMax);
  m.roster = root->roster();
  m.group_life = root->group_life();
  return {};
}

Status decode(std::string_view header, HelloReply& m) {
  DTG_ASSIGN(const auto root, open<fb::HelloReply>(header, Kind::hello_reply));
  m.status = status(root->status());
  m.version = root->version();
  m.features = root->features();
  m.task = text(root->task(), kNameMax);
  m.incarnation = root->incarnation();
  m.cluster = text_of(root->cluster());
  m.devices = lines(root->devices());
  m.heartbeat_ns = root->heartbeat_ns();
  m.group_life = root->group_life();
  return {};
}

Status decode(std::string_view header, Heartbeat& m) {
  DTG_ASSIGN(const auto root, open<fb::Heartbeat>(header, Kind::heartbeat));
  m.number = root->number();
  return {};
}

Status decode(std::string_view header, Goodbye& m) {
  DTG_ASSIGN(const auto root, open<fb::Goodbye>(header, Kind::goodbye));
  m.status = status(root->status());
  return {};
}

Status decode(std::string_view header, RegisterPart& m) {
  DTG_ASSIGN(const auto root, open<fb::RegisterPart>(header, Kind::register_part));
  m.deadline_left_ns = nanoseconds(root->deadline_left_ns());
  m.targets.clear();
  for (uint32_t i = 0; i < size_of(root->targets()); ++i) m.targets.push_back(element(root->targets(), i));
  return {};
}

Status decode(std::string_view header, RegisterReply& m) {
  DTG_ASSIGN(const auto root, open<fb::RegisterReply>(header, Kind::register_reply));
  m.status = status(root->status());
  m.part = root->part();
  m.unreachable = lines(root->unreachable());
  return {};
}

Status decode(std::string_view header, DropPart& m) {
  DTG_ASSIGN(const auto root, open<fb::DropPart>(header, Kind::drop_part));
  m.part = root->part();
  return {};
}

Status decode(std::string_view header, RunPart& m) {
  DTG_ASSIGN(const auto root, open<fb::RunPart>(header, Kind::run_part));
  m.part = root->part();
  m.sequence = root->sequence();
  m.deadline_left_ns = nanoseconds(root->deadline_left_ns());
  m.trace = root->trace();
  m.writer = root->writer();
  m.writer_epoch = root->writer_epoch();
  m.writer_sequence = root->writer_sequence();
  m.stage = root->stage();
  return {};
}

Status decode(std::string_view header, RunReply& m) {
  DTG_ASSIGN(const auto root, open<fb::RunReply>(header, Kind::run_reply));
  m.status = status(root->status());
  m.durable = root->durable();
  m.sequence = root->sequence();
  m.refused = root->refused();
  return {};
}

Status decode(std::string_view header, Abort& m) {
  DTG_ASSIGN(const auto root, open<fb::Abort>(header, Kind::abort));
  m.sequence = root->sequence();
  m.status = status(root->status());
  return {};
}

Status decode(std::string_view header, Data& m) {
  DTG_ASSIGN(const auto root, open<fb::Data>(header, Kind::data));
  m.sequence = root->sequence();
  m.edge = root->edge();
  if (!dtype_is_known(root->dtype()) || dtype_size(static_cast<DType>(root->dtype())) == 0) {
    return bad(Kind::data, "its element type cannot travel");
  }
  m.dtype = static_cast<DType>(root->dtype());
  if (size_of(root->dims()) > kRankMax) return bad(Kind::data, "the rank of its value is too high");
  int64_t dims[kRankMax] = {};
  const uint32_t rank = size_of(root->dims());
  for (uint32_t i = 0; i < rank; ++i) dims[i] = element(root->dims(), i);
  DTG_ASSIGN(m.shape, Shape::make({dims, rank}));
  const auto size = static_cast<uint64_t>(dtype_size(m.dtype));
  if (root->total() % size != 0 || root->total() / size != static_cast<uint64_t>(m.shape.count())) {
    return bad(Kind::data, "its length is not that of its shape");
  }
  m.offset = root->offset();
  if (m.offset > root->total()) return bad(Kind::data, "it begins behind the end of the value");
  return {};
}

Status decode(std::string_view header, Credit& m) {
  DTG_ASSIGN(const auto root, open<fb::Credit>(header, Kind::credit));
  m.sequence = root->sequence();
  m.edge = root->edge();
  m.bytes = root->bytes();
  return {};
}

Status decode(std::string_view header, Reset& m) {
  DTG_ASSIGN(const auto root, open<fb::Reset>(header, Kind::reset));
  m.containers = lines(root->containers());
  return {};
}

Status decode(std::string_view header, Reply& m) {
  DTG_ASSIGN(const auto root, open<fb::Reply>(header, Kind::reply));
  m.status = status(root->status());
  return {};
}

Status decode(std::string_view header, EndJob& m) {
  DTG_ASSIGN(const auto root, open<fb::EndJob>(header, Kind::end_job));
  m.reason = text(root->reason());
  return {};
}

Status decode(std::string_view header, Arrive& m) {
  DTG_ASSIGN(const auto root, open<fb::Arrive>(header, Kind::arrive));
  if (text_of(root->name()).size() > kNameMax) return bad(Kind::arrive, "the name of the barrier is too long");
  m.name = text(root->name(), kNameMax);
  m.end = root->end();
  m.ticket = root->ticket();
  m.expires_left_ns = nanoseconds(root->expires_left_ns());
  m.answer_left_ns = nanoseconds(root->answer_left_ns());
  m.those_there = root->those_there();
  return {};
}

Status decode(std::string_view header, ArriveReply& m) {
  DTG_ASSIGN(const auto root, open<fb::ArriveReply>(header, Kind::arrive_reply));
  m.status = status(root->status());
  m.released = root->released();
  m.gone = lines(root->gone());
  m.waits_for = text(root->waits_for());
  return {};
}

Status decode(std::string_view header, Roll& m) {
  DTG_ASSIGN(const auto root, open<fb::Roll>(header, Kind::roll));
  m.task = text(root->task(), kNameMax);
  if (root->presence() > 2) return bad(Kind::roll, "neither there nor gone");
  m.presence = static_cast<Presence>(root->presence());
  m.reason = text(root->reason());
  return {};
}

Status decode(std::string_view header, Inspect& m) {
  DTG_ASSIGN(const auto root, open<fb::Inspect>(header, Kind::inspect));
  m.write = root->write();
  return {};
}

Status decode(std::string_view header, InspectReply& m) {
  DTG_ASSIGN(const auto root, open<fb::InspectReply>(header, Kind::inspect_reply));
  m.status = status(root->status());
  m.json = text_of(root->json());
  return {};
}

Status decode(std::string_view header, GroupWord& m) {
  DTG_ASSIGN(const auto root, open<fb::GroupWord>(header, Kind::group_word));
  m.verb = root->verb();
  m.epoch = root->epoch();
  m.stream = root->stream();
  m.number = root->number();
  m.lane = root->lane();
  m.value = root->value();
  m.ranks.clear();
  for (uint32_t i = 0; i < size_of(root->ranks()); ++i) m.ranks.push_back(element(root->ranks(), i));
  m.status = status(root->status());
  m.sets.clear();
  if (size_of(root->sets()) > GroupWord::kSetsMost) return bad(Kind::group_word, "too many epochs");
  for (uint32_t i = 0; i < size_of(root->sets()); ++i) {
    const fb::GroupSet* const from = root->sets()->Get(i);
    GroupSet set{from->number(), {}};
    for (uint32_t k = 0; k < size_of(from->ranks()); ++k) set.ranks.push_back(element(from->ranks(), k));
    m.sets.push_back(std::move(set));
  }
  m.lives.clear();
  for (uint32_t i = 0; i < size_of(root->lives()); ++i) m.lives.push_back(element(root->lives(), i));
  return {};
}

Status decode(std::string_view header, GroupData& m) {
  DTG_ASSIGN(const auto root, open<fb::GroupData>(header, Kind::group_data));
  m.epoch = root->epoch();
  m.stream = root->stream();
  m.number = root->number();
  m.lane = root->lane();
  m.offset = root->offset();
  m.total = root->total();
  if (m.offset > m.total) return bad(Kind::group_data, "it begins behind the end of its stream");
  const fb::GroupTerms* const terms = root->terms();
  m.has_terms = terms != nullptr;
  if (!terms) return {};
  m.terms.kind = terms->kind();
  m.terms.reduction = terms->reduction();
  m.terms.algorithm = terms->algorithm();
  m.terms.open = terms->open();
  m.terms.root = terms->root();
  m.terms.bucket = terms->bucket();
  m.terms.parts = terms->parts();
  m.terms.rows = terms->rows();
  m.terms.purpose = text_of(terms->purpose());
  if (terms->dtype() != 0 && (!dtype_is_known(terms->dtype()) || dtype_size(static_cast<DType>(terms->dtype())) == 0))
    return bad(Kind::group_data, "its element type cannot travel");
  m.terms.dtype = static_cast<DType>(terms->dtype());
  if (size_of(terms->dims()) > kRankMax) return bad(Kind::group_data, "the rank of its tensor is too high");
  int64_t dims[kRankMax] = {};
  const uint32_t rank = size_of(terms->dims());
  for (uint32_t i = 0; i < rank; ++i) dims[i] = element(terms->dims(), i);
  DTG_ASSIGN(m.terms.shape, Shape::make({dims, rank}));
  return {};
}

Status decode(std::string_view header, Segment& m) {
  DTG_ASSIGN(const auto root, open<fb::Segment>(header, Kind::segment));
  m.number = root->number();
  m.slots = root->slots();
  m.slot_bytes = root->slot_bytes();
  return {};
}

Status decode(std::string_view header, Release& m) {
  DTG_ASSIGN(const auto root, open<fb::Release>(header, Kind::release));
  m.number = root->number();
  if (size_of(root->slots()) > Release::kSlotsMost) return bad(Kind::release, "too many slots");
  m.slots.clear();
  for (uint32_t i = 0; i < size_of(root->slots()); ++i) m.slots.push_back(element(root->slots(), i));
  return {};
}

namespace {
template <class M>
Status check(std::string_view header) {
  M message;
  return decode(header, message);
}
}  // namespace

Status check_message(Kind kind, std::string_view header) {
  switch (kind) {
    case Kind::hello: return check<Hello>(header);
    case Kind::hello_reply: return check<HelloReply>(header);
    case Kind::heartbeat: return check<Heartbeat>(header);
    case Kind::goodbye: return check<Goodbye>(header);
    case Kind::register_part: return check<RegisterPart>(header);
    case Kind::register_reply: return check<RegisterReply>(header);
    case Kind::drop_part: return check<DropPart>(header);
    case Kind::run_part: return check<RunPart>(header);
    case Kind::run_reply: return check<RunReply>(header);
    case Kind::abort: return check<Abort>(header);
    case Kind::data: return check<Data>(header);
    case Kind::credit: return check<Credit>(header);
    case Kind::reset: return check<Reset>(header);
    case Kind::reply: return check<Reply>(header);
    case Kind::end_job: return check<EndJob>(header);
    case Kind::inspect: return check<Inspect>(header);
    case Kind::inspect_reply: return check<InspectReply>(header);
    case Kind::arrive: return check<Arrive>(header);
    case Kind::arrive_reply: return check<ArriveReply>(header);
    case Kind::roll: return check<Roll>(header);
    case Kind::group_word: return check<GroupWord>(header);
    case Kind::group_data: return check<GroupData>(header);
    case Kind::segment: return check<Segment>(header);
    case Kind::release: return check<Release>(header);
  }
  return unimplemented("read a message of kind %u: it is not known here", static_cast<unsigned>(kind));
}

}  // namespace dtg::wire
