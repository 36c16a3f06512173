#pragma once

#include "config/enum_names.h"

namespace nmt {

/// Architectures, one per row of architectures.def; the first is the default.
enum class ModelType {
#define NMT_ARCHITECTURE(name, ...) name,
#include "config/enums/architectures.def"
#undef NMT_ARCHITECTURE
};
template <>
struct EnumNames<ModelType> {
  static constexpr auto names = std::to_array<std::string_view>({
#define NMT_ARCHITECTURE(name, ...) #name,
#include "config/enums/architectures.def"
#undef NMT_ARCHITECTURE
  });
};

/// What a model is trained for, one per row of tasks.def; the first is the default.
enum class Task {
#define NMT_TASK(name, ...) name,
#include "config/enums/tasks.def"
#undef NMT_TASK
};
template <>
struct EnumNames<Task> {
  static constexpr auto names = std::to_array<std::string_view>({
#define NMT_TASK(name, word, ...) word,
#include "config/enums/tasks.def"
#undef NMT_TASK
  });
};
/// Number of files in a training set of the task.
constexpr int files_per_set(Task task) {
  constexpr int numbers[] = {
#define NMT_TASK(name, word, files, model) files,
#include "config/enums/tasks.def"
#undef NMT_TASK
  };
  return numbers[static_cast<int>(task)];
}
/// A model of the task in messages: "a language model".
constexpr std::string_view model_of(Task task) {
  constexpr std::string_view models[] = {
#define NMT_TASK(name, word, files, model) model,
#include "config/enums/tasks.def"
#undef NMT_TASK
  };
  return models[static_cast<int>(task)];
}

/// How attention scores a query and a key: v tanh(q + k) (Bahdanau et al. 2015), or their scaled
/// dot product. none: the model has no attention.
enum class AttentionType { additive, dot, none };
template <>
struct EnumNames<AttentionType> {
  static constexpr auto names = std::to_array<std::string_view>({"additive", "dot", "none"});
};

/// Source of the attention queries: the lower unit of a conditional first decoder layer, step by
/// step, or the outputs of a plain first layer, for all steps at once.
enum class AttentionQuery { recurrent, first_layer };
template <>
struct EnumNames<AttentionQuery> {
  static constexpr auto names = std::to_array<std::string_view>({"recurrent", "first-layer"});
};

/// What mixes the positions of an encoder layer of gated blocks.
enum class EncoderMixer { recurrent, attention };
template <>
struct EnumNames<EncoderMixer> {
  static constexpr auto names = std::to_array<std::string_view>({"recurrent", "attention"});
};

/// Directions of recurrent encoder layers of gated blocks: forward and backward layers by turns, or
/// two units in each layer.
enum class EncoderDirections { alternating, joined };
template <>
struct EnumNames<EncoderDirections> {
  static constexpr auto names = std::to_array<std::string_view>({"alternating", "joined"});
};

/// Positions of self-attention: rotary (Su et al. 2021).
enum class EncoderPositions { rotary, none };
template <>
struct EnumNames<EncoderPositions> {
  static constexpr auto names = std::to_array<std::string_view>({"rotary", "none"});
};

/// Factor of the embeddings that enter the first layers of blocks: 1, or the square root of their
/// width (Vaswani et al. 2017, section 3.4).
enum class EmbeddingScale { none, sqrt };
template <>
struct EnumNames<EmbeddingScale> {
  static constexpr auto names = std::to_array<std::string_view>({"none", "sqrt"});
};

/// Activation of the gate branch that multiplies the output of a unit (De et al. 2024).
enum class GateBranch { gelu, silu, none };
template <>
struct EnumNames<GateBranch> {
  static constexpr auto names = std::to_array<std::string_view>({"gelu", "silu", "none"});
};

/// Feed-forward layers: SwiGLU (Shazeer 2020) or with ReLU (Vaswani et al. 2017).
enum class FeedForwardKind { swiglu, relu, none };
template <>
struct EnumNames<FeedForwardKind> {
  static constexpr auto names = std::to_array<std::string_view>({"swiglu", "relu", "none"});
};

/// Initialization of the weight matrices. standard: recurrent ones orthogonal, embeddings normal
/// with deviation width^-1/2, others as Glorot & Bengio 2010.
enum class Initialization { standard, orthogonal, glorot_uniform, uniform, normal };
template <>
struct EnumNames<Initialization> {
  static constexpr auto names = std::to_array<std::string_view>(
      {"standard", "orthogonal", "glorot-uniform", "uniform", "normal"});
};

/// How the biases of gates start: at 0 (none), at a constant, or as Tallec & Ollivier 2018
/// (chrono).
enum class GateInit { none, constant, chrono };
template <>
struct EnumNames<GateInit> {
  static constexpr auto names = std::to_array<std::string_view>({"none", "constant", "chrono"});
};

// Variants of units: unit_options.def.
#define NMT_UNIT_OPTION(member, Enum, option, help, usual, other)                    \
  enum class Enum { usual, other };                                                  \
  template <>                                                                        \
  struct EnumNames<Enum> {                                                           \
    static constexpr auto names = std::to_array<std::string_view>({#usual, #other}); \
  };
#include "config/enums/unit_options.def"
#undef NMT_UNIT_OPTION

}  // namespace nmt
