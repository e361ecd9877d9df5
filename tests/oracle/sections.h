// The three sections of an op's vectors. Each checks one entry in full and says how it went. One thread.
#pragma once

#include <string>

#include "program.h"
#include "report.h"

namespace dtg::oracle {

// One node without state, with constant inputs and again with inputs of unknown shape that are fed; its gradients too.
Verdict check_case(const std::string& op, const Json& entry);
// A node over variables, step by step.
Verdict check_script(const std::string& op, const Json& entry);
// Several nodes around a handle.
Verdict check_graph(const Json& entry);

// The first element type among attributes and inputs that the spine does not promise; "" when there is none.
std::string other_dtype(const Json& value);

// What a failure that no vector asked for means: a type that is beyond the spine and refused as such is a skip.
Verdict judge_failure(const Failure& failure, const std::string& other, const std::string& where);

// Compares a failure with the codes that an entry allows ("error", "run_error"); "" when it fits.
std::string error_difference(const Json& entry, const Outcome& failed);

}  // namespace dtg::oracle
