#pragma once

#include "core/rng.h"
#include "tensor/rounded.h"

#include <deque>
#include <functional>
#include <string>
#include <vector>

namespace nmt {

/// A trained tensor. Its name gives its place in the model, for example
/// "decoder.layer_0.lower.input_projection". In a model frozen for inference, a matrix that is only
/// used in products keeps only its packed form; `value` is then empty.
struct Parameter {
  /// The part of the model it belongs to, for counting (model/inventory.h).
  enum class Role { embedding, encoder, attention_keys, initial_states, decoder, readout, softmax };
  std::string name;
  Shape shape;
  Role role = Role::decoder;
  bool is_matrix = false;  ///< used in products: one multiply-add per weight and row
  Tensor value;
  /// Same shape; empty in a frozen model. A gradient that a product may start is written only
  /// through the tape, with Tape::gradient(Parameter&) or Tape::product_gradient(): it may be old
  /// (gradient_is_old), and a sum with it would be wrong.
  Tensor gradient;
  /// The value for products, as the last update has written it (train/optimization/optimizer.h).
  Rounded rounded = {};
  bool is_rounded_in_passes = false;  ///< set by passes that had to round the value themselves
  /// Set by passes that start the gradient with a product (Tape::product_gradient()). Updates then
  /// leave the old gradient in place instead of writing zeros.
  bool gradient_starts_with_product = false;
  /// The gradient is that of an earlier update: the next pass overwrites it.
  bool gradient_is_old = false;
  /// Frozen matrices: kernels::pack() of the [K,N] matrix, or of the transpose of an embedding.
  Tensor packed;
  /// The same in int8 by rows, for activations with many zeros (kernels::copy_int8_rows()), or
  /// empty.
  Tensor packed_rows;

  // While a model is being frozen, `value` may have the type of the file: bf16, or i8 with one
  // scale per column (per row of a table).
  Tensor scales;
  /// Loads the value just before it is packed; may be empty.
  std::function<void(Parameter&)> fetch;

  /// Calls `fetch` if the value has not been loaded.
  void load();
  void drop_value() { value = scales = {}; }
  bool is_packed() const { return static_cast<bool>(packed); }
  /// Whether it is a lookup table; tables are packed transposed.
  bool is_table() const {
    return shape.rank() == 2 && (role == Role::embedding || role == Role::softmax);
  }
  /// Whether it may be stored in bf16 or i8 when frozen: dense matrices and tables.
  bool may_be_rounded() const { return shape.rank() == 2 && (is_matrix || is_table()); }
};

/// A recurrent layer of a model, for messages.
struct RecurrentLayerInfo {
  std::string layer;              ///< "encoder.layer_0.forward"
  std::string cudnn_unsupported;  ///< why cuDNN does not support it; empty if it does
  /// Why its steps cannot run as one kernel (kernels/recurrent/persistent.h); empty if they can.
  std::string persistent_unsupported;
};

/// The parameters of a model, in order of creation.
class ParameterSet {
 public:
  enum class Init {
    zero,
    one,
    /// Uniform +-sqrt(6/(in+out)) (Glorot & Bengio 2010, eq. 16), per plane of a gate matrix.
    glorot,
    embedding,  ///< normal with standard deviation width^-1/2
    /// Every plane (of every block) orthogonal (Saxe et al. 2014): its rows, or its columns if
    /// fewer.
    orthogonal,
    uniform,  ///< uniform +-1
    normal    ///< standard normal
  };
  /// Creates a parameter with values drawn from the generator; the name must be new. `planes`:
  /// number of gates side by side in the matrix; each is initialized separately. Rank 3
  /// [K,rows,columns]: K blocks of a block-diagonal matrix, each initialized separately. `scale`
  /// multiplies the values. Without an arena in the context, only names and shapes are created, for
  /// counting. After leave_unset(), values are allocated but not initialized, and there are no
  /// gradients.
  Parameter& add(const Context& context, const std::string& name, Shape shape, Init init, Rng& rng,
                 int planes = 1, float scale = 1.0f);
  void leave_unset() { unset_ = true; }
  Parameter* find(const std::string& name);

  std::deque<Parameter>& all() { return parameters_; }
  const std::deque<Parameter>& all() const { return parameters_; }
  std::int64_t elements() const;
  /// The recurrent layers, in order of creation.
  std::vector<RecurrentLayerInfo>& recurrences() { return recurrences_; }

 private:
  bool unset_ = false;
  std::deque<Parameter> parameters_;  // a deque, because layers keep pointers
  std::vector<RecurrentLayerInfo> recurrences_;
};

}  // namespace nmt
