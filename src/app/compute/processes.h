#pragma once

#include "train/parallel/communicator.h"

#include <memory>
#include <string>

namespace nmt::app {

/// The processes started together by mpirun, or this process alone. MPI (libnmt_mpi.so) is loaded
/// only if there are several processes.
class Processes {
 public:
  /// A single process.
  Processes();
  ~Processes();
  Processes(const Processes&) = delete;
  /// The processes described by the environment. Standard output of all ranks but 0 goes to
  /// /dev/null.
  static Processes of_environment();

  /// Error (usage): there are several processes, but MPI is not available in this build or on this
  /// machine.
  train::Communicator& join();
  bool is_rank_0() const { return rank_ == 0; }
  /// Resolves `--device`: "cuda" and "auto" select the GPU with this rank's number on the machine.
  /// Error (usage): one GPU named for several ranks; GPUs on some ranks only.
  std::string device(const std::string& asked) const;
  /// Number of compute threads if none is set: the processors of this process, divided among the
  /// ranks that share them. 0 for a single process.
  int threads(int asked) const;
  /// To be called before an error is logged: an error common to all ranks is logged by rank 0 only;
  /// the others wait until it ends them.
  void on_error() const;
  /// Ends the program; an error ends the other ranks too.
  int end(int status);

 private:
  Processes(int rank, int size, std::string launcher);
  int rank_ = 0, size_ = 1;  // from the environment
  std::string launcher_;     // the environment variable they come from
  std::unique_ptr<train::Communicator> joined_;
};

}  // namespace nmt::app
