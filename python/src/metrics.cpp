#include "bindings.h"
#include "calls.h"

#include <nanobind/stl/array.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>
#include <nmt/metrics.h>

namespace nb = nanobind;

namespace nmt::python {

void bind_metrics(nb::module_& module) {
  nb::enum_<BleuTokenizer>(module, "BleuTokenizer")
      .value("v13a", BleuTokenizer::v13a)
      .value("intl", BleuTokenizer::intl)
      .value("none", BleuTokenizer::none)
      .value("multi_bleu", BleuTokenizer::multi_bleu);
  nb::enum_<BleuSmoothing>(module, "BleuSmoothing")
      .value("exp", BleuSmoothing::exp)
      .value("floor", BleuSmoothing::floor)
      .value("add_k", BleuSmoothing::add_k)
      .value("none", BleuSmoothing::none);
  nb::class_<BleuOptions>(module, "BleuOptions")
      .def(nb::init<>())
      .def_rw("tokenizer", &BleuOptions::tokenizer)
      .def_rw("lowercase", &BleuOptions::lowercase)
      .def_rw("smoothing", &BleuOptions::smoothing)
      .def_rw("smoothing_value", &BleuOptions::smoothing_value)
      .def_rw("effective_order", &BleuOptions::effective_order)
      .def("signature",
           [](const BleuOptions& self, int references) { return signature(self, references); });
  nb::class_<ChrfOptions>(module, "ChrfOptions")
      .def(nb::init<>())
      .def_rw("character_order", &ChrfOptions::character_order)
      .def_rw("word_order", &ChrfOptions::word_order)
      .def_rw("beta", &ChrfOptions::beta)
      .def_rw("lowercase", &ChrfOptions::lowercase)
      .def_rw("whitespace", &ChrfOptions::whitespace)
      .def("signature",
           [](const ChrfOptions& self, int references) { return signature(self, references); });
  nb::class_<TerOptions>(module, "TerOptions")
      .def(nb::init<>())
      .def_rw("case_sensitive", &TerOptions::case_sensitive)
      .def("signature",
           [](const TerOptions& self, int references) { return signature(self, references); });
  nb::class_<BleuScore>(module, "BleuScore")
      .def_ro("score", &BleuScore::score)
      .def_ro("precisions", &BleuScore::precisions)
      .def_ro("brevity_penalty", &BleuScore::brevity_penalty)
      .def_prop_ro("correct", [](const BleuScore& self) { return self.counts.correct; })
      .def_prop_ro("total", [](const BleuScore& self) { return self.counts.total; })
      .def_prop_ro("hypothesis_length",
                   [](const BleuScore& self) { return self.counts.hypothesis_length; })
      .def_prop_ro("reference_length",
                   [](const BleuScore& self) { return self.counts.reference_length; });
  module.def("bleu", &bleu, nb::arg("hypotheses"), nb::arg("references"), nb::arg("options"),
             nb::call_guard<Released>());
  module.def("ter", &ter, nb::arg("hypotheses"), nb::arg("references"), nb::arg("options"),
             nb::call_guard<Released>());
  module.def("chrf", &chrf, nb::arg("hypotheses"), nb::arg("references"), nb::arg("options"),
             nb::call_guard<Released>());
}

}  // namespace nmt::python
