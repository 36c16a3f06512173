#include "search/beam/top_k.h"

#include "core/error.h"
#include "kernels/decoding/top_k.h"
#include "kernels/pointwise.h"
#include "tensor/copy.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace nmt {
namespace {

// Reinterprets the words of a device array on the host.
template <class T>
void take(const std::vector<std::int32_t>& words, std::int64_t first, std::int64_t count,
          std::vector<T>& out) {
  static_assert(sizeof(T) == sizeof(std::int32_t));
  std::memcpy(out.data(), words.data() + first, static_cast<std::size_t>(count) * sizeof(T));
}

void check(const NextTokens& scores, int vocabulary) {
  NMT_CHECK(scores.vocabulary == vocabulary, "the scorer returned {} scores, expected {}",
            scores.vocabulary, vocabulary);
}

}  // namespace

TopK::TopK(const Cpu& cpu, int vocabulary, int k, std::vector<std::int32_t> skip,
           std::int32_t extra)
    : cpu_(cpu), vocabulary_(vocabulary), k_(k), skip_(std::move(skip)), extra_(extra) {}

void TopK::restrict_to(Candidates candidates) {
  candidates_ = std::move(candidates);
  skip_.clear();
  vocabulary_ = 0;
  for (const auto& ids : candidates_)
    vocabulary_ = std::max(vocabulary_, static_cast<int>(ids.size()));
}

void TopK::select(Decoding& decoding, const DecodingStep& step, std::span<const int> sentences) {
  const auto rows = static_cast<std::size_t>(step.rows);
  logits_.resize(rows * static_cast<std::size_t>(k_));
  tokens_.resize(logits_.size());
  extras_.resize(rows);
  log_normalizers_.resize(rows);
  const Context* device = nullptr;
  for_each_block(decoding, step, [&](int first, const NextTokens& scores) {
    check(scores, vocabulary_);
    device = scores.device;
    if (device)
      on_device(first, step.rows, scores, true);
    else
      on_host(first, scores, sentences);
  });
  if (device) fetch(*device, step.rows);
}

void TopK::on_host(int first, const NextTokens& scores, std::span<const int> sentences) {
  const std::int64_t at = std::int64_t{first} * k_;
  if (scores.block_maxima)
    kernels::top_k_of_blocks(cpu_, scores.rows, scores.vocabulary, scores.logits,
                             scores.block_maxima, k_, skip_, logits_.data() + at,
                             tokens_.data() + at);
  else
    kernels::top_k(cpu_, scores.rows, scores.vocabulary, scores.logits, k_, skip_,
                   logits_.data() + at, tokens_.data() + at);
  for (int row = 0; row < scores.rows; ++row) {
    const auto to = static_cast<std::size_t>(first + row);
    log_normalizers_[to] = scores.log_normalizer[row];
    std::int64_t extra = extra_;
    if (!candidates_.empty()) {  // map columns to tokens
      const std::vector<std::int32_t>& ids = candidates_[static_cast<std::size_t>(sentences[to])];
      extra = std::lower_bound(ids.begin(), ids.end(), extra_) - ids.begin();
      for (std::int32_t *token = tokens_.data() + at + std::int64_t{row} * k_, *end = token + k_;
           token < end; ++token)
        *token = *token >= 0 && *token < static_cast<std::int32_t>(ids.size())
                     ? ids[static_cast<std::size_t>(*token)]
                     : -1;
    }
    extras_[to] = scores.logits[std::int64_t{row} * scores.vocabulary + extra];
  }
}

std::int32_t* TopK::room_for(const Context& context, std::int64_t rows) {
  const std::int64_t words = rows * (2 * k_ + 2);
  if (!chosen_ || chosen_.elements() < words) chosen_ = context.empty({words}, Dtype::i32);
  return chosen_.data<std::int32_t>();
}

void TopK::on_device(int first, int rows, const NextTokens& scores, bool extras) {
  const Context& context = *scores.device;
  const std::int64_t n = rows, at = std::int64_t{first} * k_;
  std::int32_t* const tokens = room_for(context, n);
  float* const floats = reinterpret_cast<float*>(tokens + n * k_);
  dispatch(context, [&](const auto& backend) {
    kernels::top_k(backend, scores.rows, scores.vocabulary, scores.logits, k_, skip_, floats + at,
                   tokens + at);
    if (!extras) return;
    kernels::copy_columns(backend, scores.rows, 1, scores.logits + extra_, scores.vocabulary,
                          floats + n * k_ + first, 1, false);
    kernels::copy_columns(backend, scores.rows, 1, scores.log_normalizer, 1,
                          floats + n * (k_ + 1) + first, 1, false);
  });
}

