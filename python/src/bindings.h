#pragma once

#include <nanobind/nanobind.h>

namespace nmt::python {

void bind_errors(nanobind::module_& module);
void bind_results(nanobind::module_& module);
void bind_translator(nanobind::module_& module);
void bind_scorer(nanobind::module_& module);
void bind_training(nanobind::module_& module);
void bind_metrics(nanobind::module_& module);
void bind_vocabulary(nanobind::module_& module);

}  // namespace nmt::python
