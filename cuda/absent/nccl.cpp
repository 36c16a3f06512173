// Nccl in a build without NCCL: new_id() and the constructor raise an error.

#include "tensor/nccl.h"

#include "core/error.h"

namespace nmt {

struct Nccl::State {};

Nccl::Id Nccl::new_id() {
  fail(ExitStatus::usage, "device=cuda on several processes: this build has no NCCL");
}
Nccl::Nccl(CudaDevice&, const Id&, int, int, double) {
  new_id();
}
Nccl::~Nccl() = default;

// Never called: no object can exist.
void Nccl::set_timeout(double) {
  new_id();
}
void Nccl::begin_sum(float*, std::int64_t) {
  new_id();
}
void Nccl::finish_sums() {
  new_id();
}
void Nccl::broadcast(float*, std::int64_t) {
  new_id();
}

}  // namespace nmt
