#pragma once

#include "nmt/core/thread_pool.h"

#include <string>

namespace nmt::tools {

/// What the first log line of a program says: "nmt-translate 0.1.0 on cpu (AMD EPYC 7763), 2 threads, x86-64-v3 (AVX2),
/// fp32".
std::string describe_compute(const std::string& program, const ThreadPool& pool);

/// The processor's name as the system tells it; "" where it does not.
std::string processor();

}  // namespace nmt::tools
