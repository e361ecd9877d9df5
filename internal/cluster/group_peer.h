// GroupPeer: one other member of a group, as one member sees it: the link to it, which the lower of the two dials, again and again
// while the group lasts.
//
// Owner: the group, and by count whatever is under way with it. Belongs to the loop's thread.
#pragma once

#include <deque>
#include <memory>
#include <string>

#include "cluster/link.h"
#include "net/credentials.h"

namespace dtg {

class Group;

class GroupPeer final : public RefCounted, public Link::Listener {
 public:
  // `group` may be used until stop().
  GroupPeer(Group& group, int member, std::string task, Address address);

  // Dials until stop(); who does not call this is dialled.
  void dial(Credentials credentials);
  // The other end has said who it is, over that link, and which life of its process and in the group. What there was before is over.
  void attach(Ref<Link> link, uint64_t process, uint64_t life);
  // The hello comes from a life that is over, as a later one has been here; it was long on its way.
  bool is_past(const wire::Hello& hello) const;
  // With a last word behind what was sent, so that the other end has all of it and knows that this is no accident. `held` (may be null)
  // is let go of when the link has gone.
  void stop(const Status& reason, const std::shared_ptr<void>& held);

  const std::string& task() const { return task_; }
  int member() const { return member_; }
  bool is_linked() const { return link_ && link_->is_open(); }
  Link& link() const { return *link_; }
  // In the group, of the other end of the link that is or was last; 0: not told.
  uint64_t life() const { return life_; }
  // Of this end; 0: this member has left.
  uint64_t own_life() const;
  // Why there is no link; for errors.
  const Status& trouble() const { return trouble_; }
  // Queues; push() writes what is queued.
  void queue(std::unique_ptr<OutFrame> frame);
  void queue(const wire::GroupWord& word);
  bool push();

  Result<Channel::Landing> payload(const wire::Prefix& prefix, std::string_view header) override;
  Status message(const wire::Prefix& prefix, std::string_view header) override;
  bool parts(const wire::Prefix& prefix, std::string_view header) override;
  void lost(const Status& reason) override;

 private:
  void attempt();
  void dialled(Result<Ref<Channel>> channel, Deadline until);
  void greeted(const Ref<Link>& link, const Status& status, const wire::HelloReply& reply);
  void again(const Status& why);

  Group* group_;
  const int member_;
  const std::string task_;
  const Address address_;
  Loop& loop_;
  Credentials credentials_;
  bool dials_ = false;
  Ref<Link> link_;
  Ref<Link> greeting_;  // that the hello went over
  Ref<Link> parting_;   // after stop()
  Status trouble_;
  uint64_t process_ = 0, life_ = 0;  // that of the member whose link came last
  std::deque<uint64_t> past_;        // its earlier processes, the last few
  bool queued_ = false;
  // The piece that is on its way in.
  Ref<Buffer> early_;
  int64_t pause_ns_ = 0;
  AlarmCall pause_;
};

}  // namespace dtg
