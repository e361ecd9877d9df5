// Exchange: one collective as one member takes part in it: streams of bytes to and from the other ranks, in pieces, and what is done
// with them as they come. How pieces travel is the carrier's business (cluster/group.h, tests).
//
// A stream is (rank, lane of the collective). The first bytes of each may leave at once, the rest when the receiver has said that it
// has memory for them; what comes in lands where it belongs, or in a window of a few pieces from where it is added while more comes.
//
// Owner: the group's table of calls under way. Belongs to the loop's thread.
#pragma once

#include <algorithm>
#include <memory>
#include <vector>

#include "base/budget.h"
#include "collective/call.h"
#include "collective/combine.h"

namespace dtg {

// A piece never crosses a multiple of this, so that windows are made of whole pieces.
inline constexpr uint64_t kPieceBytes = uint64_t{256} << 10;
// What a stream may send before the receiver has begun.
inline constexpr uint64_t kUnaskedBytes = uint64_t{64} << 10;

class Exchange : public RefCounted {
 public:
  class Carrier {
   public:
    virtual ~Carrier() = default;
    struct Piece {
      int rank = 0;
      uint8_t lane = 0;
      uint64_t offset = 0;
      uint64_t total = 0;
      const void* data = nullptr;
      uint64_t bytes = 0;
      int64_t rows = 0;  // of the whole stream
    };
    // Tells sent() when the bytes are not needed any more.
    virtual void send(Exchange& exchange, const Piece& piece) = 0;
    // The other end may send the stream's bytes up to there.
    virtual void grant(Exchange& exchange, int rank, uint8_t lane, uint64_t upto) = 0;
  };

  static Result<Ref<Exchange>> make(CollectiveCall call, int rank, int size, Carrier& carrier, MemoryBudget& budget);
  ~Exchange() override;

  // Sends what can be sent. Afterwards, and after each of the four below, done() may have become true.
  virtual Status begin() = 0;
  // What that rank means by the call, and the rows of the stream; before the first of the stream's pieces.
  virtual Status learn(int, const CallTerms&) { return {}; }
  // Where that piece goes. The first of a stream tells its size. After one that had no place all others are refused.
  Result<void*> landing(int rank, uint8_t lane, uint64_t offset, uint64_t bytes, uint64_t total);
  // `lent`: the bytes are there, and not where landing() said; only until this returns.
  Status arrived(int rank, uint8_t lane, uint64_t offset, uint64_t bytes, const void* lent = nullptr);
  Status sent(int rank, uint8_t lane, uint64_t bytes);
  Status granted(int rank, uint8_t lane, uint64_t upto);
  bool done() const;

  const CallTerms& terms() const { return call_.terms; }
  // Valid when done.
  const Tensor& result() const { return call_.out; }
  // Ranks from which something is missing; `silent`: only those of which nothing has come.
  std::vector<int> missing(bool silent) const;
  // Every other rank sends here; else those that are missing may wait for others themselves.
  bool hears_all() const;
  // Rank has streams that are not through, in either direction.
  bool needs(int rank) const;
  // Something may have left: other ranks count on this one.
  bool begun() const { return begun_; }
  int rank() const { return rank_; }
  int size() const { return size_; }
  // Streams of each pair of ranks are numbered below this, as far as is known.
  uint32_t lanes() const;
  // The carrier's own name for it.
  uint64_t stream = 0, number = 0;

 protected:
  static constexpr uint64_t kUnknown = UINT64_MAX;
  struct In {
    int rank = 0;
    uint8_t lane = 0;
    uint64_t total = kUnknown;
    bool heard = false;          // its first piece has come
    char* direct = nullptr;      // where the stream goes; null: into the window
    bool placed = false;         // `direct` or the window is there
    Ref<Buffer> memory;          // of the window
    Ref<Buffer> early;           // of what came unasked before the stream had a place
    bool lands_early = false;    // the piece on its way does
    uint64_t window = 0;         // its bytes
    const char* lent = nullptr;  // what is there from `lent_from` on, while it is told
    uint64_t lent_from = 0;
    uint64_t arrived = 0, consumed = 0, granted = kUnaskedBytes;
    char* place(uint64_t offset) const { return direct ? direct + offset : static_cast<char*>(memory->data()) + offset % window; }
    const char* at(uint64_t offset) const { return lent && offset >= lent_from ? lent + (offset - lent_from) : place(offset); }
    bool complete() const { return heard && total != kUnknown && arrived == total; }
  };
  struct Out {
    int rank = 0;
    uint8_t lane = 0;
    const char* data = nullptr;
    uint64_t total = 0;
    int64_t rows = 0;
    bool begun = false;
    uint64_t ready = 0, put = 0, sent = 0, granted = kUnaskedBytes;
    bool complete() const { return begun && put == total && sent == total; }
  };

  Exchange(CollectiveCall call, int rank, int size, Carrier& carrier, MemoryBudget& budget)
      : call_(std::move(call)), rank_(rank), size_(size), carrier_(carrier), budget_(budget) {}

  // Something of the stream is there, all of which has a place; its size became known; something of it has left.
  virtual Status advance(In&) { return {}; }
  virtual Status heard(In&) { return {}; }
  virtual Status left(Out&) { return {}; }
  virtual bool finished() const { return true; }

  // Both stay where they are until the end.
  In& add_in(int rank, uint8_t lane, uint64_t total = kUnknown);
  Out& add_out(int rank, uint8_t lane, const void* data, uint64_t total);
  void place(In& in, void* direct);
  Status place_window(In& in);
  void consume(In& in, uint64_t upto);
  void make_ready(Out& out, uint64_t upto);
  void begin_streams();
  Status make_out(DType dtype, const Shape& shape);
  // From the budget, until the end.
  Status reserve(uint64_t bytes, const char* what);
  const void* input() const { return call_.in.data(); }
  char* output() const { return static_cast<char*>(call_.out.data()); }

  CollectiveCall call_;
  const int rank_;
  const int size_;
  std::vector<std::unique_ptr<In>> ins_;
  std::vector<std::unique_ptr<Out>> outs_;

 private:
  In* find_in(int rank, uint8_t lane) const;
  Out* find_out(int rank, uint8_t lane) const;
  Result<void*> find_place(int rank, uint8_t lane, uint64_t offset, uint64_t bytes, uint64_t total);
  Status arrived_lent(In& in, uint64_t offset, uint64_t bytes, const char* lent);
  void pump(Out& out);
  void grant(In& in);

  Carrier& carrier_;
  MemoryBudget& budget_;
  int64_t reserved_ = 0;
  bool begun_ = false;
  bool broken_ = false;
};

// The makers, by file: what they return has laid out its streams. The terms have been looked at.
Result<Ref<Exchange>> make_reducing(CollectiveCall call, int rank, int size, Exchange::Carrier& carrier, MemoryBudget& budget);
Result<Ref<Exchange>> make_moving(CollectiveCall call, int rank, int size, Exchange::Carrier& carrier, MemoryBudget& budget);

// How the elements or rows are cut for ranks: the first `rest` shares have one more.
struct Shares {
  int64_t count = 0;
  int size = 1;
  int64_t begin(int rank) const { return count / size * rank + std::min<int64_t>(rank, count % size); }
  int64_t length(int rank) const { return begin(rank + 1) - begin(rank); }
};

}  // namespace dtg
