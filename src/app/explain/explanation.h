#pragma once

#include "model/directory/loaded_model.h"
#include "search/batch_translator.h"

#include <cstdint>
#include <memory>
#include <string>

#include <nlohmann/json_fwd.hpp>

namespace nmt::app {

/// Translations and what the model did on the way, as the page of nmt-explain and its JSON show
/// them (docs/guide/explain.md names the members). Each translation is found by search and then
/// forced through the model, which shows gates and attention.
class Explanation {
 public:
  /// `keep_gates`: for save_gates(). The model and the translator outlive this object.
  Explanation(LoadedModel& model, BatchTranslator& translator, const std::string& directory,
              bool keep_gates);
  ~Explanation();
  /// A line without anything but white space is shown as such. Numbers from 1.
  void add(const std::string& line, std::int64_t number);
  /// All of it so far.
  nlohmann::ordered_json json() const;
  /// The gates as a safetensors file: "<line>.<unit>.input" and ".forget", f32 [positions, H] in
  /// the order of the sentence.
  void save_gates(const std::string& path) const;

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

}  // namespace nmt::app
