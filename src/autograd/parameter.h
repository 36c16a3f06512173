#pragma once

#include "core/rng.h"
#include "tensor/context.h"

#include <deque>
#include <functional>
#include <string>
#include <vector>

namespace nmt {

/// A trained tensor. Its name says where it lives: "decoder.layer_0.lower.input_projection".
/// In a model frozen for inference a matrix that only products read keeps its packed form alone;
/// value is then empty.
struct Parameter {
  /// What it serves in a model, for counting (model/inventory.h).
  enum class Role { embedding, encoder, attention_keys, initial_states, decoder, readout, softmax };
  std::string name;
  Shape shape;
  Role role = Role::decoder;
  bool is_matrix = false;  ///< products read it: a multiply-add for each weight and row
  Tensor value;
  Tensor gradient;  ///< same shape; empty in a frozen model
  /// Frozen matrices: kernels::pack() of the [K,N] matrix (an embedding's transpose).
  Tensor packed;

  // While a model is being frozen: a value may be what a file holds, bf16, or i8 with a scale a
  // column (a row of a table).
  Tensor scales;
  /// Fills the value just before it is packed; may be empty.
  std::function<void(Parameter&)> fetch;

  /// Fetches the value, if it is still to be fetched.
  void load();
  void drop_value() { value = scales = {}; }
  bool is_packed() const { return static_cast<bool>(packed); }
  /// Whether rows of it are looked up; its packed form is that of its transpose.
  bool is_table() const {
    return shape.rank() == 2 && (role == Role::embedding || role == Role::softmax);
  }
  /// Whether a frozen model may keep it in fewer bits: dense matrices and tables.
  bool may_be_rounded() const { return shape.rank() == 2 && (is_matrix || is_table()); }
};

/// A recurrent layer of a model, for people.
struct RecurrentPlace {
  std::string layer;     ///< "encoder.layer_0.forward"
  std::string why_ours;  ///< why cuDNN cannot run it; empty: it can
};

/// The parameters of a model, in the order in which they were made.
class ParameterSet {
 public:
  enum class Init {
    zero,
    one,
    /// Uniform +-sqrt(6/(in+out)) (Glorot & Bengio 2010, eq. 16), for each plane of a gate matrix.
    glorot,
    embedding,  ///< normal with deviation width^-1/2
    /// Each plane (of each block) orthogonal (Saxe et al. 2014): its rows where they are fewer,
    /// else its columns.
    orthogonal,
    uniform,  ///< uniform +-1
    normal    ///< normal with deviation 1
  };
  /// Makes a parameter with values drawn from the generator; the name must be new. `planes`: the
  /// matrix stands for so many gates side by side, each initialized alone. Rank 3 [K,rows,columns]
  /// is K blocks of a block-diagonal matrix, each likewise. `scale` multiplies what is drawn. A
  /// context without an arena makes names and shapes alone: for counting. After leave_unset()
  /// values have their memory and nothing in it, and there are no gradients.
  Parameter& add(const Context& context, const std::string& name, Shape shape, Init init, Rng& rng,
                 int planes = 1, float scale = 1.0f);
  void leave_unset() { unset_ = true; }
  Parameter* find(const std::string& name);

  std::deque<Parameter>& all() { return parameters_; }
  const std::deque<Parameter>& all() const { return parameters_; }
  std::int64_t elements() const;
  /// The layers that they make, in the same order.
  std::vector<RecurrentPlace>& recurrences() { return recurrences_; }

 private:
  bool unset_ = false;
  std::deque<Parameter> parameters_;  // a deque: layers keep pointers
  std::vector<RecurrentPlace> recurrences_;
};

}  // namespace nmt
