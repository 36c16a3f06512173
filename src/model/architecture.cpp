#include "model/architecture.h"

#include <algorithm>
#include <vector>

namespace nmt {
namespace {

constexpr Architecture rows[] = {
#define NMT_ARCHITECTURE(name_, description_, source_, ...) \
  {.type = ModelType::name_, .description = description_, .source = source_, __VA_ARGS__},
#include "config/enums/architectures.def"
#undef NMT_ARCHITECTURE
};

// The second layer of the encoder reads both directions and is half as wide as its input.
static_assert(std::all_of(std::begin(rows), std::end(rows),
                          [](const Architecture& row) { return row.first_sum >= 2; }));
static_assert(std::all_of(std::begin(rows), std::end(rows), [](const Architecture& row) {
  return row.common_layers().min <= row.common_layers().max;
}));

}  // namespace

std::span<const Architecture> architectures() {
  return rows;
}

const Architecture& architecture_of(const ModelSpec& spec) {
  return rows[static_cast<std::size_t>(spec.type)];
}

bool encoder_attends(const ModelSpec& spec) {
  return architecture_of(spec).has_blocks() && spec.block.encoder_mixer == EncoderMixer::attention;
}

std::vector<std::string> units_of(const ModelSpec& spec) {
  if (spec.task == Task::tagging || spec.task == Task::classification) return {spec.enc_cell};
  if (spec.task == Task::language_model || encoder_attends(spec)) return {spec.dec_cell};
  return {spec.enc_cell, spec.dec_cell};
}

std::string architecture_names(bool (*condition)(const Architecture&)) {
  std::vector<std::string> names;
  for (const Architecture& row : rows)
    if (condition(row)) names.emplace_back(row.name());
  std::string text;
  for (std::size_t i = 0; i < names.size(); ++i)
    text += (i == 0 ? "" : i + 1 < names.size() ? ", " : " and ") + names[i];
  return text;
}

}  // namespace nmt
