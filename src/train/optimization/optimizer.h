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
  double cross_entropy = 0,
         smoothed = 0;       ///< the losses added to loss_sums() since the last update
  double gradient_norm = 0;  ///< of the gradient averaged over the target tokens, before clipping
  /// False: the norm was not finite, and nothing changed but the gradients, which are zero again.
  bool applied = false;
};

/// Adam (Kingma & Ba 2015), AdamW (Loshchilov & Hutter 2019), Adadelta (Zeiler 2012), AdaGrad
/// (Duchi et al. 2011) or SGD with or without momentum (kernels/optimizer.h has the equations),
/// with clipping of the gradient's norm (Pascanu et al. 2013) and a moving average of the weights
/// (Polyak & Juditsky 1992).
///
///             optimizer-params                         learning rate when not set
///   adam      beta1 0.9, beta2 0.98, epsilon 1e-9      by the size of the corpus
///   adamw     the same, weight decay 0.01              by the size of the corpus
///   adadelta  rho 0.95, epsilon 1e-6                   1 (Zeiler 2012, algorithm 1 has none)
///   adagrad   epsilon 1e-8                             0.05
///   sgd       momentum 0                               1
///
/// Gradients arrive as sums over target tokens, of one or more batches; the update divides by the
/// number of tokens or, with cost-type ce-mean, of sentences, so that rate and clip-norm mean the
/// same for every batch size.
///
/// The average after update t is average += s (value - average) with s = max(exponential_smoothing,
/// 9 / (t + 9)): it spans about the last t/9 updates until that is as long as
/// 1/exponential_smoothing, so that in a short training the random weights of the beginning leave
/// it at once (update 1 takes 0.9 of the new weights).
class Optimizer {
 public:
  /// Error (usage): a number out of its range.
  static void check(const TrainSpec& spec);
  /// The learning rate of an optimizer when none is set; nothing where it depends on the corpus.
  static std::optional<double> usual_rate(UpdateRule rule);
  /// How many numbers the rule keeps for each weight.
  static int states(const TrainSpec& spec);
  /// The parameters' gradients must be zero. Errors: as check().
  Optimizer(const TrainSpec& spec, ParameterSet& parameters, const Context& context);

  /// One step at this rate, over gradients that are divided by `count`, of target tokens or of
  /// sentences. Waits for the device once, for the gradient's norm and the losses; the step itself
  /// is left to run.
  UpdateResult update(double rate, std::int64_t count);
  /// Where the losses of an update are added up, beside the gradients: f64 [2] on the device,
  /// cross-entropy and smoothed.
  Tensor loss_sums() const { return figures_.slice(0, 2); }
  /// Sets all gradients and loss_sums() to zero.
  void clear();

  /// Updates applied, the t of the papers. Part of the state.
  std::int64_t steps() const { return steps_; }
  void set_steps(std::int64_t steps) { steps_ = steps; }

  /// The weights that translate, under the parameters' names: the moving average where there is
  /// one, else the weights trained.
  using Visit = std::function<void(const std::string& name, Tensor& tensor)>;
  void for_each_published(const Visit& visit);
  /// What a resumed training needs beside those: "first.<parameter>" and "second.<parameter>" as
  /// far as the rule keeps them and, with averaging, the weights being trained as
  /// "value.<parameter>".
  void for_each_state(const Visit& visit);

 private:
  struct States {
    Tensor first, second, average;  // empty where the rule has none
  };
  void step(double rate, double gradient_scale);
  std::vector<States> states_;  // one each parameter
  std::vector<kernels::OptimizerSlice> slices_;
  ParameterSet& parameters_;
  const Context& context_;
  UpdateRule rule_;
  Tensor figures_;               // f64 [3]: loss_sums(), and the squares of the gradients
  std::vector<double> numbers_;  // optimizer-params, the missing ones filled in
  double clip_norm_, smoothing_;
  std::int64_t steps_ = 0;
};

}  // namespace nmt::train
