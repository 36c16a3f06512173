#pragma once

#include <string>
#include <string_view>

namespace nmt {

/// A file or a directory under a temporary name beside its target, so that rename() to the target
/// is atomic. It is removed by the destructor and by a signal that ends the program
/// (remove_temporaries_on_signals), unless publish() renamed it.
class Temporary {
 public:
  Temporary() = default;
  ~Temporary() { discard(); }
  Temporary(const Temporary&) = delete;
  Temporary& operator=(const Temporary&) = delete;

  /// Makes an empty file beside `target` and returns its descriptor, open for writing; -1 with
  /// errno. At most one call of the two per object.
  int make_file(const std::string& target);
  /// Makes an empty directory beside `target`; false with errno.
  bool make_directory(const std::string& target);
  /// Renames to `path`; false with errno.
  bool publish(const std::string& path);
  void discard();
  /// Leaves it where it is, under name(), which is returned.
  std::string keep();

  /// "" before make_file() and make_directory(), and after publish() and discard().
  const std::string& name() const { return name_; }

 private:
  friend void remove_own_temporaries() noexcept;
  void link();
  void forget();
  std::string name_;
  Temporary *next_ = nullptr, *previous_ = nullptr;  // all of this process, the newest first
};

/// From now on, signals that end the program (SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGPIPE, SIGALRM,
/// SIGUSR1, SIGUSR2, SIGXCPU) remove the temporaries of this process before they do. Signals that
/// are ignored stay ignored, except SIGPIPE. For programs, not for a library.
void remove_temporaries_on_signals();

/// For handlers of signals that end the process: removes the temporaries of this process.
/// Async-signal safe. Afterwards, threads that make, publish or discard a temporary wait forever.
void remove_own_temporaries() noexcept;

/// Whether this is the name of a temporary, such as a process that was killed leaves behind.
bool is_temporary_name(std::string_view file_name);
/// Removes all temporaries from the directory, not recursively. No other process may be writing
/// there.
void remove_temporaries(const std::string& directory);

}  // namespace nmt
