#pragma once

#include "autograd/ops/recurrent.h"
#include "model/architecture.h"
#include "nn/recurrent/recurrent_layer.h"
#include "nn/recurrent/transition_layer.h"

#include <deque>
#include <memory>
#include <optional>

namespace nmt {

/// A linear layer that maps the states of a layer back to the embedding width, with residual sum
/// and layer normalization as in the `deep` model (LRN, section 6.3): LN(x + dropout(h W)).
class Residual {
 public:
  Residual(const Builder& builder, std::int64_t from, std::int64_t to, bool layer_normalization);
  Var operator()(Tape& tape, const Var& x, const Var& h, float dropout) const;
  /// As RecurrentLayer::saved_floats(), with or without dropout.
  std::int64_t saved_floats(bool drops) const;
  void freeze(const Context& context) const;

 private:
  Parameter* weight_;
  Parameter* bias_ = nullptr;
  Normalization normalization_;
};

/// Converts a spec to the settings of layers.
UnitSettings unit_settings(const ModelSpec& spec, const std::string& cell);

/// The first, bidirectional layer of every encoder. Plain: the states of both directions
/// concatenated, [S,B,2H]. Context-aware (Zhang et al., ATR, EMNLP 2018, section 4.1): the backward
/// pass reads the forward state of the same position with its second unit, and only its states are
/// the output, [S,B,H].
class BidirectionalLayer {
 public:
  BidirectionalLayer(const Builder& builder, const UnitSettings& settings, std::int64_t input,
                     bool context_aware);
  struct Result {
    Var states;
    Var final_state;  ///< [B, width()] after the last step of each direction
  };
  Result operator()(Tape& tape, const Var& x, const ops::PaddedSentences& sentences) const;
  std::int64_t width() const { return width_; }
  /// As RecurrentLayer::saved_floats().
  std::int64_t saved_floats() const;
  void freeze(const Context& context) const;

 private:
  RecurrentLayer forward_;
  std::optional<RecurrentLayer> backward_;
  std::optional<TransitionLayer> aware_;
  std::int64_t width_;
};

/// Maps source embeddings to annotations.
class Encoder {
 public:
  /// The encoder of the spec's architecture.
  static std::unique_ptr<Encoder> make(const Builder& builder, const ModelSpec& spec);
  virtual ~Encoder() = default;
  struct Result {
    Var annotations;  ///< [S,B,M]
    /// [B, final_width()]: of the top layer; of both directions if it is bidirectional.
    Var final_state;
  };
  /// x [S,B,E]. Callers move x in, so that without recording no value outlives its last use.
  virtual Result operator()(Tape& tape, Var x, const ops::PaddedSentences& sentences) const = 0;
  virtual std::int64_t width() const = 0;  ///< M
  virtual std::int64_t final_width() const = 0;
  /// As RecurrentLayer::saved_floats(), of all layers for sentences of so many tokens.
  virtual std::int64_t saved_floats(std::int64_t source_tokens) const = 0;
  virtual void freeze(const Context& context) const = 0;
};

/// Stacked recurrent layers. The first one is bidirectional, the others run forward. The
/// architecture (model/architecture.h) determines what is between and after them.
class StackedEncoder : public Encoder {
 public:
  StackedEncoder(const Builder& builder, const ModelSpec& spec);
  Result operator()(Tape& tape, Var x, const ops::PaddedSentences& sentences) const override;
  std::int64_t width() const override { return width_; }
  std::int64_t final_width() const override { return final_width_; }
  std::int64_t saved_floats(std::int64_t source_tokens) const override;
  void freeze(const Context& context) const override;

 private:
  BidirectionalLayer first_;
  std::deque<RecurrentLayer> upper_;
  std::deque<Residual> residuals_;  // projected residuals
  const Architecture& architecture_;
  float dropout_;
  std::int64_t width_, final_width_;
};

}  // namespace nmt
