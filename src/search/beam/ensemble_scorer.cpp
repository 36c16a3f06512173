#include "search/beam/ensemble_scorer.h"

#include "core/error.h"
#include "core/log.h"
#include "kernels/decoding/ensemble.h"
#include "tensor/copy.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace nmt {
namespace {

using Ids = std::vector<std::int32_t>;

struct Part {
  std::unique_ptr<Decoding> decoding;
  double weight = 0;
  bool attends = false;  // it has the source positions of the first member
  DecodingStep step;
};

class EnsembleDecoding : public Decoding {
 public:
  EnsembleDecoding(const Cpu& cpu, std::vector<Part> parts, Combination combination,
                   bool want_attention)
      : cpu_(cpu),
        parts_(std::move(parts)),
        combination_(combination),
        want_attention_(want_attention) {}

  DecodingStep advance(std::span<const std::int32_t> parents,
                       std::span<const std::int32_t> tokens) override {
    for (Part& part : parts_) part.step = part.decoding->advance(parents, tokens);
    DecodingStep step = together();
    step.attention = want_attention_ ? mean_attention(step.rows, step.source_steps) : nullptr;
    return step;
  }

  const Context* device() const override {
    const Context* const first = parts_.front().decoding->device();
    for (const Part& part : parts_) {
      const Context* const own = part.decoding->device();
      if (!first || !own || own->device != first->device || own->cuda.device != first->cuda.device)
        return nullptr;
    }
    return first;
  }

  DecodingStep advance_on_device(const RowsOnDevice& rows) override {
    for (Part& part : parts_) part.step = part.decoding->advance_on_device(rows);
    return together();
  }

  bool mark(std::vector<std::int64_t>& key) override {
    return std::ranges::all_of(parts_, [&](const Part& part) { return part.decoding->mark(key); });
  }
  void return_to_mark() override {
    for (Part& part : parts_) part.decoding->return_to_mark();
  }

  void restrict_to(const Candidates& candidates) override {
    for (Part& part : parts_) part.decoding->restrict_to(candidates);
  }

  // For identical members the result is bit-identical to a single member's.
  NextTokens score(int first, int count) override {
    scores_.clear();
    for (Part& part : parts_) {
      const NextTokens next = part.decoding->score(first, count);
      scores_.push_back({next.logits, next.log_normalizer, part.weight});
      if (&part == &parts_.front()) shape_ = next;
    }
    const std::int64_t vocabulary = shape_.vocabulary;
    const bool probabilities = combination_ == Combination::probabilities;
    if (const Context* device = shape_.device) {
      if (!device_log_probs_ || device_log_probs_.elements() < count * vocabulary) {
        device_log_probs_ = device->empty({count, vocabulary});
        device_zeros_ = device->empty({count});
      }
      clear<float>(*device, device_zeros_);  // every time, because a step may be repeated
      dispatch(*device, [&](const auto& backend) {
        kernels::combine_scores(backend, count, vocabulary, scores_, probabilities,
                                device_log_probs_.f32());
      });
      return {count, static_cast<int>(vocabulary), device_log_probs_.f32(), device_zeros_.f32(),
              device};
    }
    log_probs_.resize(static_cast<std::size_t>(count * vocabulary));
    zeros_.assign(static_cast<std::size_t>(count), 0.0f);
    kernels::combine_scores(cpu_, count, vocabulary, scores_, probabilities, log_probs_.data());
    return {count, static_cast<int>(vocabulary), log_probs_.data(), zeros_.data()};
  }

 private:
  DecodingStep together() const {
    DecodingStep step = parts_.front().step;
    for (const Part& part : parts_) step.block = std::min(step.block, part.step.block);
    return step;
  }

