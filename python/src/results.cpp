#include "arrays.h"
#include "bindings.h"

#include <cstring>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

namespace nb = nanobind;

namespace nmt::python {
namespace {

nb::list links(const std::vector<AlignmentLink>& alignment) {
  nb::list list;
  for (const AlignmentLink& link : alignment) list.append(nb::make_tuple(link.source, link.target));
  return list;
}

/// What is pickled of results, whose arrays are bytes.
using Pairs = std::vector<std::pair<int, int>>;
using AttentionState = std::tuple<int, int, nb::bytes>;
using HypothesisState =
    std::tuple<std::string, std::vector<std::string>, double, double, Pairs, AttentionState>;
using PairState = std::tuple<double, double, nb::bytes, Pairs, AttentionState>;

nb::bytes bytes(const std::vector<float>& values) {
  return nb::bytes(values.data(), values.size() * sizeof(float));
}
std::vector<float> floats(const nb::bytes& bytes) {
  std::vector<float> values(bytes.size() / sizeof(float));
  if (!values.empty()) std::memcpy(values.data(), bytes.c_str(), values.size() * sizeof(float));
  return values;
}

Pairs state(const std::vector<AlignmentLink>& alignment) {
  Pairs pairs;
  for (const AlignmentLink& link : alignment) pairs.emplace_back(link.source, link.target);
  return pairs;
}
std::vector<AlignmentLink> alignment(const Pairs& pairs) {
  std::vector<AlignmentLink> result;
  for (const auto& [source, target] : pairs) result.push_back({source, target});
  return result;
}

AttentionState state(const Attention& attention) {
  return {attention.rows, attention.columns, bytes(attention.weights)};
}
Attention attention(const AttentionState& state) {
  return {std::get<0>(state), std::get<1>(state), floats(std::get<2>(state))};
}

HypothesisState state(const Translation& self) {
  return {self.text,  self.tokens,           self.log_prob,
          self.score, state(self.alignment), state(self.attention)};
}
void restore(Translation& self, const HypothesisState& from) {
  const auto& [text, tokens, log_prob, score, links, weights] = from;
  new (&self) Translation{text, tokens, log_prob, score, alignment(links), attention(weights), {}};
}

PairState state(const PairProbability& self) {
  return {self.log_prob, self.score, bytes(self.token_log_probs), state(self.alignment),
          state(self.attention)};
}
void restore(PairProbability& self, const PairState& from) {
  const auto& [log_prob, score, log_probs, links, weights] = from;
  new (&self)
      PairProbability{log_prob, score, floats(log_probs), alignment(links), attention(weights)};
}

/// Makes a class picklable.
template <class Result, class State>
void pickle(nb::class_<Result>& type) {
  type.def("__getstate__", [](const Result& self) { return state(self); })
      .def("__setstate__", [](Result& self, const State& from) { restore(self, from); });
}

constexpr const char* attention_help =
    "Weights [target subwords + 1, source subwords + 1]; the last ones are </s>. Columns of "
    "context sentences, each with its </s>, come before those of the line.";

}  // namespace

void bind_results(nb::module_& module) {
  nb::class_<Translation> hypothesis(module, "Hypothesis", "One translation of a line.");
  pickle<Translation, HypothesisState>(hypothesis);
  hypothesis.def_ro("text", &Translation::text)
      .def_ro("tokens", &Translation::tokens, "Subwords of the text, without </s>.")
      .def_ro("log_prob", &Translation::log_prob, "Natural logarithm, </s> included.")
      .def_ro("score", &Translation::score, "log_prob under the length and coverage penalties.")
      .def_prop_ro(
          "alignment", [](const Translation& self) { return links(self.alignment); },
          nb::sig("def alignment(self) -> list[tuple[int, int]]"),
          "Pairs of source and target positions, sorted by source.")
      .def_prop_ro(
          "attention", [](const Translation& self) { return matrix(self.attention); },
          nb::rv_policy::automatic, attention_help);
  nb::class_<PairProbability> pair(module, "PairScore", "The score of a target given its source.");
  pickle<PairProbability, PairState>(pair);
  pair.def_ro("log_prob", &PairProbability::log_prob, "Natural logarithm, </s> included.")
      .def_ro("score", &PairProbability::score, "log_prob under the length and coverage penalties.")
      .def_prop_ro(
          "token_log_probs",
          [](const PairProbability& self) { return vector(self.token_log_probs); },
          nb::rv_policy::automatic, "Of each subword of the target; the last is </s>.")
      .def_prop_ro(
          "alignment", [](const PairProbability& self) { return links(self.alignment); },
          nb::sig("def alignment(self) -> list[tuple[int, int]]"),
          "Pairs of source and target positions, sorted by source.")
      .def_prop_ro(
          "attention", [](const PairProbability& self) { return matrix(self.attention); },
          nb::rv_policy::automatic, attention_help);
}

}  // namespace nmt::python
