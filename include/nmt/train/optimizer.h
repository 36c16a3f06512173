#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "nmt/autograd/parameter.h"
#include "nmt/config/specs.h"
#include "nmt/kernels/optimizer.h"

namespace nmt::train {

struct UpdateResult {
  double gradient_norm = 0;  ///< of the gradient averaged over the target tokens, before clipping
  bool applied = false;      ///< false: the norm was not finite, and nothing changed but the gradients, which are zero again
};

/// Adam (Kingma & Ba 2015) or AdamW (Loshchilov & Hutter 2019), with clipping of the gradient's norm (Pascanu et al. 2013)
/// and a moving average of the weights (Polyak & Juditsky 1992).
///
/// Gradients arrive as sums over target tokens, of one or more batches; the update divides by the number of tokens, so that
/// rate and clip-norm mean the same for every batch size.
///
/// The average after update t is average += s (value - average) with s = max(exponential_smoothing, 9 / (t + 9)): it spans
/// about the last t/9 updates until that is as long as 1/exponential_smoothing, so that in a short training the random weights
/// of the beginning leave it at once (update 1 takes 0.9 of the new weights).
class Optimizer {
 public:
  /// Errors (usage): an unknown optimizer, a number out of its range.
  static void check(const TrainSpec& spec);
  /// The parameters' gradients must be zero. Errors: as check().
  Optimizer(const TrainSpec& spec, ParameterSet& parameters, const Context& context);

  /// One step at this rate, over gradients summed from so many target tokens.
  UpdateResult update(double rate, std::int64_t tokens);
  /// Sets all gradients to zero.
  void clear_gradients();

  /// Updates applied: Adam's t. Part of the state.
  std::int64_t steps() const { return steps_; }
  void set_steps(std::int64_t steps) { steps_ = steps; }

  /// The weights that translate, under the parameters' names: the moving average where there is one, else the weights trained.
  using Visit = std::function<void(const std::string& name, Tensor& tensor)>;
  void for_each_published(const Visit& visit);
  /// What a resumed training needs beside those: "first.<parameter>", "second.<parameter>" and, with averaging, the weights
  /// being trained as "value.<parameter>".
  void for_each_state(const Visit& visit);

 private:
  struct Moments {
    Tensor first, second, average;
  };
  std::vector<Moments> moments_;  // one each parameter
  std::vector<kernels::OptimizerSlice> slices_;
  ParameterSet& parameters_;
  const Context& context_;
  double beta1_ = 0.9, beta2_ = 0.98, epsilon_ = 1e-9, decay_ = 0;
  double clip_norm_, smoothing_;
  std::int64_t steps_ = 0;
};

}  // namespace nmt::train
