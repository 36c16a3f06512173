#pragma once

#include "autograd/tape.h"
#include "nn/builder.h"

#include <cstdint>
#include <vector>

namespace nmt {

/// Dropout of weights (DropConnect, Wan et al. 2013; on recurrent matrices: Merity et al. 2018):
/// while it exists, every parameter of the list has the value w m / (1-p), where the mask m depends
/// on the tape's seed and pass. The destructor restores the values and adds the gradients of the
/// pass, multiplied by the same mask, to those of the parameters.
class WeightDropout {
 public:
  /// Does nothing if p is 0 or the tape does not record. The tape must have run its backward pass,
  /// or be given up, when the object is destroyed.
  WeightDropout(Tape& tape, const std::vector<Parameter*>& parameters, float p);
  ~WeightDropout();
  WeightDropout(const WeightDropout&) = delete;

 private:
  struct Dropped {
    Parameter* parameter;
    Tensor value, gradient;  // the parameter's own
    std::uint64_t stream;
  };
  void apply(const Tensor& x, const Tensor& y, std::uint64_t stream) const;
  Tape& tape_;
  float p_;
  std::vector<Dropped> dropped_;
};

}  // namespace nmt
