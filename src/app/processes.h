#pragma once

#include "train/parallel/communicator.h"

#include <memory>
#include <string>

namespace nmt::app {

/// The processes that mpirun has started together, of which this is one; or this process alone. MPI
/// is opened (libnmt_mpi.so) only when there are others, so that a program started alone does not
/// load it.
class Processes {
 public:
  /// This process alone.
  Processes();
  ~Processes();
  Processes(const Processes&) = delete;
  /// Those that the environment tells of. Standard output of all but rank 0 goes to /dev/null.
  static Processes of_environment();

  /// Error (usage): there are others, and this build or this machine has no MPI to work with them.
  train::Communicator& join();
  bool is_first() const { return rank_ == 0; }
  /// What `--device` means here: "cuda" and "auto" take the GPU of this rank's number on the
  /// machine. Error (usage): one GPU named for several ranks; GPUs on some ranks only.
  std::string device(const std::string& asked) const;
  /// Compute threads where none are set: the processors of this process, shared with the ranks that
  /// may use the same. 0 for a process alone.
  int threads(int asked) const;
  /// To be called before an error is logged: an error of all ranks is logged by rank 0 alone, since
  /// the others wait until it has ended them.
  void on_error() const;
  /// The end of the program: an error ends the other ranks too.
  int end(int status);

 private:
  Processes(int rank, int size, std::string launcher);
  int rank_ = 0, size_ = 1;  // as the environment has them
  std::string launcher_;     // the variable that says so
  std::unique_ptr<train::Communicator> joined_;
};

}  // namespace nmt::app
