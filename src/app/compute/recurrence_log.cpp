#include "app/compute/recurrence_log.h"

#include "core/error.h"
#include "core/log.h"
#include "tensor/cuda_device.h"

#include <string>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace nmt::app {
namespace {

// The layers of a model that an implementation supports, and the others with the reason.
struct LayersOf {
  LayersOf(ParameterSet& parameters, std::string RecurrentLayerInfo::*unsupported) {
    std::vector<std::string> with, without;
    for (const RecurrentLayerInfo& place : parameters.recurrences()) {
      if ((place.*unsupported).empty())
        with.push_back(place.layer);
      else
        without.push_back(fmt::format("{} ({})", place.layer, place.*unsupported));
    }
    supported = fmt::format("{}", fmt::join(with, ", "));
    others = fmt::format("{}", fmt::join(without, ", "));
  }
  /// Error: the implementation supports none.
  void require_any(const char* choice) const {
    if (supported.empty())
      fail(ExitStatus::usage,
           "recurrences: {} can run no layer of this model: {}; use recurrences=own", choice,
           others);
  }
  std::string supported, others;
};

}  // namespace

void log_recurrences(const Context& context, ParameterSet& parameters) {
  if (context.cudnn) {
    const LayersOf layers(parameters, &RecurrentLayerInfo::cudnn_unsupported);
    layers.require_any("cudnn");
    log::info("recurrences: cuDNN runs {}; own kernels run {}", layers.supported,
              layers.others.empty() ? "none" : layers.others);
  }
  const PersistentUse use =
      context.cuda.device ? context.cuda.device->persistent() : PersistentUse::off;
  if (use == PersistentUse::off) return;
  const LayersOf layers(parameters, &RecurrentLayerInfo::persistent_unsupported);
  if (use == PersistentUse::on) layers.require_any("persistent");
  log::info("recurrences: {} {}; a launch per product and step: {}",
            use == PersistentUse::on
                ? "persistent kernels run"
                : "persistent kernels, where measured or predicted to be faster, run",
            layers.supported.empty() ? "none" : layers.supported,
            layers.others.empty() ? "none" : layers.others);
}

}  // namespace nmt::app
