// The toolkit's headers agree with those of the stand-ins, where there is a toolkit.

#include <cublasLt.h>
#include <cublas_v2.h>
#include <nccl.h>

#define NMT_CONSTANT(name, value) \
  static_assert(static_cast<int>(name) == (value), "the stand-ins have another " #name);
#include "tests/standins/include/constants.def"

static_assert(sizeof(cublasLtMatmulAlgo_t) == 64);
static_assert(offsetof(cublasLtMatmulHeuristicResult_t, workspaceSize) == 64 &&
              offsetof(cublasLtMatmulHeuristicResult_t, state) == 72 &&
              sizeof(cublasLtMatmulHeuristicResult_t) == 96);