kernels::PartLists TopK::list_parts(const NextTokens& scores) {
  const Context& context = *scores.device;
  const std::int64_t parts = kernels::row_parts(vocabulary_), lists = scores.rows * parts,
                     keys = 2 * lists * k_;
  if (!lists_ || lists_.elements() < keys + 2 * lists)
    lists_ = context.empty({keys + 2 * lists}, Dtype::i32);
  auto* const first = reinterpret_cast<std::uint64_t*>(lists_.data<std::int32_t>());
  float* const sums = reinterpret_cast<float*>(lists_.data<std::int32_t>() + keys);
  dispatch(context, [&](const auto& backend) {
    kernels::best_of_parts(backend, scores.rows, vocabulary_, scores.logits, k_, skip_, first,
                           sums);
  });
  return {parts, k_, first, sums};
}

TopK::OnDevice TopK::select_on_device(Decoding& decoding, const DecodingStep& step) {
  OnDevice out;
  const std::int64_t many = std::int64_t{step.rows} * k_;
  if (step.rows <= step.block) {  // then its scores stay valid
    const NextTokens scores = decoding.score_logits(0, step.rows);
    check(scores, vocabulary_);
    NMT_CHECK(scores.device, "the scores of a search on the device are in host memory");
    std::int32_t* const tokens = room_for(*scores.device, step.rows);
    float* const logits = reinterpret_cast<float*>(tokens + many);
    out.tokens = tokens;
    out.logits = logits;
    out.extras = scores.logits + extra_;
    out.extra_stride = vocabulary_;
    out.log_normalizers = scores.log_normalizer;
    if (scores.log_normalizer) {
      on_device(0, step.rows, scores, false);
      return out;
    }
    float* const sums = logits + many + step.rows;
    out.log_normalizers = sums;
    out.joined = {list_parts(scores), tokens, logits, sums};
    return out;
  }
  for_each_block(decoding, step, [&](int first, const NextTokens& scores) {
    check(scores, vocabulary_);
    NMT_CHECK(scores.device, "the scores of a search on the device are in host memory");
    on_device(first, step.rows, scores, true);
  });
  out.tokens = chosen_.data<std::int32_t>();
  out.logits = reinterpret_cast<const float*>(out.tokens + many);
  out.extras = out.logits + many;
  out.log_normalizers = out.extras + step.rows;
  return out;
}

void TopK::fetch(const Context& context, std::int64_t rows) {
  const std::int64_t many = rows * k_;
  const std::vector<std::int32_t> words =
      download<std::int32_t>(context, chosen_.slice(0, 2 * many + 2 * rows));
  take(words, 0, many, tokens_);
  take(words, many, many, logits_);
  take(words, 2 * many, rows, extras_);
  take(words, 2 * many + rows, rows, log_normalizers_);
}

TokenScores::TokenScores(Decoding& decoding, const DecodingStep& step, int vocabulary,
                         std::span<const std::int32_t> tokens) {
  NMT_CHECK(static_cast<int>(tokens.size()) == step.rows, "got {} tokens for {} rows",
            tokens.size(), step.rows);
  for_each_block(decoding, step, [&](int first, const NextTokens& scores) {
    check(scores, vocabulary);
    const auto wanted =
        tokens.subspan(static_cast<std::size_t>(first), static_cast<std::size_t>(scores.rows));
    device_ = scores.device;
    if (!device_) {
      for (int row = 0; row < scores.rows; ++row)
        on_host_.push_back(scores.logits[std::int64_t{row} * scores.vocabulary +
                                         wanted[static_cast<std::size_t>(row)]] -
                           scores.log_normalizer[row]);
      return;
    }
    if (!on_device_) on_device_ = device_->empty({2, step.rows});
    const Tensor columns = device_->empty({scores.rows}, Dtype::i32);
    upload(*device_, wanted, columns);
    dispatch(*device_, [&](const auto& backend) {
      kernels::pick(backend, scores.rows, scores.vocabulary, scores.logits,
                    columns.data<std::int32_t>(), on_device_.f32() + first);
      kernels::copy_columns(backend, scores.rows, 1, scores.log_normalizer, 1,
                            on_device_.f32() + step.rows + first, 1, false);
    });
  });
}

std::vector<float> TokenScores::read() const {
  if (!device_) return on_host_;
  const std::vector<float> values = download<float>(*device_, on_device_);
  std::vector<float> log_probs(values.size() / 2);
  for (std::size_t row = 0; row < log_probs.size(); ++row)
    log_probs[row] = values[row] - values[log_probs.size() + row];
  return log_probs;
}

}  // namespace nmt
