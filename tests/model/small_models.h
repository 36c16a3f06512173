#pragma once

#include "config/specs.h"
#include "core/rng.h"
#include "data/batch.h"

#include <cstdint>
#include <string>
#include <vector>

// Small models of every architecture, unit and option that changes what a model computes, for tests
// that hold for all models.
namespace nmt::test {

constexpr int source_size = 23, target_size = 19;  // of the vocabularies
constexpr std::int32_t bos = 1, eos = 2;

std::vector<Ids> random_sentences(Rng& rng, int n, int vocabulary, int longest);
Batch batch_of(const std::vector<Ids>& sources, const std::vector<Ids>& targets);

/// A model of width 10 with two layers, or as many as the architecture has.
ModelSpec small(const std::string& type, const std::string& unit);
/// At least one of each architecture, unit and such option.
std::vector<ModelSpec> specs();
/// A model in words, for messages.
std::string text_of(const ModelSpec& spec);

}  // namespace nmt::test
