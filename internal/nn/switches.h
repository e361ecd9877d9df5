// What layers that are otherwise in training (Model::Switched) will do without a word: stay on where nothing switches them, or be switched
// by something that whoever trains does not know. Functions over a model; the thread that builds it.
#pragma once

#include <span>
#include <string>

#include "nn/model.h"

namespace dtg {

// Of the layers that `wanted` needs: those that were given no switch, and so go on as in training in all that `where` names. Empty: none.
std::string tell_always_on(const Model& model, std::span<const Value> wanted, const char* where);
// Those whose switch is another than `training`, which may be none, and that nobody else is known to turn: neither a constant, which is
// meant, nor a placeholder without a value, whose run says so, nor one of `fed`.
std::string tell_apart(const Model& model, std::span<const Value> wanted, std::span<const Value> fed, Value training);

}  // namespace dtg
