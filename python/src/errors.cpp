#include "bindings.h"

#include <cstring>
#include <exception>
#include <system_error>

#include <nmt/error.h>

namespace nb = nanobind;

namespace nmt::python {
namespace {

/// Classes of nmt/errors.py. Looking them up when they are raised would run Python code, which a
/// thread must not do under C++ code while Python ends.
PyObject *failed_error = nullptr, *usage_error = nullptr, *data_error = nullptr,
         *memory_error = nullptr, *stopped_error = nullptr;

void use_errors(const nb::object& failed, const nb::object& usage, const nb::object& data,
                const nb::object& memory, const nb::object& stopped) {
  failed_error = nb::object(failed).release().ptr();
  usage_error = nb::object(usage).release().ptr();
  data_error = nb::object(data).release().ptr();
  memory_error = nb::object(memory).release().ptr();
  stopped_error = nb::object(stopped).release().ptr();
}

PyObject* class_of(ExitStatus status) {
  switch (status) {
    case ExitStatus::usage: return usage_error;
    case ExitStatus::data: return data_error;
    case ExitStatus::memory: return memory_error;
    case ExitStatus::interrupted:
    case ExitStatus::terminated: return stopped_error;
    case ExitStatus::ok:
    case ExitStatus::failed: break;
  }
  return failed_error;
}

/// Paths in messages may be no UTF-8.
void set(PyObject* type, const char* message) {
  PyObject* const text =
      PyUnicode_DecodeUTF8(message, static_cast<Py_ssize_t>(std::strlen(message)), "replace");
  PyErr_SetObject(type, text);
  Py_XDECREF(text);
}

void translate(const std::exception_ptr& thrown, void*) {
  try {
    std::rethrow_exception(thrown);
  } catch (const Error& error) {
    set(class_of(error.status()), error.what());
  } catch (const OutOfMemory& error) {
    set(memory_error, error.what());
  } catch (const std::bad_alloc&) {
    set(memory_error, "out of memory");
  } catch (const std::system_error& error) {
    set(failed_error, error.what());
  }
}

}  // namespace

void bind_errors(nb::module_& module) {
  module.def("use_errors", &use_errors, nb::arg("failed"), nb::arg("usage"), nb::arg("data"),
             nb::arg("memory"), nb::arg("stopped"), "Sets the classes that are raised.");
  nb::register_exception_translator(translate);
}

}  // namespace nmt::python
