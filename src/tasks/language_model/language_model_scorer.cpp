#include "tasks/language_model/language_model_scorer.h"

#include "core/error.h"
#include "kernels/softmax_loss.h"
#include "model/directory/partial_output.h"
#include "tensor/copy.h"

#include <algorithm>
#include <optional>
#include <utility>

namespace nmt {
namespace {

class LanguageModelDecoding : public Decoding {
 public:
  LanguageModelDecoding(LanguageModel& model, std::size_t sentences, std::int32_t eos)
      : model_(model), context_(model.context()), eos_(eos), sentence_(sentences) {
    for (std::size_t b = 0; b < sentences; ++b) sentence_[b] = static_cast<std::int32_t>(b);
  }

  DecodingStep advance(std::span<const std::int32_t> parents,
                       std::span<const std::int32_t> tokens) override {
    const auto rows = static_cast<std::int64_t>(parents.size());
    NMT_CHECK(parents.size() == tokens.size() && rows > 0, "{} parents for {} tokens",
              parents.size(), tokens.size());
    std::vector<std::int32_t> sentences;
    for (const std::int32_t parent : parents)
      sentences.push_back(sentence_.at(static_cast<std::size_t>(parent)));
    sentence_ = std::move(sentences);
    Tape tape(context_, false);
    readouts_ = {};
    const bool is_first = state_.layers.empty();
    if (!is_first) {
      const Tensor from = send(parents);
      for (std::vector<Tensor>& vectors : state_.layers)
        for (Tensor& vector : vectors)
          vector = ops::select_rows(tape, tape.constant(vector), from)->value;
    }
    // A sentence begins after </s>, whatever symbol begins a translation.
    const std::vector<std::int32_t> first(is_first ? parents.size() : 0, eos_);
    const Var readouts = model_.step(tape, send(is_first ? std::span(first) : tokens), state_);
    readouts_ = readouts->value;
    DecodingStep step;
    step.rows = static_cast<int>(rows);
    step.block = static_cast<int>(
        std::max<std::int64_t>(32, context_.backend->logits_block > 0
                                       ? context_.backend->logits_block / model_.vocabulary()
                                       : readouts_.width() / 8));
    return step;
  }

  void restrict_to(const Candidates& candidates) override {
    part_.emplace(context_, model_.output_table(), model_.output_bias(), candidates);
  }

  NextTokens score(int first, int count) override {
    logits_ = {};
    Tape tape(context_, false);
    if (!normalizer_ || normalizer_.elements() < count) normalizer_ = context_.empty({count});
    if (part_) {
      logits_ = part_->score(tape, readouts_.slice(first, count),
                             std::span<const std::int32_t>(sentence_).subspan(
                                 static_cast<std::size_t>(first), static_cast<std::size_t>(count)),
                             normalizer_.f32());
    } else {
      logits_ = model_.logits(tape, tape.constant(readouts_.slice(first, count)));
      dispatch(context_, [&](const auto& backend) {
        kernels::log_sum_exp(backend, count, logits_.width(), logits_.f32(), normalizer_.f32());
      });
    }
    return {count, static_cast<int>(logits_.width()), logits_.f32(), normalizer_.f32(),
            context_.backend->host_memory ? nullptr : &context_};
  }

 private:
  Tensor send(std::span<const std::int32_t> values) const {
    const Tensor tensor = context_.empty({std::ssize(values)}, Dtype::i32);
    upload(context_, values, tensor);
    return tensor;
  }

  LanguageModel& model_;
  const Context& context_;
  std::int32_t eos_;
  std::vector<std::int32_t> sentence_;  // of each row
  LanguageModelState state_;            // of the last step's rows
  Tensor readouts_, logits_, normalizer_;
  std::optional<PartialOutput> part_;
};

}  // namespace

LanguageModelScorer::LanguageModelScorer(LanguageModel& model, std::int32_t eos)
    : model_(model), eos_(eos) {
  NMT_CHECK(model.is_frozen(), "only a frozen model can be searched");
}

LanguageModelScorer::LanguageModelScorer(const LanguageModel& frozen, const Context& context,
                                         std::int32_t eos)
    : own_(std::make_unique<LanguageModel>(frozen, context)), model_(*own_), eos_(eos) {}

std::unique_ptr<Decoding> LanguageModelScorer::begin(
    std::span<const std::vector<std::int32_t>> sources, bool want_attention) {
  if (want_attention) fail(ExitStatus::usage, "attention: a language model has none");
  NMT_CHECK(!sources.empty(), "no sentences to decode");
  return std::make_unique<LanguageModelDecoding>(model_, sources.size(), eos_);
}

}  // namespace nmt
