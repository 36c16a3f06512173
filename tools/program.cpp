#include "tools/program.h"

#include <exception>
#include <new>
#include <string>

#include "nmt/core/error.h"
#include "nmt/core/log.h"

namespace nmt::tools {
namespace {

int leave(ExitStatus status, std::string message) {
  for (char& c : message)
    if (c == '\n') c = ' ';
  log::status("");
  log::error("{}", message);
  return static_cast<int>(status);
}

}  // namespace

int run_program(const std::function<int()>& body) {
  try {
    return body();
  } catch (const Error& error) {
    return leave(error.status(), error.what());
  } catch (const std::bad_alloc&) {
    return leave(ExitStatus::memory, "out of memory");
  } catch (const std::exception& error) {
    return leave(ExitStatus::failed, error.what());
  }
}

}  // namespace nmt::tools
