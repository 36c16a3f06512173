#include "bindings.h"
#include "interruptible.h"

#include <nanobind/stl/map.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>
#include <nmt/scorer.h>

namespace nb = nanobind;

namespace nmt::python {
namespace {

ScorerOptions options_of(const Settings& settings, bool attention) {
  ScorerOptions options;
  options.attention = attention;
  options.settings = settings;
  return options;
}

void load(Scorer* self, const std::vector<std::string>& models, const Settings& settings,
          bool attention) {
  const Released released;
  new (self) Scorer(Scorer::ensemble(models, options_of(settings, attention)));
}

void share(Scorer* self, const Translator& translator, const Settings& settings, bool attention) {
  const Released released;
  new (self) Scorer(translator, options_of(settings, attention));
}

std::vector<std::vector<PairProbability>> score(
    Scorer& self, const std::vector<std::string>& sources,
    const std::vector<std::vector<std::string>>& targets, Stop* stop) {
  return interruptible(
      stop, [&](const ShouldStop& asked) { return self.score_n_best(sources, targets, asked); });
}

}  // namespace

void bind_scorer(nb::module_& module) {
  nb::class_<Scorer>(module, "Scorer", "Loaded models with options of scoring.")
      .def("__init__", &load, nb::arg("models"), nb::arg("settings"), nb::arg("attention") = false)
      .def("__init__", &share, nb::arg("translator"), nb::arg("settings"),
           nb::arg("attention") = false)
      .def("score", &score, nb::arg("sources"), nb::arg("targets"),
           nb::arg("stop").none() = nb::none(),
           "The scores of the targets of each source, in their order.");
}

}  // namespace nmt::python
