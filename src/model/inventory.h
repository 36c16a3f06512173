#pragma once

#include "model/model.h"

#include <cstdint>
#include <string>
#include <vector>

namespace nmt {

/// What a model consists of and what its products cost. Multiply-adds are those of matrix products,
/// which all cost but a few per cent of a model's time is; a matrix costs one for each of its
/// weights and each row that passes through it.
struct Inventory {
  struct Part {
    std::string
        name;  ///< embeddings, encoder, attention keys, initial states, decoder, readout, softmax
    std::int64_t parameters = 0;
    std::int64_t weights = 0;  ///< of these, the weights of matrices that products read: no biases,
                               ///< gains or per-channel vectors
    std::string once;          ///< how often its products are done: "source token", "target token",
                               ///< "sentence", "" for none
    std::int64_t products = 0;  ///< multiply-adds each time; those of a tied softmax count, though
                                ///< its table is an embedding
  };
  std::vector<Part> parts;
  std::int64_t memory_width = 0;     ///< M of the annotations; 0 without attention
  std::int64_t attention_space = 0;  ///< A; 0 without attention

  std::int64_t parameters() const;
  std::int64_t embeddings()
      const;  ///< all tables that words are looked up in; with tied weights the softmax's too
  std::int64_t products(const std::string& once) const;
  /// Multiply-adds of attention for each target token and source token: a score over A, a mean over
  /// M (kernels/attention.h).
  std::int64_t attention_products() const { return memory_width + attention_space; }
};

/// The inventory of a model, whose weights need not be there (Context without an arena).
Inventory take_inventory(Model& model);

}  // namespace nmt
