#include "bindings.h"

#include <exception>

#include <nmt/error.h>

namespace nb = nanobind;

namespace nmt::python {
namespace {

/// The class of nmt/errors.py for a status.
const char* class_of(ExitStatus status) {
  switch (status) {
    case ExitStatus::usage: return "UsageError";
    case ExitStatus::data: return "DataError";
    case ExitStatus::memory: return "OutOfMemoryError";
    case ExitStatus::interrupted:
    case ExitStatus::terminated: return "StoppedError";
    case ExitStatus::ok:
    case ExitStatus::failed: break;
  }
  return "FailedError";
}

void raise(const char* name, const char* message) {
  const nb::object type = nb::module_::import_("nmt.errors").attr(name);
  PyErr_SetString(type.ptr(), message);
}

void translate(const std::exception_ptr& thrown, void*) {
  try {
    std::rethrow_exception(thrown);
  } catch (const Error& error) {
    raise(class_of(error.status()), error.what());
  } catch (const OutOfMemory& error) {
    raise("OutOfMemoryError", error.what());
  } catch (const std::bad_alloc&) {
    raise("OutOfMemoryError", "out of memory");
  }
}

}  // namespace

void bind_errors(nb::module_&) {
  nb::register_exception_translator(translate);
}

}  // namespace nmt::python
