#include "app/average/average.h"

#include "app/files/outputs.h"
#include "core/error.h"
#include "core/log.h"
#include "core/shell_word.h"
#include "model/directory/average.h"
#include "model/directory/stored_weights.h"
#include "model/directory/write_model.h"

#include <algorithm>
#include <memory>
#include <set>
#include <utility>

#include <fmt/ranges.h>

namespace nmt::app {
namespace {

// The requested checkpoints, oldest first.
std::vector<StoredCheckpoint> chosen(const AverageSpec& spec, const ModelDirectory& directory) {
  std::vector<StoredCheckpoint> all;
  if (!spec.checkpoints.empty()) {
    std::set<std::int64_t> updates;
    for (const std::string& name : spec.checkpoints) {
      if (name.empty() || name.size() > 18 ||
          name.find_first_not_of("0123456789") != std::string::npos)
        fail(ExitStatus::usage, "checkpoints: '{}' is not a number of updates", name);
      if (!updates.insert(std::stoll(name)).second)
        fail(ExitStatus::usage, "checkpoints: {} is given twice", name);
    }
    for (const std::int64_t each : updates) all.push_back(directory.checkpoint(each));
    return all;
  }
  bool has_updates = false;
  for (const std::int64_t updates : directory.checkpoints()) {
    if (updates == 0) continue;  // weights before the training
    has_updates = true;
    StoredCheckpoint checkpoint = directory.checkpoint(updates);
    if (spec.best == 0 || checkpoint.is_best()) all.push_back(std::move(checkpoint));
  }
  const std::int64_t wanted = spec.best > 0   ? spec.best
                              : spec.last > 0 ? spec.last
                                              : static_cast<std::int64_t>(all.size());
  const auto there = static_cast<std::int64_t>(all.size());
  if (!has_updates)
    fail(ExitStatus::usage, "{}: has no checkpoint after update 0; train further first",
         spec.model);
  if (there == 0) fail(ExitStatus::usage, "{}: has no best checkpoint", spec.model);
  if (wanted > there)
    fail(ExitStatus::usage, "{}: {} requests {} checkpoints, but only {} are kept (nmt-train --{})",
         spec.model, spec.best > 0 ? "best" : "last", wanted, there,
         spec.best > 0 ? "keep-best" : "keep-last");
  all.erase(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(there - wanted));
  return all;
}

}  // namespace

std::vector<std::int64_t> average(const AverageSpec& spec) {
  if (spec.model.empty()) fail(ExitStatus::usage, "no model directory given; name it with -m DIR");
  if (spec.output.empty())
    fail(ExitStatus::usage, "no output given; name a new directory with -o DIR");
  if ((spec.last > 0) + (spec.best > 0) + !spec.checkpoints.empty() > 1)
    fail(ExitStatus::usage, "last, best and checkpoints exclude each other");
  const ModelDirectory directory = ModelDirectory::open(spec.model);
  check_outputs({{}, {spec.model}}, {{"output", spec.output}});
  if (directory.weights() != Dtype::f32)
    fail(ExitStatus::usage,
         "model: {} has {} weights, expected float32; average the original model and convert the "
         "result",
         spec.model, precision_name(directory.weights()));
  const std::vector<StoredCheckpoint> checkpoints = chosen(spec, directory);
  std::vector<std::unique_ptr<safetensors::File>> files;
  std::vector<std::int64_t> updates;
  for (const StoredCheckpoint& checkpoint : checkpoints) {
    files.push_back(std::make_unique<safetensors::File>(checkpoint.open_model()));
    updates.push_back(checkpoint.updates());
  }
  const std::string list = fmt::format("{}", fmt::join(updates, ", "));
  const AveragedWeights weights = average_weights(files);
  write_model(spec.output, directory, weights.tensors, Dtype::f32, checkpoints.back().updates(),
              fmt::format("{{\"average-of\": [{}]}}", list), directory.shortlist());
  const bool translates = directory.spec().task == Task::translation;
  log::info("{}: average of updates {} of {}{}", spec.output, list, spec.model,
            translates ? fmt::format("; translate with: nmt-translate -m {} < INPUT > OUTPUT",
                                     shell_word(spec.output))
                       : "");
  return updates;
}

}  // namespace nmt::app
