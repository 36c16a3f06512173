#pragma once

#include "tensor/context.h"

namespace nmt {

/// Two pieces of work that need nothing of each other, beside each other on a GPU: each alone may
/// be too small to fill it. Between fork() and join() no host values are uploaded, nothing is
/// waited for, and what is freed stays taken. On the CPU, and where `wanted` is false or other
/// branches are open, the work is done in order.
///   Branches branches(context, true);
///   branches.fork();    // after everything asked for so far:
///   first(...);
///   branches.second();  // likewise, beside the first:
///   second(...);
///   branches.join();    // after both
class Branches {
 public:
  Branches(const Context& context, bool wanted);
  /// Joins, where work ended early.
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
