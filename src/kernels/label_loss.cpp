#include "kernels/label_loss.h"

#include "core/error.h"
#include "core/threads/thread_pool.h"
#include "kernels/label_math.h"

namespace nmt::kernels {

void label_loss(const Cpu& cpu, const LabelLoss& a) {
  constexpr std::int64_t grain = 64;
  cpu.pool->parallel_for(a.rows, grain, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t r = begin; r < end; ++r) label_loss_row(a, r);
  });
  for (std::int64_t r = 0; r < a.rows; ++r) {
    *a.cross_entropy += a.scratch[r];
    *a.smoothed += a.scratch[a.rows + r];
  }
}

void crf_loss(const Cpu& cpu, const CrfLoss& a) {
  const Crf crf{a};
  for (std::int64_t b = 0; b < a.sentences; ++b)
    for (std::int64_t t = 0; t < a.lengths[b]; ++t) {
      const std::int32_t label = crf.target(t, b);
      NMT_CHECK(label >= 0 && label < a.labels, "CRF: target {} is not one of {} labels", label,
                a.labels);
    }
  cpu.pool->parallel_for(a.sentences, 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t b = begin; b < end; ++b) {
      for (std::int64_t t = 0; t < a.steps; ++t)
        for (std::int64_t j = 0; j < a.labels; ++j) crf.forward(t, b, j);
      crf.finish(b);
      if (!a.demissions) continue;
      for (std::int64_t t = a.steps - 1; t >= 0; --t)
        for (std::int64_t i = 0; i < a.labels; ++i) crf.backward(t, b, i);
      for (std::int64_t t = 0; t < a.steps; ++t)
        for (std::int64_t j = 0; j < a.labels; ++j) crf.emission_gradient(t, b, j);
    }
  });
  for (std::int64_t b = 0; b < a.sentences; ++b) {
    *a.cross_entropy += crf.loss(b);
    *a.smoothed += crf.loss(b);
  }
  if (!a.demissions) return;
  cpu.pool->parallel_for(a.labels + 2, 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i)
      for (std::int64_t j = 0; j < a.labels; ++j) crf.transition_gradient(i, j);
  });
}

}  // namespace nmt::kernels
