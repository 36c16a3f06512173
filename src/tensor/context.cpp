#include "tensor/context.h"

#include "tensor/cuda_device.h"

namespace nmt {

Context make_context(Arena& arena, const Cpu& cpu, CudaDevice* cuda, const kernels::Cudnn* cudnn) {
  NMT_CHECK(cuda || !cudnn, "cuDNN without a CUDA device");
  Context context;
  context.arena = &arena;
  context.cpu = cpu;
  if (!cuda) return context;
  context.device = {DeviceKind::cuda, cuda->index()};
  context.backend = &cuda_backend;
  context.cuda = cuda->handle();
  context.cudnn = cudnn;
  return context;
}

}  // namespace nmt
