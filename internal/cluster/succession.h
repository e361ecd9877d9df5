// Succession: how the members of a group agree on which of them are in its next epoch, so that of two parts that do not see each other
// never both go on. Decisions only: time, links and words are handed in, so a test can drive hundreds of them (tests/cluster).
//
// Whoever wants an epoch says so to all, with the lowest member that it sees as leader, and with what it knows: the last epoch that was
// heard of with its members, and every promise that may still become one. A leader whom everybody present wants proposes a number
// higher than all that were heard of, and commits it when all have promised to accept no lower one. Leader and followers each refuse
// members that are no quorum (more than half, or half with the lowest) of the last epoch and of every open promise behind it. A member that
// has not been in an epoch since it was started may have forgotten promises, so it may be in a set but counts for no quorum. All of the
// roster together may always go on: nobody is left who could go on elsewhere.
//
// A member that leaves and joins again begins another life, and its former one may still be linked with some. So the leader says which
// lives it means, and a promise is given over links to those; numbers go on behind those of the former life, so that no word of an epoch
// that was is taken for one of an epoch that comes.
//
// Owner: the group. One thread.
#pragma once

#include <algorithm>
#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "wire/messages.h"

namespace dtg {

// What a GroupWord says. The numbers are part of the wire.
enum class GroupVerb : uint8_t {
  want = 1,       // value: the leader, number: the highest that was heard of, lane: 1: it has been in an epoch, sets: last, open ones
  propose = 2,    // epoch, ranks: who is in it, lives: theirs, sets: the last one, and those who count
  promise = 3,    // epoch
  commit = 4,     // epoch
  poison = 5,     // epoch, status
  leave = 6,      // epoch (0: this and all that come), status
  credit = 7,     // epoch, stream, number, lane, value: how far
  dispute = 8,    // epoch, stream, number
  statement = 9,  // the same, status: what it meant
};

class Succession final {
 public:
  // An epoch, or a promise that may become one.
  struct Set {
    uint64_t number = 0;  // 0: none
    std::vector<int> members;
    std::vector<uint64_t> lives = {};  // of each member; none: not told
  };
  class Around {
   public:
    virtual ~Around() = default;
    virtual int64_t now_ns() = 0;
    virtual bool is_linked(int member) = 0;
    // Which life of that member the link is to, or was; 0: not told. This one's own, too.
    virtual uint64_t life(int member) = 0;
    // Why there is no link to that member, or none to the life that is meant.
    virtual Status unlinked(int member) = 0;
    virtual void tell(int member, const wire::GroupWord& word) = 0;
    // This member is in that epoch. Last in what happens.
    virtual void enter(const Set& epoch) = 0;
  };
  static constexpr int64_t kSettleNs = 300'000'000;      // who is not there by then is left out, where that is wanted
  static constexpr int64_t kProposalNs = 1'000'000'000;  // how long promises are waited for
  static constexpr size_t kOpenMost = 64;

  Succession(Around& around, int members, int self);

  // Where nothing has happened yet: numbers go on behind that one.
  void begin_behind(uint64_t number) { promised_.number = number; }
  // The highest that was heard of.
  uint64_t heard() const { return std::max(known_.number, promised_.number); }
  // Who does not tell is taken for the one that is meant.
  static bool is_same_life(uint64_t one, uint64_t other) { return one == 0 || other == 0 || one == other; }

  // Wants an epoch of so many at least, until it is entered or given up.
  void begin(size_t least);
  void give_up();
  void tick();
  void link_up(int member);
  void link_down(int member);
  // Of the verbs from want to commit.
  void word(int member, const wire::GroupWord& word);

  // Does that member want an epoch, and if so, what keeps it?
  bool wants(int member) const { return wants_[static_cast<size_t>(member)].leader >= 0; }
  const Status& trouble(int member) const { return wants_[static_cast<size_t>(member)].trouble; }
  // Why those who are there may not go on without the others; empty: they may.
  std::string hindrance() const;
  const Set& known() const { return known_; }
  const Set& promised() const { return promised_; }

 private:
  struct Want {
    int leader = -1;
    uint64_t heard = 0, known = 0;
    bool remembers = false;
    std::vector<Set> open;
    Status trouble;
  };

  struct Proposal {
    Set set;  // number 0: none
    uint64_t base = 0;
    std::vector<int> counted;
    int by = -1;
  };

  static bool is_quorum(const std::vector<int>& of, const std::vector<int>& counting);
  bool all_of_them(const std::vector<int>& members) const { return members.size() == wants_.size(); }
  bool may_succeed(const std::vector<int>& members, const std::vector<int>& counting, const std::vector<Set>& open) const;
  bool may_lead(const std::vector<int>& here) const;
  std::vector<int> present() const;
  std::vector<int> counting(const std::vector<int>& here) const;
  bool acceptable() const;
  bool is_linked_to(const Set& set, size_t place) const;
  bool read(const std::vector<uint32_t>& ranks, std::vector<int>* members) const;
  void learn(const Set& epoch);
  bool open_up(const Set& promise);
  void consider();
  void tell_want();
  void tell_others(const std::vector<int>& members, const wire::GroupWord& word);
  void propose(const std::vector<int>& here);
  void wanted(int member, const wire::GroupWord& word);
  void proposed(int member, const wire::GroupWord& word);
  void promise();
  void promised(int member, uint64_t number);
  void committed(int member, uint64_t number);
  void enter();

  Around& around_;
  const int self_;
  bool forming_ = false;
  size_t least_ = 0;
  Set known_;              // the last epoch that was heard of, this member in it or not
  uint64_t entered_ = 0;   // the last epoch that this member was in since it was started
  std::vector<Set> open_;  // promises behind known_, this member's
  Set promised_;           // the highest of all, kept or not
  int promised_to_ = -1;
  std::vector<Want> wants_;
  int followed_ = -1;
  // A promise that is given when there are links to all of these; number 0: none.
  Proposal asked_;
  // This one leads.
  bool proposing_ = false;
  int64_t proposed_ns_ = 0;
  std::set<int> promises_;
  int64_t changed_ns_ = 0;  // who is present has
};

}  // namespace dtg
