#pragma once

#include "model/directory/loaded_model.h"
#include "search/batch_translator.h"

#include <cstdint>
#include <memory>
#include <string>

#include <nlohmann/json_fwd.hpp>

namespace nmt::app {

/// Data of an nmt-explain page: translations with attention, gates and memory
/// (docs/guide/explain.md documents the JSON). Each line is translated by search; then forced
/// decoding of the translation records gates and attention.
class Explanation {
 public:
  /// `keep_gates`: keeps all gates for save_gates(). The model and the translator must outlive this
  /// object.
  Explanation(LoadedModel& model, BatchTranslator& translator, const std::string& directory,
              bool keep_gates);
  ~Explanation();
  /// Adds a line with its context; `number` counts from 1. A blank line is shown as blank. A
  /// warning names the first line whose context does not fit into the maximum length.
  void add(const std::string& line, const ContextSentences& context, std::int64_t number);
  /// The data of all lines so far.
  nlohmann::ordered_json json() const;
  /// Writes the gates as a safetensors file: "<line>.<unit>.input", ".forget" and, of element-wise
  /// units, ".slope" (GateRecord::slope), f32 [positions, H] in the order of the sentence.
  void save_gates(const std::string& path) const;

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

}  // namespace nmt::app
