#include "bindings.h"
#include "calls.h"

#include <string>

#include <nanobind/stl/string.h>
#include <nmt/error.h>
#include <nmt/log.h>
#include <nmt/version.h>

namespace nb = nanobind;

namespace nmt::python {
namespace {

void set_log_level(const std::string& name) {
  constexpr std::pair<const char*, LogLevel> levels[] = {{"debug", LogLevel::debug},
                                                         {"info", LogLevel::info},
                                                         {"warning", LogLevel::warning},
                                                         {"error", LogLevel::error},
                                                         {"off", LogLevel::off}};
  for (const auto& [known, level] : levels)
    if (name == known) return nmt::set_log_level(level);
  std::string shown = name;
  for (char& c : shown)
    if (static_cast<unsigned char>(c) < ' ') c = ' ';
  throw Error(ExitStatus::usage,
              "set_log_level: '" + shown + "'; expected debug, info, warning, error or off");
}

}  // namespace
}  // namespace nmt::python

NB_MODULE(_nmt, module) {
  nb::set_leak_warnings(false);  // of objects that threads hold which the end of Python ends
  module.doc() = "The C++ library of nmt. Use the package nmt instead.";
  module.def("version", &nmt::version, "The version of the library.");
  module.def("set_log_level", &nmt::python::set_log_level, nb::arg("level"),
             "Drops messages below this level: debug, info, warning, error or off.");
  nmt::python::bind_calls();
  nmt::python::bind_errors(module);
  nmt::python::bind_results(module);
  nmt::python::bind_vocabulary(module);
  nmt::python::bind_translator(module);
  nmt::python::bind_scorer(module);
  nmt::python::bind_training(module);
  nmt::python::bind_metrics(module);
}
