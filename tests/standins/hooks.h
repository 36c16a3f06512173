#pragma once

#include <map>
#include <string>

namespace nmt::standins {

/// Calls that the stand-ins have received, and statuses that they return instead of working.
struct Record {
  std::map<std::string, int> calls, failures;
};
Record& record();

}  // namespace nmt::standins
