#pragma once

#include "config/specs.h"
#include "model/encoder.h"
#include "model/inventory.h"
#include "model/trainable.h"
#include "tasks/tagging/word_forms.h"

#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace nmt {

/// A padded batch without </s>: sentence b has the words words[b], numbers of WordForms, and the
/// labels labels[b] (from 0), or none if `labels` is empty. Sentences have at least one word.
Batch make_tagging_batch(std::span<const Ids* const> words, std::span<const Ids* const> labels);

/// A tagger: a label for every word. Its networks are those of Su & Kuo (ELSTM, 2018), section 4.2:
///
///   input          x_t = dropout([word embedding; states of a bidirectional layer over the
///                  characters after the last and before the first one])
///   basic          h_t = layers over x forward;  z_t = h_t W + b
///   bidirectional  h_t = [forward; backward] layers;  z_t = h_t W + b
///   dependent      h_t as bidirectional (lower layers, eq. 26-28); upper layers f over h forward
///                  and g over h backward; z^f_t = f_t W_f + b_f, z^b_t = g_t W_b + b_b, and
///                  z_t = [z^f_t; z^b_t] P (eq. 29-31)
///
/// and p(y_t) = softmax(z_t), or with a CRF p(y) ~ exp(sum z_t[y_t] + transitions). The dependent
/// network is trained on the sum of the losses of z^f, z^b and z. In BatchLoss, `cross_entropy` is
/// the loss of z, and `smoothed` the sum. P starts as two identity matrices, so that z = z^f + z^b.
class Tagger : public Trainable {
 public:
  /// As Model::Weights.
  enum class Weights { fresh, unset, none };
  /// The batches contain numbers of `forms`, which must outlive the tagger. Errors (usage):
  /// contradictory sizes in the spec.
  Tagger(const ModelSpec& spec, int words, int labels, const WordForms& forms,
         const Context& context, std::uint64_t seed, Weights weights = Weights::fresh);
  Tagger(const Tagger&) = delete;

  const ModelSpec& spec() const { return spec_; }
  int labels() const { return labels_; }
  const Context& context() const override { return context_; }
  ParameterSet& parameters() override { return parameters_; }
  /// Parts: embeddings, characters, encoder (the layers over words), output. Products are counted
  /// per character and per word.
  Inventory inventory() const;

  void accumulate_gradients(const Batch& batch, const TrainPass& pass, const Tensor& sums,
                            const Listener& listener = {}) override;
  /// The loss without dropout and gradients.
  BatchLoss evaluate(const Batch& batch);
  /// The best labels of every sentence.
  std::vector<Ids> tag(const Batch& batch);

 private:
  struct Scores {
    Var final;              ///< z [T,B,L]
    Var forward, backward;  ///< z^f, z^b of the dependent network
  };
  struct OutputLayer {
    Parameter* weight = nullptr;  ///< [H,L]
    Parameter* bias = nullptr;    ///< [L]
  };
  OutputLayer output(const Builder& builder, const std::string& name, std::int64_t width) const;
  Var inputs(Tape& tape, const Batch& batch) const;
  Scores run(Tape& tape, const Batch& batch) const;
  void add_loss(Tape& tape, const Scores& scores, const Batch& batch, float smoothing,
                const Tensor& sums) const;

  ModelSpec spec_;
  int words_, labels_;
  const WordForms& forms_;
  Context context_;
  ParameterSet parameters_;
  Parameter* word_table_;
  Parameter* character_table_ = nullptr;
  // Of the parameters in order: the first of the layers over words, and of what is above them.
  std::size_t first_of_words_ = 0, first_of_output_ = 0;
  std::optional<BidirectionalLayer> characters_;
  std::deque<RecurrentLayer> basic_;
  std::deque<BidirectionalLayer> bidirectional_;
  std::optional<RecurrentLayer> upper_forward_, upper_backward_;
  OutputLayer output_, forward_output_, backward_output_;
  Parameter* pool_ = nullptr;         ///< P [2L,L]
  Parameter* transitions_ = nullptr;  ///< [L+2,L]
};

}  // namespace nmt
