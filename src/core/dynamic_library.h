#pragma once

#include <initializer_list>
#include <string>
#include <string_view>

namespace nmt {

/// A shared library opened at run time, closed by the destructor. Programs that never reach the
/// code that needs it neither load nor need it.
///   DynamicLibrary library({soname("libexample", 2)});
///   int (*function)(int) = nullptr;
///   library.find("example_function", function);
///   library.require("--example");
class DynamicLibrary {
 public:
  enum class Symbols { local, global };  ///< global: libraries loaded later see its symbols too

  /// Opens the first of `names` that the loader finds: beside the program's libraries, in
  /// LD_LIBRARY_PATH or among the system's libraries. error() says why there is none.
  explicit DynamicLibrary(std::initializer_list<std::string> names,
                          Symbols symbols = Symbols::local);
  ~DynamicLibrary();
  DynamicLibrary(const DynamicLibrary&) = delete;
  DynamicLibrary& operator=(const DynamicLibrary&) = delete;

  /// Looks a function up by name; null where the library has none, which error() then says.
  template <class Function>
  void find(const char* name, Function*& function) {
    function = reinterpret_cast<Function*>(look_up(name, true));
  }
  /// The same for a function that the library may lack.
  template <class Function>
  void find_optional(const char* name, Function*& function) {
    function = reinterpret_cast<Function*>(look_up(name, false));
  }

  /// Empty where the library is open and has every function that find() looked up; otherwise every
  /// name that was tried with the loader's message, or the first missing function.
  const std::string& error() const { return error_; }
  /// Fails (usage) with error(), naming the feature that needs the library: "device=cuda".
  void require(std::string_view feature) const;

 private:
  void* look_up(const char* name, bool needed);

  void* handle_ = nullptr;
  std::string name_, error_;
};

/// "libcublas.so.13" of "libcublas" and 13.
std::string soname(std::string_view library, int major);

}  // namespace nmt

// A table of functions that headers declare: a macro that lists the names, expanded twice.
//   #define EXAMPLE_FUNCTIONS(function) function(exampleCreate); function(exampleDestroy)
//   struct Example {
//     EXAMPLE_FUNCTIONS(NMT_FUNCTION_MEMBER);
//     explicit Example(DynamicLibrary& library) { EXAMPLE_FUNCTIONS(NMT_FIND_FUNCTION); }
//   };

/// A member that points to the function of the same name.
#define NMT_FUNCTION_MEMBER(name) decltype(&::name) name = nullptr
/// Looks the member's function up in `library`.
#define NMT_FIND_FUNCTION(name) library.find(#name, name)
