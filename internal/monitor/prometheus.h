// The registry's numbers in Prometheus' text exposition format 0.0.4, for an answer to GET /metrics. A pure function;
// any thread.
#pragma once

#include <span>
#include <string>

#include "monitor/counter.h"

namespace dtg {

// Sent as it stands: Prometheus 3 refuses a scrape whose type is missing or misspelt.
inline constexpr const char* kPrometheusContentType = "text/plain; version=0.0.4; charset=utf-8";

// Nanoseconds are printed as seconds, Prometheus' base unit, under names that should end in _seconds.
std::string prometheus_text(std::span<const MetricFamily> families);

}  // namespace dtg
