// Report: what a fit has come to as one page of HTML for people, which asks for nothing from a network: curves with smoothing, the learning
// rate, where the time of an epoch went, settings and environment. The page holds its data as one element of JSON, an array of runs, so
// that `dtg report` can put several runs into the page of one. Functions; any thread.
#pragma once

#include <string>

#include "base/disk.h"
#include "base/json.h"

namespace dtg {

// `run`: {"name", "outcome", "epochs", "steps", ..., "settings", "environment", "times", "history"}.
std::string report_page(const Json& run);
// Atomically.
Status write_report(Disk& disk, const std::string& path, const Json& run);

// The page but for its data, in two parts. See report_page.cc.
extern const char* const kReportHead;
extern const char* const kReportTail;

}  // namespace dtg
