#include "arrays.h"
#include "bindings.h"

#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

namespace nb = nanobind;

namespace nmt::python {
namespace {

nb::list links(const std::vector<AlignmentLink>& alignment) {
  nb::list list;
  for (const AlignmentLink& link : alignment) list.append(nb::make_tuple(link.source, link.target));
  return list;
}

}  // namespace

void bind_results(nb::module_& module) {
  nb::class_<Translation>(module, "Hypothesis", "One translation of a line.")
      .def_ro("text", &Translation::text)
      .def_ro("tokens", &Translation::tokens, "Subwords of the text, without </s>.")
      .def_ro("log_prob", &Translation::log_prob, "Natural logarithm, </s> included.")
      .def_ro("score", &Translation::score, "log_prob under the length and coverage penalties.")
      .def_prop_ro(
          "alignment", [](const Translation& self) { return links(self.alignment); },
          nb::sig("def alignment(self) -> list[tuple[int, int]]"),
          "Pairs of source and target positions, sorted by source.")
      .def_prop_ro(
          "attention", [](const Translation& self) { return matrix(self.attention); },
          nb::rv_policy::automatic,
          "Weights [target subwords + 1, source subwords + 1]; the last ones are </s>.");
  nb::class_<PairProbability>(module, "PairScore", "The score of a target given its source.")
      .def_ro("log_prob", &PairProbability::log_prob, "Natural logarithm, </s> included.")
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
          nb::rv_policy::automatic,
          "Weights [target subwords + 1, source subwords + 1]; the last ones are </s>.");
}

}  // namespace nmt::python
