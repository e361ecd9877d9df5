// Where reservations were before others than checkpoints needed them.
#pragma once

#include "base/reservation.h"
