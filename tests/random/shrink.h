// Shrinking: the smallest scene that still fails. One thread.
#pragma once

#include <functional>
#include <string>

#include "random/scene.h"

namespace dtg::random {

// Why a scene fails; empty when it does not.
using Judge = std::function<std::string(const Scene&)>;

Scene shrunk(Scene scene, const Judge& judge);

}  // namespace dtg::random
