// Kernels that the CUDA backend does not have yet. Each leaves this file with the .cu file that brings it.

#include "nmt/core/error.h"
#include "nmt/kernels/attention.h"
#include "nmt/kernels/conditional.h"
#include "nmt/kernels/gemm.h"
#include "nmt/kernels/gemm_batched.h"
#include "nmt/kernels/layer_norm.h"
#include "nmt/kernels/optimizer.h"
#include "nmt/kernels/rearrange.h"
#include "nmt/kernels/recurrence.h"
#include "nmt/kernels/softmax_loss.h"
#include "nmt/kernels/top_k.h"

namespace nmt::kernels {
namespace {

[[noreturn]] void missing(const char* kernel) { NMT_FAIL("{} is not written for CUDA yet", kernel); }

}  // namespace

// attention.cu
void attention_forward(const Cuda&, const Attention&, std::int64_t, std::int64_t, const std::int32_t*, const float*, float*, float*) {
  missing("attention_forward");
}
void attention_backward(const Cuda&, const Attention&, std::int64_t, const float*, const float*, const AttentionGradient&) {
  missing("attention_backward");
}
std::int64_t attention_scratch(const Cuda&, const Attention&) { missing("attention_scratch"); }

// conditional.cu
void conditional_forward(const Cuda&, const Conditional&) { missing("conditional_forward"); }
void conditional_backward(const Cuda&, const Conditional&, const ConditionalGradient&) { missing("conditional_backward"); }
std::int64_t conditional_scratch(const Cuda&, const Conditional&) { missing("conditional_scratch"); }

// gemm.cu
void gemm(const Cuda&, bool, bool, std::int64_t, std::int64_t, std::int64_t, const float*, std::int64_t, const float*, std::int64_t, float,
          float*, std::int64_t) {
  missing("gemm");
}
void pack(const Cuda&, bool, std::int64_t, std::int64_t, const float*, std::int64_t, float*) { missing("pack"); }
void gemm_packed(const Cuda&, std::int64_t, std::int64_t, std::int64_t, const float*, std::int64_t, const float*, bool, float*,
                 std::int64_t) {
  missing("gemm_packed");
}
void gather_packed(const Cuda&, std::int64_t, std::int64_t, const std::int32_t*, const float*, float*) { missing("gather_packed"); }


// gemm_batched.cu
void gemm_batched(const Cuda&, const GemmBatch&, bool, bool, std::int64_t, std::int64_t, std::int64_t, const float*, std::int64_t,
                  const float*, std::int64_t, float, float*, std::int64_t) {
  missing("gemm_batched");
}
void pack_batched(const Cuda&, const GemmBatch&, bool, std::int64_t, std::int64_t, const float*, std::int64_t, float*) {
  missing("pack_batched");
}
void gemm_packed_batched(const Cuda&, const GemmBatch&, std::int64_t, std::int64_t, std::int64_t, const float*, std::int64_t,
                         const float*, bool, float*, std::int64_t) {
  missing("gemm_packed_batched");
}

// layer_norm.cu
void layer_norm(const Cuda&, std::int64_t, std::int64_t, std::int64_t, const float*, const float*, const float*, float*, float*, float*) {
  missing("layer_norm");
}
void layer_norm_backward(const Cuda&, std::int64_t, std::int64_t, std::int64_t, const float*, const float*, const float*, const float*,
                         float*, float*, float*) {
  missing("layer_norm_backward");
}

// optimizer.cu
double gradient_norm_squared(const Cuda&, const OptimizerSlice*, std::int64_t) { missing("gradient_norm_squared"); }
void adam(const Cuda&, const OptimizerSlice*, std::int64_t, const AdamStep&) { missing("adam"); }
void adadelta(const Cuda&, const OptimizerSlice*, std::int64_t, const AdadeltaStep&) { missing("adadelta"); }
void adagrad(const Cuda&, const OptimizerSlice*, std::int64_t, const AdagradStep&) { missing("adagrad"); }
void sgd(const Cuda&, const OptimizerSlice*, std::int64_t, const SgdStep&) { missing("sgd"); }
void momentum(const Cuda&, const OptimizerSlice*, std::int64_t, const MomentumStep&) { missing("momentum"); }

// rearrange.cu
void rearrange(const Cuda&, std::int64_t, std::int64_t, std::int64_t, const float*, float*) { missing("rearrange"); }
void rearrange_back(const Cuda&, std::int64_t, std::int64_t, std::int64_t, const float*, bool, float*) { missing("rearrange_back"); }

// recurrence.cu
void recurrence_forward(const Cuda&, const Recurrence&) { missing("recurrence_forward"); }
void recurrence_backward(const Cuda&, const Recurrence&, const RecurrenceGradient&) { missing("recurrence_backward"); }
std::int64_t recurrence_scratch(const Cuda&, const Recurrence&) { missing("recurrence_scratch"); }

// softmax_loss.cu
std::int64_t softmax_loss_scratch(const Cuda&, std::int64_t, std::int64_t, std::int64_t) { missing("softmax_loss_scratch"); }
void softmax_loss(const Cuda&, const SoftmaxLoss&) { missing("softmax_loss"); }
void log_sum_exp(const Cuda&, std::int64_t, std::int64_t, const float*, float*) { missing("log_sum_exp"); }

// top_k.cu
void top_k(const Cuda&, std::int64_t, std::int64_t, const float*, int, std::span<const std::int32_t>, float*, std::int32_t*) {
  missing("top_k");
}

}  // namespace nmt::kernels
