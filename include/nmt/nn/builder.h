#pragma once

#include <string>

#include "nmt/autograd/parameter.h"

namespace nmt {

/// Makes parameters under a prefix; layers pass narrower ones on: Builder(b, "layer_0") names them "decoder.layer_0...".
class Builder {
 public:
  using Init = ParameterSet::Init;
  Builder(const Context& context, ParameterSet& parameters, Rng& rng) : context_(context), parameters_(&parameters), rng_(&rng) {}
  Builder(const Builder& outer, const std::string& scope) : Builder(outer) { prefix_ += scope + "."; }
  /// The same for parameters of another place.
  Builder at(Parameter::Place place) const {
    Builder builder(*this);
    builder.place_ = place;
    return builder;
  }

  Parameter& add(const std::string& name, Shape shape, Init init, int planes = 1) const {
    Parameter& parameter = parameters_->add(context_, prefix_ + name, shape, init, *rng_, planes);
    parameter.place = place_;
    parameter.is_matrix = (init == Init::glorot || init == Init::orthogonal) && shape[-1] > 1;
    return parameter;
  }
  const Context& context() const { return context_; }
  /// The prefix without its last dot: "decoder.layer_0".
  std::string scope() const { return prefix_.substr(0, prefix_.empty() ? 0 : prefix_.size() - 1); }

 private:
  Context context_;
  ParameterSet* parameters_;
  Rng* rng_;
  std::string prefix_;
  Parameter::Place place_ = Parameter::Place::decoder;
};

/// A pair of gain (ones) and bias (zeros) for layer normalisation of [n].
struct Normalization {
  Parameter* gain = nullptr;
  Parameter* bias = nullptr;
  Normalization() = default;
  Normalization(const Builder& builder, const std::string& name, std::int64_t n)
      : gain(&builder.add(name + "_gain", {n}, Builder::Init::one)), bias(&builder.add(name + "_bias", {n}, Builder::Init::zero)) {}
  explicit operator bool() const { return gain != nullptr; }
};

}  // namespace nmt
