// Ask: a proposal for one node of a given op: attributes and inputs, filled by the hints of its family where there are any,
// and by the definition's contract for the rest, so that ops which join later are proposed as well. One thread.
#pragma once

#include "random/workshop.h"

namespace dtg::random {

class Ask {
 public:
  Ask(Workshop& workshop, const OpDef& def) : w(workshop), op(def), args_(def.inputs().size()), filled_(def.inputs().size()) {}
  // Proposes, and adds what it proposed; the node or -1.
  int propose();

  // For the hints.
  DType type(std::string_view attr);  // chosen now where nobody has chosen yet
  void set(std::string_view attr, AttrValue value);
  bool has(std::string_view attr) const;
  const AttrValue* get(std::string_view attr) const;
  void put(std::string_view arg, Port port) { puts(arg, {port}); }
  void puts(std::string_view arg, std::vector<Port> ports);
  bool filled(std::string_view arg) const;
  Port input(std::string_view arg) const;  // the first of it
  const Shape& shape(std::string_view arg) const { return w.tensor(input(arg)).shape(); }
  DType dtype(const ArgDef& arg);
  DType dtype(std::string_view arg);
  // The argument by the contract: any value of its type and ranks.
  Port data(std::string_view arg, int rank_min = 0, int rank_max = kRankMax);
  // A scalar or vector of whole numbers for that argument.
  void numbers(std::string_view arg, const std::vector<int64_t>& values, bool scalar = false);
  void numbers(std::string_view arg, const std::vector<int64_t>& values, const Shape& shape);
  // The variable behind that argument; what reads and writes are ordered by.
  void use(std::string_view arg, Resident& resident, bool writes);

  Workshop& w;
  const OpDef& op;

 private:
  size_t index(std::string_view arg) const;
  void fill_attrs();
  AttrValue random_attr(const AttrDef& attr);
  void fill_args();
  Port generic(const ArgDef& arg, bool first);

  struct Use {
    Resident* resident;
    bool writes;
  };
  std::vector<std::pair<std::string, AttrValue>> attrs_;
  std::vector<std::vector<Port>> args_;
  std::vector<bool> filled_;
  std::vector<Use> uses_;
};

// The family's hints for an op, or null. One table, hints.cc and hints_state.cc.
using Hint = void (*)(Ask&);
Hint hint_for(std::string_view op);
// By the name of an argument, for ops without hints: axes, indices and the like.
bool fill_by_name(Ask& ask, const ArgDef& arg);
// Ops that these tests leave to others, and why.
const char* left_out(std::string_view op);

}  // namespace dtg::random
