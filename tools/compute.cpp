#include "tools/compute.h"

#include "nmt/kernels/instruction_set.h"

#include <fstream>

#include <fmt/format.h>

namespace nmt::tools {

std::string processor() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with("model name")) continue;
    const std::size_t begin = line.find_first_not_of(" \t", line.find(':') + 1);
    return begin == std::string::npos ? "" : line.substr(begin);
  }
  return "";
}

std::string describe_compute(const std::string& program, const ThreadPool& pool) {
  const std::string name = processor();
  return fmt::format("{} {} on cpu{}, {} thread{}, {}, fp32", program, NMT_VERSION, name.empty() ? "" : " (" + name + ")", pool.size(),
                     pool.size() == 1 ? "" : "s", kernels::instruction_set());
}

}  // namespace nmt::tools
