#pragma once

#include "model/step_scorer.h"
#include "search/beam/beam_search.h"

#include <memory>
#include <span>
#include <vector>

namespace nmt {

/// Number of steps between two synchronizations of the host with a search on the device.
inline constexpr int steps_between_syncs = 8;

/// beam_search() with the beam kept on the device of the scores (kernels/decoding/beam.h); returns
/// the same hypotheses. Every sentence has beam_size rows, live or not, and a step is a fixed
/// sequence of kernels that keep their state in device memory. Every steps_between_syncs steps the
/// host waits and copies the chosen tokens; when half of the rows are finished, it removes them
/// from the batch. Supports neither attention nor shortlists.
class DeviceSearch {
 public:
  /// All arguments must outlive the search. `device` is that of the decoding, which must not have
  /// made a step yet.
  DeviceSearch(const Context& device, Decoding& decoding, int vocabulary,
               std::span<const std::vector<std::int32_t>> sources, const SearchOptions& options);
  ~DeviceSearch();

  /// Errors: as beam_search().
  std::vector<SentenceResult> run();
  /// Enqueues the next step without ever reading its result; for benchmarks, instead of run().
  void step();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace nmt
