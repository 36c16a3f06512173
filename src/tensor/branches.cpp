#include "tensor/branches.h"

#include "tensor/cuda_device.h"

namespace nmt {

Branches::Branches(const Context& context, bool wanted)
    : context_(context),
      wanted_(wanted && context.backend->concurrent_branches && !context.profile) {}

Branches::~Branches() {
  if (!open_) return;
  context_.cuda.device->abandon_branches();
  context_.arena->let_go();
}

void Branches::fork() {
  open_ = wanted_ && context_.cuda.device->fork();
  if (open_) context_.arena->hold();
}

void Branches::second() {
  if (open_) context_.cuda.device->second_branch();
}

void Branches::join() {
  if (!open_) return;
  context_.cuda.device->join();
  context_.arena->let_go();
  open_ = false;
}

}  // namespace nmt
