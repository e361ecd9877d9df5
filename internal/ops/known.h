// Value functions that op families share: what outputs are when constants and shapes alone decide it (graph/known.h). Pure.
#pragma once

#include "graph/known.h"

namespace dtg::ops {

void const_value(ValueContext& c);          // the attribute
void first_value(ValueContext& c);          // input 0 as it is
void cast_value(ValueContext& c);           // integers under another integer type
void shape_value(ValueContext& c);          // dimensions of each input
void size_value(ValueContext& c);           // number of elements
void rank_value(ValueContext& c);           // number of dimensions
void reshape_value(ValueContext& c);        // input 0 in the output's shape
void pack_value(ValueContext& c);           // scalars to a vector
void concat_value(ValueContext& c);         // vectors to a vector; the last input is the axis
void slice_value(ValueContext& c);          // part of a vector
void strided_slice_value(ValueContext& c);  // part of a vector, or one entry

// Integer arithmetic with broadcasting of scalars, by the op's name; null for an op that has none.
ValueFn arithmetic_value(std::string_view op);

}  // namespace dtg::ops
