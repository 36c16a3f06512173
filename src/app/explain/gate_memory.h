#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace nmt::app {

/// The gates of a unit over one sentence, in reading order, [n,H] each.
///
/// A step computes carry * h' + enter * new input (before the activation). The state after step t
/// therefore contains the input of step k with the weight enter_k * carry_{k+1} * ... * carry_t in
/// every channel (Zhang & Sennrich, ACL 2019, eq. 5-7, for LRN; Zhang et al., EMNLP 2018, eq.
/// 10-11, for ATR). For a single unit, enter = i and carry = f. For two units per step, s =
/// lower(h', x), h = higher(s, c), both forget gates act on the state: carry = f_lower * f_higher.
/// The lower unit's input also passes the higher unit's forget gate: enter = i_lower * f_higher.
struct GatedMemory {
  std::int64_t steps = 0, width = 0;
  std::vector<double> enter, carry;
};
GatedMemory gated_memory(std::int64_t steps, std::int64_t width, std::span<const float> input,
                         std::span<const float> forget);
GatedMemory gated_memory_lower(std::int64_t steps, std::int64_t width, std::span<const float> input,
                               std::span<const float> forget, std::span<const float> higher_forget);
GatedMemory gated_memory_higher(std::int64_t steps, std::int64_t width,
                                std::span<const float> input, std::span<const float> forget,
                                std::span<const float> lower_forget);

/// weights[k][t-k]: the weight of step k in the state after step t, averaged over channels, t =
/// k..n-1.
std::vector<std::vector<double>> memory_weights(const GatedMemory& memory);

/// The derivatives of the states after the steps [n,H] with respect to the states before them; of
/// two units per step, the product of both.
std::vector<double> state_slopes(std::span<const float> slopes, std::span<const float> partner);

/// norms[d-1]: the norm of the derivative of a state with respect to the state d steps earlier, d =
/// 1..n-1, relative to that of the identity: the root mean square over channels of the product of d
/// slopes, averaged over all pairs of steps at this distance. For element-wise units, whose
/// derivative is diagonal (Zhang & Sennrich, ACL 2019, section 5).
std::vector<double> gradient_norms(std::int64_t steps, std::int64_t width,
                                   std::span<const double> slopes);

/// The mean over channels at every step.
std::vector<double> channel_means(std::int64_t steps, std::int64_t width,
                                  std::span<const float> gate);

/// Pearson's correlation coefficient, updated pair by pair.
class Correlation {
 public:
  void add(double x, double y);
  /// nullopt for fewer than two pairs, or if one side does not vary.
  std::optional<double> value() const;

 private:
  double n_ = 0, mean_x_ = 0, mean_y_ = 0, xx_ = 0, yy_ = 0, xy_ = 0;
};

}  // namespace nmt::app
