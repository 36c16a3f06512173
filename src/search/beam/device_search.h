#pragma once

#include "model/step_scorer.h"
#include "search/beam/beam_search.h"

#include <memory>
#include <span>
#include <vector>

namespace nmt {

/// Tokens after which the host looks at a search on a device.
inline constexpr int tokens_between_looks = 8;

/// beam_search() with the choices made on the device that the decoding's scores lie on
/// (kernels/decoding/beam.h): the same hypotheses. Every sentence has beam_size rows, live or not,
/// and a step is one fixed row of kernels, which find what changes from token to token in device
/// memory. Once in tokens_between_looks tokens the host waits, and fetches what was chosen; when
/// half of the rows have nothing more to do, it leaves them out of the batch. No attention, no
/// shortlist.
class DeviceSearch {
 public:
  /// All that it is given outlives it; `device` is the decoding's, of which no step was made.
  DeviceSearch(const Context& device, Decoding& decoding, int vocabulary,
               std::span<const std::vector<std::int32_t>> sources, const SearchOptions& options);
  ~DeviceSearch();

  /// Errors: as beam_search().
  std::vector<SentenceResult> run();
  /// Queues the next step and never looks at it: to measure one, in place of run().
  void step();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace nmt
