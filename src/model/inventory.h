#pragma once

#include "model/model.h"

#include <cstdint>
#include <string>
#include <vector>

namespace nmt {

/// The parameters of a model and the cost of its matrix products, which take all but a few percent
/// of its time. A matrix costs one multiply-add per weight and row.
struct Inventory {
  struct Part {
    /// Embeddings, encoder, attention keys, initial states, decoder, readout, softmax; other names
    /// in models that label words or texts.
    std::string name;
    std::int64_t parameters = 0;
    /// of these, the weights of matrices that products read: no biases, gains or per-channel
    /// vectors.
    std::int64_t weights = 0;
    /// How often its products are done: "source token", "target token", "sentence", "" for none.
    std::string once;
    /// multiply-adds each time; those of a tied softmax count, though its table is an embedding.
    std::int64_t products = 0;
    /// Counts a parameter whose matrix does its products `once`.
    void add(const Parameter& parameter);
  };
  std::vector<Part> parts;
  /// Of the values: M of the annotations, or their projection's; 0 without attention. With an
  /// attention in every decoder layer, this and the space are sums over the layers.
  std::int64_t memory_width = 0;
  std::int64_t attention_space = 0;  ///< A; 0 without attention
  /// Of the encoder's self-attention per pair of source tokens; 0 without it.
  std::int64_t self_attention_products = 0;

  std::int64_t parameters() const;
  std::int64_t embeddings()
      const;  ///< all tables that words are looked up in; with tied weights the softmax's too
  std::int64_t products(const std::string& once) const;
  /// Multiply-adds of attention per target token and source token: a score over A, a weighted mean
  /// over the values (kernels/attention.h).
  std::int64_t attention_products() const { return memory_width + attention_space; }
};

/// Counts a model, which needs no weights (Context without an arena).
Inventory take_inventory(Model& model);
/// The same of the parameters of any model with a softmax over `target_vocabulary` words, whose
/// readout has the width dim_emb. Parts without parameters stay in the list.
Inventory take_inventory(ParameterSet& parameters, int target_vocabulary, int dim_emb);

}  // namespace nmt
