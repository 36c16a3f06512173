// nmt-average: several checkpoints of one training as one model.

#include "app/program.h"
#include "config/settings.h"
#include "core/error.h"
#include "core/log.h"
#include "model/directory/average.h"
#include "model/directory/stored_weights.h"
#include "model/directory/write_model.h"

#include <algorithm>
#include <limits>
#include <set>
#include <string>
#include <vector>

namespace nmt::app {
namespace {

struct Request {
  std::string model, output;
  std::int64_t last = 0, best = 0;
  std::vector<std::string> named;
};

// The checkpoints that are asked for, oldest first.
std::vector<StoredCheckpoint> chosen(const Request& request, const ModelDirectory& directory) {
  std::vector<StoredCheckpoint> all;
  if (!request.named.empty()) {
    std::set<std::int64_t> updates;
    for (const std::string& name : request.named) {
      if (name.empty() || name.size() > 18 ||
          name.find_first_not_of("0123456789") != std::string::npos)
        fail(ExitStatus::usage, "checkpoints: '{}' is no number of updates", name);
      if (!updates.insert(std::stoll(name)).second)
        fail(ExitStatus::usage, "checkpoints: {} is named twice", name);
    }
    for (const std::int64_t each : updates) all.push_back(directory.checkpoint(each));
    return all;
  }
  for (const std::int64_t updates : directory.checkpoints()) {
    StoredCheckpoint checkpoint = directory.checkpoint(updates);
    if (request.best == 0 || checkpoint.is_best()) all.push_back(std::move(checkpoint));
  }
  const std::int64_t wanted = request.best > 0   ? request.best
                              : request.last > 0 ? request.last
                                                 : static_cast<std::int64_t>(all.size());
  const auto there = static_cast<std::int64_t>(all.size());
  if (there == 0)
    fail(ExitStatus::usage, "{}: has no {}checkpoint", request.model,
         request.best > 0 ? "best " : "");
  if (wanted > there)
    fail(ExitStatus::usage, "{}: {} asks for {} checkpoints, and {} are kept (nmt-train --{})",
         request.model, request.best > 0 ? "best" : "last", wanted, there,
         request.best > 0 ? "keep-best" : "keep-last");
  all.erase(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(there - wanted));
  return all;
}

void average(const Request& request) {
  if (request.model.empty()) fail(ExitStatus::usage, "no model: say which with -m DIR");
  if (request.output.empty()) fail(ExitStatus::usage, "no output: name a new folder with -o DIR");
  if ((request.last > 0) + (request.best > 0) + !request.named.empty() > 1)
    fail(ExitStatus::usage, "last, best and checkpoints: give one of them");
  const ModelDirectory directory = ModelDirectory::open(request.model);
  if (directory.weights() != Dtype::f32)
    fail(ExitStatus::usage,
         "model: {} holds {} weights: average the float32 model and convert the result",
         request.model, precision_name(directory.weights()));
  const std::vector<StoredCheckpoint> checkpoints = chosen(request, directory);
  std::vector<std::unique_ptr<safetensors::File>> files;
  std::string updates, info;
  for (const StoredCheckpoint& checkpoint : checkpoints) {
    files.push_back(std::make_unique<safetensors::File>(checkpoint.open_model()));
    updates += fmt::format("{}{}", updates.empty() ? "" : ", ", checkpoint.updates());
  }
  const AveragedWeights weights = average_weights(files);
  write_model(request.output, directory, weights.tensors, Dtype::f32, checkpoints.back().updates(),
              fmt::format("{{\"average-of\": [{}]}}", updates));
  log::info(
      "{}: the average of updates {} of {}; translate with: nmt-translate -m {} < INPUT > OUTPUT",
      request.output, updates, request.model, request.output);
}

}  // namespace
}  // namespace nmt::app

int main(int argc, char** argv) {
  using nmt::config::Option;
  nmt::app::Request request;
  nmt::config::Settings settings(
      "nmt-average", "[OPTIONS] MODEL OUTPUT",
      "averages checkpoints of one training into a new model directory, which often translates "
      "better than each. "
      "Checkpoints too far apart, or from before the learning rate fell, harm; a training with "
      "--exponential-smoothing has an average already. nmt-train keeps --keep-last checkpoints");
  settings
      .add(nmt::config::in_group(
          "files", {Option("model", &request.model, "the model directory with the checkpoints")
                        .alias({"m"})
                        .meta("DIR"),
                    Option("output", &request.output,
                           "a new model directory, which appears whole or not at all")
                        .alias({"o"})
                        .meta("DIR")}))
      .add(nmt::config::in_group(
          "checkpoints",
          {Option("last", &request.last,
                  "average the N newest; with none of these options all that are there")
               .range(0, 100000),
           Option("best", &request.best,
                  "average the N newest of those that were the best so far when saved")
               .range(0, 100000),
           Option("checkpoints", &request.named,
                  "average these: numbers of updates, as the folders under checkpoints/ are named")
               .meta("N...")}))
      .positionals({"model", "output"});
  return nmt::app::run_tool(argc, argv, settings, [&] {
    if (nmt::app::dump_if_asked(settings)) return nmt::ExitStatus::ok;
    nmt::app::average(request);
    return nmt::ExitStatus::ok;
  });
}
