#include "cuda/kernels/add_sum.h"
#include "cuda/kernels/elementwise.h"
#include "kernels/label_loss.h"
#include "kernels/label_math.h"

namespace nmt::kernels {

using namespace nmt::cuda;

void label_loss(const Cuda& cuda, const LabelLoss& a) {
  each(cuda, a.rows, [a] __device__(std::int64_t r) { label_loss_row(a, r); });
  add_sum(cuda, a.rows, a.scratch, a.cross_entropy);
  add_sum(cuda, a.rows, a.scratch + a.rows, a.smoothed);
}

// One launch for each step: a thread per sentence and label.
void crf_loss(const Cuda& cuda, const CrfLoss& a) {
  const std::int64_t cells = a.sentences * a.labels, labels = a.labels;
  for (std::int64_t t = 0; t < a.steps; ++t)
    each(cuda, cells,
         [a, t, labels] __device__(std::int64_t i) { Crf{a}.forward(t, i / labels, i % labels); });
  each(cuda, a.sentences, [a] __device__(std::int64_t b) { Crf{a}.finish(b); });
  const double* const losses = a.scratch + (2 * a.steps * a.labels + 1) * a.sentences;
  add_sum(cuda, a.sentences, losses, a.cross_entropy);
  add_sum(cuda, a.sentences, losses, a.smoothed);
  if (!a.demissions) return;
  for (std::int64_t t = a.steps - 1; t >= 0; --t)
    each(cuda, cells,
         [a, t, labels] __device__(std::int64_t i) { Crf{a}.backward(t, i / labels, i % labels); });
  each(cuda, a.steps * cells, [a, cells, labels] __device__(std::int64_t i) {
    Crf{a}.emission_gradient(i / cells, i % cells / labels, i % labels);
  });
  each(cuda, (labels + 2) * labels, [a, labels] __device__(std::int64_t i) {
    Crf{a}.transition_gradient(i / labels, i % labels);
  });
}

}  // namespace nmt::kernels
