#pragma once

#include "autograd/probe.h"
#include "tensor/context.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

namespace nmt {

/// A value on the tape and, once something flowed back to it, its gradient.
struct Node {
  Tensor value;
  Tensor gradient;
  bool wants_gradient = false;
};
using Var = std::shared_ptr<Node>;

/// The sentences of a pass as a part of a batch that several passes share: number b of `count`
/// stands at first + b stride of `whole`.
struct Sentences {
  std::int64_t count = 0, whole = 0, first = 0, stride = 1;  ///< count 0: a pass of its own
};

/// One pass through a model: ops append their gradients as closures, backward() runs them from the
/// last to the first. Without recording (inference, evaluation) nothing is kept.
class Tape {
 public:
  /// `seed` and `pass` choose the dropout masks: the same two give the same masks, on every device.
  Tape(const Context& context, bool recording, std::uint64_t seed = 0, std::uint64_t pass = 0)
      : context_(context), recording_(recording), seed_(seed), pass_(pass) {}

  const Context& context() const { return context_; }
  bool recording() const { return recording_; }
  /// Lets the ops of a pass fill the probe; it outlives the pass. Recurrences then keep all their
  /// steps.
  void watch(Probe* probe) { probe_ = probe; }
  Probe* probe() const { return probe_; }

  /// A value that no gradient flows to.
  Var constant(Tensor value) const;
  /// An op's result; it wants a gradient while the tape records.
  Var result(Tensor value) const;
  /// The storage for a point-wise result: x's own when the tape does not record and nobody else
  /// holds x (an op takes it by value; callers move it in), else new.
  Tensor reuse(const Var& x) const;
  /// Keeps an op's gradient. Only while recording: an op that does not record makes no closure,
  /// which would copy what it captures.
  void record(std::function<void()> backward);
  /// Runs and drops all closures.
  void backward();
  /// backward() will call it after every op, with the number of the milestone that it has come to
  /// last; 0: none yet.
  void listen(std::function<void(int)> listener) { listener_ = std::move(listener); }
  /// backward() comes here when it is through with all that is recorded later.
  void milestone(int number);

  /// Gradient of a node, zero-filled at the first call; for ops that add to it.
  float* gradient(Node& node) const;
  /// Hands a finished gradient over: adopted when it is the node's first, else added.
  void accumulate(Node& node, Tensor gradient) const;

  /// From here on dropout of [T,B,N] draws one mask [B,N] for all steps of a sentence (Gal &
  /// Ghahramani 2016, section 4).
  void share_dropout_over_steps() { shared_steps_ = true; }
  bool shares_dropout_over_steps() const { return shared_steps_; }

  /// From here on dropout draws the masks that the whole batch would have for these sentences.
  void take_part(const Sentences& sentences) { sentences_ = sentences; }
  const Sentences& sentences() const { return sentences_; }

  std::uint64_t dropout_key() const { return seed_; }
  /// A new stream of random numbers for each dropout of the pass.
  std::uint64_t next_dropout_stream() { return pass_ << 12 | dropouts_++; }

 private:
  Context context_;
  bool recording_, shared_steps_ = false;
  Probe* probe_ = nullptr;
  Sentences sentences_;
  std::uint64_t seed_, pass_, dropouts_ = 0;
  std::vector<std::function<void()>> closures_;
  std::function<void(int)> listener_;
  int reached_ = 0;
};

}  // namespace nmt
