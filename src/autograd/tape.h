#pragma once

#include "autograd/parameter.h"
#include "autograd/probe.h"
#include "core/batch_slice.h"
#include "core/math/flush_subnormals.h"
#include "tensor/context.h"
#include "tensor/rounded.h"

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <vector>

namespace nmt {

/// A value on the tape, and its gradient once there is one.
struct Node {
  Tensor value;
  Tensor gradient;
  bool wants_gradient = false;
  Rounded rounded{};  ///< the value for products (Tape::input)
};
using Var = std::shared_ptr<Node>;

/// A pass through a model. Ops append their backward functions as closures; backward() runs them in
/// reverse. Without recording (inference, evaluation) nothing is kept. A local variable of the
/// thread that computes: subnormal numbers count as 0 while it exists.
class Tape {
 public:
  /// `seed` and `pass` determine the dropout masks, on every device.
  Tape(const Context& context, bool recording, std::uint64_t seed = 0, std::uint64_t pass = 0)
      : context_(context), recording_(recording), seed_(seed), pass_(pass) {}

  const Context& context() const { return context_; }
  bool recording() const { return recording_; }
  /// Makes the ops of the pass fill the probe, which must outlive the pass. Recurrences then keep
  /// all their steps.
  void watch(Probe* probe) { probe_ = probe; }
  Probe* probe() const { return probe_; }

  /// A value without gradient.
  Var constant(Tensor value) const;
  /// The result of an op; has a gradient while the tape records.
  Var result(Tensor value) const;
  /// Storage for a pointwise result: that of x when the tape does not record and nobody else holds
  /// x (ops take x by value, callers move it in), else new storage.
  Tensor reuse(const Var& x) const;
  /// Appends the backward function of an op. Only while recording: otherwise an op must not create
  /// the closure, because that copies its captures.
  void record(std::function<void()> backward);
  /// Runs and removes all closures.
  void backward();
  /// Sets a listener that backward() calls after every op with the last milestone reached; 0: none
  /// yet.
  void listen(std::function<void(int)> listener) { listener_ = std::move(listener); }
  /// Marks a point that backward() reaches after everything recorded later.
  void milestone(int number);

  /// The gradient of a node, for ops that add to it; zero-filled on the first call.
  float* gradient(Node& node) const;
  /// Adds a gradient to a node; the first gradient is adopted without a copy.
  void accumulate(Node& node, Tensor gradient) const;

  /// The gradient of a parameter, for kernels that add to it: zero-filled first if it is that of an
  /// earlier update (Parameter::gradient_is_old).
  float* gradient(Parameter& parameter);
  /// The gradient of a parameter, for a product over `rows` rows that writes all of it:
  /// values = beta values + product. beta is 0 where the pass starts the gradient.
  struct ProductGradient {
    float* values = nullptr;
    float beta = 1.0f;
  };
  ProductGradient product_gradient(Parameter& parameter, std::int64_t rows);

  /// A value [..,K] for products that keep it: rounded at most once (Node::rounded). Called before
  /// two branches of a stream (tensor/branches.h) read the value.
  kernels::ProductInput input(Node& node) const;
  /// A weight [..,columns] for products: as the last update rounded it, or rounded at most once in
  /// the pass. Only while recording.
  kernels::ProductInput weight(Parameter& parameter);

  /// Makes dropout of [T,B,N] draw one mask [B,N] for all steps of a sentence from now on (Gal &
  /// Ghahramani 2016, section 4).
  void share_dropout_over_steps() { shared_steps_ = true; }
  bool shares_dropout_over_steps() const { return shared_steps_; }

  /// Makes dropout draw the masks of these `sentences` of the full batch from now on.
  void set_batch_slice(std::int64_t sentences, const BatchSlice& slice) {
    sentences_ = sentences;
    batch_slice_ = slice;
  }
  /// Sentences of the slice; 0: the pass has the full batch.
  std::int64_t sentences() const { return sentences_; }
  const BatchSlice& batch_slice() const { return batch_slice_; }

  std::uint64_t dropout_key() const { return seed_; }
  /// A new random number stream for each dropout of the pass.
  std::uint64_t next_dropout_stream() { return pass_ << 12 | dropouts_++; }

 private:
  FlushSubnormals flush_subnormals_;
  Context context_;
  bool recording_, shared_steps_ = false;
  Probe* probe_ = nullptr;
  std::int64_t sentences_ = 0;
  BatchSlice batch_slice_;
  std::uint64_t seed_, pass_, dropouts_ = 0;
  std::vector<std::function<void()>> closures_;
  std::map<const float*, Rounded> weights_;
  std::set<const Parameter*> started_;  // whose old gradient the pass has overwritten
  std::function<void(int)> listener_;
  int reached_ = 0;
};

}  // namespace nmt
