#pragma once

#include "autograd/parameter.h"
#include "config/specs.h"
#include "kernels/optimizer.h"

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace nmt::train {

struct UpdateResult {
  /// The sums in loss_sums() since the last update.
  double cross_entropy = 0, smoothed = 0, alignment = 0;
  double gradient_norm = 0;  ///< of the gradient averaged over the target tokens, before clipping
  /// False: the norm was not finite, and nothing changed but the gradients, which start again.
  bool applied = false;
};

/// Gradients are sums over the target tokens of one or more batches. The update divides them by the
/// number of tokens or, with cost-type ce-mean, of sentences, so that learning rate and clip-norm
/// do not depend on the batch size.
class Optimizer {
 public:
  /// Error (usage): a value is out of range.
  static void check(const TrainSpec& spec);
  /// The default learning rate of an optimizer; nothing if it depends on the corpus.
  static std::optional<double> usual_rate(UpdateRule rule);
  /// Number of state values per weight.
  static int states(const TrainSpec& spec);
  /// Whether the published weights are an average.
  static bool has_average(const TrainSpec& spec) {
    return spec.exponential_smoothing > 0 || spec.average_after > 0;
  }
  /// The parameters' gradients must be zero. Errors: as check().
  Optimizer(const TrainSpec& spec, ParameterSet& parameters, const Context& context);

  /// One update with this learning rate; gradients are divided by `count`, the number of target
  /// tokens or sentences. Afterwards gradients are zero, or old where the next pass overwrites them
  /// (Parameter::gradient_is_old). On a device the whole update is queued before the host waits,
  /// once, for the gradient norm and the losses; a fault of an earlier kernel is an error then,
  /// after the update.
  UpdateResult update(double rate, std::int64_t count);
  /// The loss sums of an update, f64 [3] on the device (Trainable::accumulate_gradients).
  Tensor loss_sums() const { return figures_.slice(0, 3); }
  /// Sets all gradients and loss_sums() to zero.
  void clear();

  /// Number of updates applied, t in the papers. Part of the state.
  std::int64_t steps() const { return steps_; }
  void set_steps(std::int64_t steps) { steps_ = steps; }

  /// With average-after: publishes the mean of the weights after all later updates (ASGD, Polyak &
  /// Juditsky 1992) instead of the weights. `steps`: steps() at that time; -1: not yet. Part of the
  /// state.
  void average_from(std::int64_t steps) { average_from_ = steps; }

  /// The weights for translation, under the names of the parameters: the moving average if there is
  /// one, else the trained weights. Here and in for_each_state() `visit` may write them.
  using Visit = std::function<void(const std::string& name, Tensor& tensor)>;
  void for_each_published(const Visit& visit);
  /// The additional state for resuming: "first.<parameter>" and "second.<parameter>" as far as the
  /// rule has them and, with averaging, the trained weights as "value.<parameter>".
  void for_each_state(const Visit& visit);

 private:
  struct States {
    Tensor first, second, average;  // empty if the rule has none
    Tensor rounded;                 // the weights for products, as far as passes read them
  };
  void follow_passes();
  void round_again(std::size_t parameter);
  void measure(double share);
  void step(double rate);
  std::vector<States> states_;  // one each parameter
  std::vector<kernels::OptimizerSlice> slices_;
  ParameterSet& parameters_;
  const Context& context_;
  UpdateRule rule_;
  Tensor figures_;               // f64 [4]: loss_sums(), and the squares of the gradients
  Tensor factor_;                // [1]: of the gradients, from clipping
  std::vector<double> numbers_;  // optimizer-params, completed by defaults
  double clip_norm_, smoothing_;
  bool averages_;
  std::int64_t steps_ = 0, average_from_ = -1;
};

}  // namespace nmt::train
