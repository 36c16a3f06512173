#pragma once

#include "app/benchmark/result.h"

#include <cstdio>
#include <memory>
#include <string>
#include <vector>

namespace nmt::app::bench {

/// Writes rows as they complete: a Markdown table per table of the benchmark ("text"), one line per
/// row ("csv"), or an object {"context": {...}, "benchmarks": [...]} as in Google Benchmark
/// ("json").
class Report {
 public:
  virtual ~Report() = default;
  virtual void row(const Result& result) = 0;
  virtual void finish() {}
  /// `format` is one of the three; `file` must outlive the report and is not closed.
  static std::unique_ptr<Report> make(const std::string& format, std::FILE* file,
                                      const Facts& facts);
};

/// Several reports of one run.
class Reports {
 public:
  void add(std::unique_ptr<Report> report) { reports_.push_back(std::move(report)); }
  void row(const Result& result) {
    for (const auto& report : reports_) report->row(result);
  }
  void finish() {
    for (const auto& report : reports_) report->finish();
  }

 private:
  std::vector<std::unique_ptr<Report>> reports_;
};

}  // namespace nmt::app::bench
