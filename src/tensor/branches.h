#pragma once

#include "tensor/context.h"

namespace nmt {

/// Runs two independent workloads on two streams of a GPU, since each alone may be too small to
/// fill it. Between fork() and join() nothing may be uploaded, nothing may synchronize, and freed
/// memory is not reused. Where the backend has no concurrent branches, `wanted` is false, the
/// context has a profile or other branches are open, the workloads run one after the other.
///   Branches branches(context, true);
///   branches.fork();    // both follow everything queued so far
///   first(...);
///   branches.second();
///   second(...);
///   branches.join();    // later work follows both
class Branches {
 public:
  Branches(const Context& context, bool wanted);
  /// Joins where an exception ended the work early.
  ~Branches();
  Branches(const Branches&) = delete;
  Branches& operator=(const Branches&) = delete;

  void fork();
  void second();
  void join();

 private:
  Context context_;
  bool wanted_, open_ = false;
};

}  // namespace nmt
