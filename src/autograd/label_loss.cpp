#include "kernels/label_loss.h"

#include "autograd/ops/losses.h"

namespace nmt::ops {

void label_loss(Tape& tape, const Var& logits, const Tensor& targets, float smoothing,
                const Tensor& sums) {
  const Context& context = tape.context();
  kernels::LabelLoss args;
  args.rows = logits->value.rows();
  args.labels = logits->value.width();
  NMT_CHECK(targets.elements() == args.rows, "{} targets for {} rows of logits", targets.elements(),
            args.rows);
  args.logits = logits->value.f32();
  args.target = targets.data<std::int32_t>();
  args.smoothing = smoothing;
  const Tensor scratch = context.empty({2 * args.rows + 1}, Dtype::f64);
  args.scratch = scratch.data<double>();
  const bool has_both = sums.elements() >= 2;
  args.cross_entropy = has_both ? sums.data<double>() : args.scratch + 2 * args.rows;
  args.smoothed = sums.data<double>() + (has_both ? 1 : 0);
  Tensor slopes;
  if (tape.recording()) {
    slopes = context.empty(logits->value.shape());
    args.dlogits = slopes.f32();
  }
  const Region region(context.profile, "softmax and loss");
  dispatch(context, [&](const auto& backend) { kernels::label_loss(backend, args); });
  if (tape.recording()) tape.record([&tape, logits, slopes] { tape.accumulate(*logits, slopes); });
}

void crf_loss(Tape& tape, const Var& emissions, Parameter& transitions, const Tensor& targets,
              const Tensor& lengths, const Tensor& sums) {
  const Context& context = tape.context();
  const Shape& shape = emissions->value.shape();
  NMT_CHECK(shape.rank() == 3 && targets.elements() == shape.rows() &&
                lengths.elements() == shape[1] &&
                transitions.shape == Shape({shape[2] + 2, shape[2]}),
            "CRF: emissions {}, transitions {}, {} targets and {} lengths do not match",
            shape.text(), transitions.shape.text(), targets.elements(), lengths.elements());
  kernels::CrfLoss args;
  args.steps = shape[0];
  args.sentences = shape[1];
  args.labels = shape[2];
  args.emissions = emissions->value.f32();
  args.transitions = transitions.value.f32();
  args.target = targets.data<std::int32_t>();
  args.lengths = lengths.data<std::int32_t>();
  args.cross_entropy = sums.data<double>();
  args.smoothed = sums.data<double>() + 1;
  const Tensor scratch =
      context.empty({kernels::crf_scratch(args.steps, args.sentences, args.labels)}, Dtype::f64);
  args.scratch = scratch.data<double>();
  Tensor slopes;
  if (tape.recording()) {
    slopes = context.empty(shape);
    args.demissions = slopes.f32();
    args.dtransitions = transitions.gradient.f32();
  }
  const Region region(context.profile, "softmax and loss");
  dispatch(context, [&](const auto& backend) { kernels::crf_loss(backend, args); });
  if (tape.recording())
    tape.record([&tape, emissions, slopes] { tape.accumulate(*emissions, slopes); });
}

}  // namespace nmt::ops
