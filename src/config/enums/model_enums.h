#pragma once

#include "config/enum_names.h"

namespace nmt {

/// Architectures: a row of architectures.def each; the first is the default.
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

/// How attention scores a query and a key: v tanh(q + k) (Bahdanau et al. 2015), or their scaled
/// dot product. none: the model has no attention.
enum class AttentionType { additive, dot, none };
template <>
struct EnumNames<AttentionType> {
  static constexpr auto names = std::to_array<std::string_view>({"additive", "dot", "none"});
};

/// What asks the source: the lower unit of a conditional first decoder layer, or the outputs of a
/// plain one for all steps at once.
enum class AttentionQuery { recurrent, first_layer };
template <>
struct EnumNames<AttentionQuery> {
  static constexpr auto names = std::to_array<std::string_view>({"recurrent", "first-layer"});
};

/// How the matrices of a new model are drawn; standard: recurrent ones orthogonal, embeddings
/// normal with deviation width^-1/2, others as Glorot & Bengio 2010.
enum class Initialization { standard, orthogonal, glorot_uniform, uniform, normal };
template <>
struct EnumNames<Initialization> {
  static constexpr auto names = std::to_array<std::string_view>(
      {"standard", "orthogonal", "glorot-uniform", "uniform", "normal"});
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
