#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace nmt::app::bench {

/// The bound that a run is compared with: GEMM peak, copy bandwidth or read bandwidth.
enum class Traffic { copied, read };

/// The minimum work of one run. Bytes: each tensor is moved once, each written cache line counts
/// once.
struct Work {
  double flops = 0;
  double bytes = 0;
  Traffic traffic = Traffic::copied;
};

/// The peak performance of the device, measured just before and after the row.
struct Bounds {
  /// FLOP/s of multiply-adds in registers on the same threads (CPU), or of a large GEMM (CUDA).
  double flops = 0;
  double copied = 0;  ///< bytes per second that a copy reads and writes
  /// Bytes per second of the fastest loop that reads one, four or eight streams.
  double read = 0;
};

/// One row of a table.
struct Result {
  std::string table, name;
  std::string error;     ///< why the row failed, or empty
  double seconds = 0;    ///< of one run: the shortest sample
  double median = 0;     ///< of the repetitions' shortest samples
  double deviation = 0;  ///< their standard deviation, 0 for one repetition
  int repetitions = 0;
  std::int64_t runs = 0;  ///< total number of timed runs
  Work work;
  Bounds bounds;
  std::vector<std::pair<std::string, double>> extras;  ///< the table's own columns, in order

  double arithmetic_floor() const { return bounds.flops > 0 ? work.flops / bounds.flops : 0; }
  double traffic_floor() const {
    const double rate = work.traffic == Traffic::read ? bounds.read : bounds.copied;
    return rate > 0 ? work.bytes / rate : 0;
  }
  /// The lower bound of the seconds: the maximum of arithmetic and traffic at peak performance.
  double floor() const { return std::max(arithmetic_floor(), traffic_floor()); }
  const char* bound() const {
    if (floor() == 0) return "";
    return arithmetic_floor() >= traffic_floor() ? "arithmetic"
           : work.traffic == Traffic::read       ? "reading"
                                                 : "copying";
  }
  double share() const { return seconds > 0 ? floor() / seconds : 0; }
};

/// Facts about machine, program and run, in order, for the header of a report.
using Facts = std::vector<std::pair<std::string, std::string>>;

}  // namespace nmt::app::bench
