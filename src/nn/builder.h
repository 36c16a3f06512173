#pragma once

#include "autograd/parameter.h"
#include "config/specs.h"

#include <cstdint>
#include <span>
#include <string>

namespace nmt {

/// How matrices are initialized unless a layer decides (`standard`): recurrent matrices orthogonal,
/// embeddings normal with standard deviation width^-1/2, all others as in Glorot & Bengio 2010.
/// Biases and gains are constant.
struct Initializer {
  Initialization kind = Initialization::standard;
  float scale = 1.0f;  ///< bound of `uniform`, standard deviation of `normal`, factor of the others
  /// The initializer of a spec (init, init-scale). Error (usage): a negative scale.
  static Initializer of(const ModelSpec& spec);
};

/// Creates parameters under a name prefix. Layers pass narrower builders on: Builder(b, "layer_0")
/// creates "decoder.layer_0...".
class Builder {
 public:
  using Init = ParameterSet::Init;
  Builder(const Context& context, ParameterSet& parameters, Rng& rng, Initializer initializer = {})
      : context_(context), parameters_(&parameters), rng_(&rng), initializer_(initializer) {}
  Builder(const Builder& outer, const std::string& scope) : Builder(outer) {
    prefix_ += scope + ".";
  }
  /// The same builder for parameters with another role.
  Builder at(Parameter::Role role) const {
    Builder builder(*this);
    builder.role_ = role;
    return builder;
  }

  /// The same builder for parameters whose drawn values are multiplied by a factor.
  Builder scaled(float factor) const {
    Builder builder(*this);
    builder.initializer_.scale *= factor;
    return builder;
  }

  Parameter& add(const std::string& name, Shape shape, Init init, int planes = 1) const;
  /// Overwrites the initial values of a parameter. Does nothing where they are not set at all: in
  /// models for inference and for counting.
  void set(Parameter& parameter, std::span<const float> values) const;
  /// A generator for the parameters of this prefix alone, so that draws change no other parameter.
  /// `use`: distinguishes generators of a prefix.
  Rng generator(std::uint32_t use) const;
  /// Registers the recurrent layer of this prefix; see RecurrentLayerInfo.
  void note_recurrence(const std::string& cudnn_unsupported,
                       const std::string& persistent_unsupported) const {
    parameters_->recurrences().push_back({scope(), cudnn_unsupported, persistent_unsupported});
  }
  /// Whether matrices are drawn orthogonal unless a layer decides.
  bool is_orthogonal() const { return initializer_.kind == Initialization::orthogonal; }
  const Context& context() const { return context_; }
  /// The prefix without its trailing dot, for example "decoder.layer_0".
  std::string scope() const { return prefix_.substr(0, prefix_.empty() ? 0 : prefix_.size() - 1); }

 private:
  Context context_;
  ParameterSet* parameters_;
  Rng* rng_;
  Initializer initializer_;
  std::string prefix_;
  Parameter::Role role_ = Parameter::Role::decoder;
};

/// A pair of gain (ones) and bias (zeros) for layer normalization of [n].
struct Normalization {
  Parameter* gain = nullptr;
  Parameter* bias = nullptr;
  Normalization() = default;
  Normalization(const Builder& builder, const std::string& name, std::int64_t n)
      : gain(&builder.add(name + "_gain", {n}, Builder::Init::one)),
        bias(&builder.add(name + "_bias", {n}, Builder::Init::zero)) {}
  explicit operator bool() const { return gain != nullptr; }
};

}  // namespace nmt
