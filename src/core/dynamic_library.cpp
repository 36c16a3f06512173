#include "core/dynamic_library.h"

#include "core/error.h"

#include <dlfcn.h>

namespace nmt {

DynamicLibrary::DynamicLibrary(std::initializer_list<std::string> names, Symbols symbols) {
  for (const std::string& name : names) {
    handle_ =
        dlopen(name.c_str(), RTLD_NOW | (symbols == Symbols::global ? RTLD_GLOBAL : RTLD_LOCAL));
    if (handle_) {
      name_ = name;
      error_.clear();
      return;
    }
    const char* const why = dlerror();
    error_ += (error_.empty() ? "" : "; ") + (why ? std::string(why) : name + ": cannot be opened");
  }
}

DynamicLibrary::~DynamicLibrary() {
  if (handle_) dlclose(handle_);
}

void* DynamicLibrary::look_up(const char* name, bool needed) {
  if (!handle_) return nullptr;
  void* const found = dlsym(handle_, name);
  if (!found && needed && error_.empty()) error_ = fmt::format("{} has no {}", name_, name);
  return found;
}

void DynamicLibrary::require(std::string_view feature) const {
  if (error_.empty()) return;
  fail(ExitStatus::usage,
       "{}: {}; install it next to the program's libraries or add its folder to LD_LIBRARY_PATH",
       feature, error_);
}

std::string soname(std::string_view library, int major) {
  return fmt::format("{}.so.{}", library, major);
}

}  // namespace nmt
