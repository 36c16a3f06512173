#include "bindings.h"
#include "interruptible.h"

#include <sstream>
#include <utility>

#include <nanobind/stl/map.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>
#include <nmt/translator.h>

namespace nb = nanobind;

namespace nmt::python {
namespace {

/// `settings`: NUL separates the words of a shortlist, whose file may have spaces in its name.
TranslatorOptions options_of(Settings settings, bool attention) {
  TranslatorOptions options;
  options.attention = attention;
  if (const auto shortlist = settings.extract("shortlist"); !shortlist.empty()) {
    std::istringstream words(shortlist.mapped());
    for (std::string word; std::getline(words, word, '\0');) options.shortlist.push_back(word);
    if (options.shortlist.empty()) options.shortlist.emplace_back();
  }
  options.settings = std::move(settings);
  return options;
}

/// The hypotheses of each line, best first.
std::vector<std::vector<Translation>> lists(std::vector<Translation>&& translations) {
  std::vector<std::vector<Translation>> result(translations.size());
  for (std::size_t i = 0; i < translations.size(); ++i) {
    std::vector<Translation> others = std::move(translations[i].alternatives);
    translations[i].alternatives.clear();
    result[i].reserve(1 + others.size());
    result[i].push_back(std::move(translations[i]));
    for (Translation& other : others) result[i].push_back(std::move(other));
  }
  return result;
}

void load(Translator* self, const std::vector<std::string>& models, const Settings& settings,
          bool attention) {
  const Released released;
  new (self) Translator(Translator::ensemble(models, options_of(settings, attention)));
}

Translator with(const Translator& self, const Settings& settings, bool attention) {
  const Released released;
  return self.with(options_of(settings, attention));
}

std::vector<std::vector<Translation>> translate(Translator& self,
                                                const std::vector<std::string>& lines, Stop* stop,
                                                std::int64_t first) {
  return interruptible(
      stop, [&](const ShouldStop& asked) { return lists(self.translate(lines, asked, first)); });
}

std::int64_t translate_file(Translator& self, const std::string& input, const std::string& output,
                            Stop* stop) {
  return interruptible(
      stop, [&](const ShouldStop& asked) { return self.translate_file(input, output, asked); });
}

}  // namespace

void bind_translator(nb::module_& module) {
  nb::class_<Stop>(module, "Stop", "A request to stop a call from another thread.")
      .def(nb::init<>())
      .def("set", &Stop::set)
      .def("is_set", &Stop::is_set);
  nb::class_<Translator>(module, "Translator", "Loaded models with options of the search.")
      .def("__init__", &load, nb::arg("models"), nb::arg("settings"), nb::arg("attention") = false)
      .def("with_settings", &with, nb::arg("settings"), nb::arg("attention") = false)
      .def("translate", &translate, nb::arg("lines"), nb::arg("stop").none() = nb::none(),
           nb::arg("first") = 1, "The hypotheses of each line, best first. first: its number.")
      .def("translate_file", &translate_file, nb::arg("input"), nb::arg("output"),
           nb::arg("stop").none() = nb::none(), "The number of lines.")
      .def("context_sentences", &Translator::context_sentences)
      .def("source_vocabulary", &Translator::source_vocabulary, nb::rv_policy::reference_internal)
      .def("target_vocabulary", &Translator::target_vocabulary, nb::rv_policy::reference_internal);
}

}  // namespace nmt::python
