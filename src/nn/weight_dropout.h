#pragma once

#include "autograd/tape.h"
#include "nn/builder.h"

#include <cstdint>
#include <vector>

namespace nmt {

/// Dropout of weights (DropConnect, Wan et al. 2013; on recurrent matrices: Merity et al. 2018):
/// while it exists, every parameter of the list has the value w m / (1-p), where the mask m depends
/// on the tape's seed and pass. The destructor restores values and gradients.
class WeightDropout {
 public:
  /// Does nothing if p is 0 or the tape does not record. Without memory for all copies, it throws
  /// and changes no parameter.
  WeightDropout(Tape& tape, const std::vector<Parameter*>& parameters, float p);
  ~WeightDropout();
  WeightDropout(const WeightDropout&) = delete;
  /// After the backward pass: adds its gradients, multiplied by the mask, to the parameters' own.
  /// Not in the destructor, because kernels of a lost device throw.
  void add_gradients();

 private:
  struct Dropped {
    Parameter* parameter;
    Tensor value, gradient;  // the parameter's own
    std::uint64_t stream;
  };
  void exchange() noexcept;
  void apply(const Tensor& x, const Tensor& y, std::uint64_t stream) const;
  Tape& tape_;
  float p_;
  std::vector<Dropped> dropped_;
};

}  // namespace nmt
