#pragma once

#include "core/threads/thread_pool.h"

#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

namespace nmt::app {

/// Description of a run of nmt-train, written to the training's log when the run starts and read by
/// nmt-report.
///
/// - time: UTC, "2026-01-31T12:00:00Z"
/// - command: the program's arguments for a POSIX shell
/// - folder: the working directory
/// - versions: nmt, compiler, c_library
/// - machine: processor, cores, memory_gb, system, threads, instruction_set
/// - settings: YAML of all settings
/// - data: files, pairs, held_out (excluded lines), development_pairs, max_length; number of
///   weights; sizes of the vocabularies
/// - processes: ranks of mpirun, or 1 (added by nmt-train)
/// - lengths: histograms of lengths in pieces, {"pairs": sampled, "source": [[length, count], ...],
///   "target": ...}
///
/// `of_task`: data and lengths, which depend on the task (TrainingTask::record).
nlohmann::ordered_json run_record(const std::vector<std::string>& command,
                                  const std::string& settings, const ThreadPool& pool,
                                  const nlohmann::ordered_json& of_task);

/// Now, in UTC: "2026-01-31T12:00:00Z".
std::string utc_time();

}  // namespace nmt::app