  const float* mean_attention(int rows, int steps) {
    attention_.assign(static_cast<std::size_t>(rows) * static_cast<std::size_t>(steps), 0.0f);
    double weights = 0;
    for (const Part& part : parts_) weights += part.attends ? part.weight : 0;
    for (const Part& part : parts_) {
      if (!part.attends) continue;
      NMT_CHECK(part.step.attention && part.step.source_steps == steps,
                "an ensemble member returned attention over {} of {} source steps",
                part.step.source_steps, steps);
      const auto share = static_cast<float>(part.weight / weights);
      for (std::size_t i = 0; i < attention_.size(); ++i)
        attention_[i] += share * part.step.attention[i];
    }
    return attention_.data();
  }

  Cpu cpu_;
  std::vector<Part> parts_;
  Combination combination_;
  bool want_attention_;
  std::vector<kernels::MemberScores> scores_;
  NextTokens shape_;                                  // of the first member
  std::vector<float> log_probs_, zeros_, attention_;  // per block [m,V] and [m]; [n,S]
  Tensor device_log_probs_, device_zeros_;
};

}  // namespace

EnsembleScorer::EnsembleScorer(const Cpu& cpu, std::vector<Member> members, Combination combination,
                               int max_length, CropWarning crop_warning)
    : cpu_(cpu),
      members_(std::move(members)),
      combination_(combination),
      max_length_(max_length),
      crop_warning_(crop_warning ? std::move(crop_warning)
                                 : std::make_shared<std::atomic<bool>>(false)) {
  if (members_.empty()) fail(ExitStatus::usage, "ensemble: expected at least one model");
  double sum = 0;
  for (const Member& member : members_) {
    if (!(member.weight > 0) || !std::isfinite(member.weight))
      fail(ExitStatus::usage, "weights: {} is not above 0", member.weight);
    NMT_CHECK(member.scorer->vocabulary() == vocabulary(),
              "ensemble: models have different numbers of output tokens: {} and {}", vocabulary(),
              member.scorer->vocabulary());
    if (member.added && combination == Combination::probabilities)
      fail(ExitStatus::usage,
           "ensemble: a language model is added to log-probabilities, not to probabilities");
    if (!member.added) sum += member.weight;
  }
  if (!std::isfinite(sum)) fail(ExitStatus::usage, "weights: their sum is not finite");
  for (Member& member : members_)
    if (!member.added) member.weight /= sum;
}

int EnsembleScorer::vocabulary() const {
  return members_.front().scorer->vocabulary();
}

std::vector<Ids> EnsembleScorer::encode(const Vocabulary& source,
                                        std::span<const std::string> lines) const {
  const auto max_length = static_cast<std::size_t>(max_length_);
  std::vector<Ids> encoded;
  encoded.reserve(lines.size());
  for (const std::string& line : lines) {
    Ids& ids = encoded.emplace_back(source.encode(line));
    if (ids.size() <= max_length) continue;
    if (!crop_warning_->exchange(true))
      log::warn(
          "a line has {} tokens in the source vocabulary of another model of the ensemble, which "
          "reads only the first {} (max-length); further such lines are not reported",
          ids.size(), max_length);
    ids.resize(max_length);
  }
  return encoded;
}

std::unique_ptr<Decoding> EnsembleScorer::begin(std::span<const Ids> sources, bool want_attention) {
  for (const Member& member : members_)
    NMT_CHECK(!member.source,
              "ensemble: a member with its own source vocabulary needs the source text");
  return begin(sources, {}, want_attention);
}

std::unique_ptr<Decoding> EnsembleScorer::begin(std::span<const Ids> sources,
                                                std::span<const std::string> lines,
                                                bool want_attention) {
  std::vector<Part> parts;
  for (const Member& member : members_) {
    Part& part = parts.emplace_back();
    part.weight = member.weight;
    part.attends = !member.source && !member.added;
    if (!member.source) {
      part.decoding = member.scorer->begin(sources, want_attention && part.attends);
      continue;
    }
    NMT_CHECK(lines.size() == sources.size(), "{} lines for {} sources", lines.size(),
              sources.size());
    part.decoding = member.scorer->begin(encode(*member.source, lines), false);
  }
  return std::make_unique<EnsembleDecoding>(cpu_, std::move(parts), combination_, want_attention);
}

}  // namespace nmt
