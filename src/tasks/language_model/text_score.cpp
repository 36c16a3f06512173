#include "tasks/language_model/text_score.h"

#include "core/error.h"
#include "eval/numpy_generator.h"
#include "text/lines.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

namespace nmt {
namespace {

// One stream of tokens: whole lines, each with </s>.
struct Part {
  Ids ids;
  std::vector<std::size_t> lines;  // of each token
};

// Columns of tokens [first, first + steps) of several parts, padded at their ends.
Batch window_of(const std::vector<Part>& parts, std::int64_t first, std::int64_t steps,
                std::int32_t eos) {
  Batch batch;
  batch.sentences = batch.slice.whole = static_cast<int>(parts.size());
  batch.target_steps = static_cast<int>(steps);
  for (std::int64_t t = first; t < first + steps; ++t)
    for (const Part& part : parts) {
      const bool real = t < std::ssize(part.ids);
      const auto at = static_cast<std::size_t>(t);
      batch.target_in.push_back(real && t > 0 ? part.ids[at - 1] : eos);
      batch.target_out.push_back(real ? part.ids[at] : eos);
      batch.target_mask.push_back(real ? 1.0f : 0.0f);
      batch.target_tokens += real;
    }
  return batch;
}

class Scoring {
 public:
  Scoring(LanguageModel& model, const Vocabulary& vocabulary, std::span<const std::string> lines,
          const ScoringSettings& settings)
      : model_(model), vocabulary_(vocabulary), settings_(settings), scores_(lines.size()) {
    ids_.reserve(lines.size());
    for (std::size_t i = 0; i < lines.size(); ++i) {
      Ids& ids = ids_.emplace_back();
      ids = vocabulary.encode(lines[i]);
      if (ids.empty()) continue;
      LineScore& score = scores_[i];
      score.unknown = std::count(ids.begin(), ids.end(), vocabulary.unk());
      ids.push_back(vocabulary.eos());
      score.tokens = std::ssize(ids);
      score.words = static_cast<std::int64_t>(
                        count_words(lines[i], std::numeric_limits<std::size_t>::max()).count) +
                    1;
    }
  }

  std::vector<LineScore> by_text() {
    std::int64_t total = 0;
    for (const Ids& ids : ids_) total += std::ssize(ids);
    const std::int64_t share = (total + settings_.parts - 1) / settings_.parts;
    std::vector<Part> parts;
    for (std::size_t i = 0; i < ids_.size(); ++i) {
      if (ids_[i].empty()) continue;
      if (parts.empty() || std::ssize(parts.back().ids) >= share) parts.emplace_back();
      add(parts.back(), i);
    }
    run(parts, settings_.steps);
    return std::move(scores_);
  }

  // Longest first, so that the first batch needs the most memory.
  std::vector<LineScore> by_line() {
    std::vector<std::size_t> order;
    for (std::size_t i = 0; i < ids_.size(); ++i)
      if (!ids_[i].empty()) order.push_back(i);
    std::stable_sort(order.begin(), order.end(),
                     [&](std::size_t a, std::size_t b) { return ids_[a].size() > ids_[b].size(); });
    for (std::size_t begin = 0; begin < order.size();) {
      const std::int64_t longest = std::ssize(ids_[order[begin]]);
      const auto count = static_cast<std::size_t>(
          std::clamp<std::int64_t>(settings_.batch_tokens / longest, 1,
                                   std::ssize(order) - static_cast<std::int64_t>(begin)));
      std::vector<Part> parts(count);
      for (std::size_t i = 0; i < count; ++i) add(parts[i], order[begin + i]);
      // A line of more steps goes on with its states, so that memory has a bound.
      run(parts, std::min(longest, settings_.batch_tokens));
      begin += count;
    }
    return std::move(scores_);
  }

 private:
  void add(Part& part, std::size_t line) {
    part.ids.insert(part.ids.end(), ids_[line].begin(), ids_[line].end());
    part.lines.resize(part.ids.size(), line);
  }

  void run(const std::vector<Part>& parts, std::int64_t steps) {
    std::int64_t longest = 0;
    for (const Part& part : parts) longest = std::max(longest, std::ssize(part.ids));
    LanguageModelState state;
    for (std::int64_t first = 0; first < longest; first += steps) {
      if (settings_.on_batch) settings_.on_batch();
      const Batch batch =
          window_of(parts, first, std::min(steps, longest - first), vocabulary_.eos());
      const std::vector<double> found = model_.log_probabilities(batch, state);
      for (std::size_t i = 0; i < found.size(); ++i) {
        if (batch.target_mask[i] == 0.0f) continue;
        const auto at = static_cast<std::size_t>(first) + i / parts.size();
        LineScore& score = scores_[parts[i % parts.size()].lines[at]];
        score.log_probability += found[i];
        score.token_scores.push_back(found[i]);
      }
    }
  }

  LanguageModel& model_;
  const Vocabulary& vocabulary_;
  const ScoringSettings& settings_;
  std::vector<Ids> ids_;  // of each line, with </s>; empty for blank lines
  std::vector<LineScore> scores_;
};

}  // namespace

double entropy_per_word(std::span<const LineScore> lines) {
  double sum = 0;
  std::int64_t words = 0;
  for (const LineScore& line : lines) {
    sum -= line.log_probability;
    words += line.words;
  }
  return sum / static_cast<double>(words);
}

double perplexity(std::span<const LineScore> lines) {
  return std::exp(entropy_per_word(lines));
}

PerplexityInterval perplexity_interval(std::span<const LineScore> lines, int samples,
                                       std::uint64_t seed) {
  std::vector<const LineScore*> with_text;
  for (const LineScore& line : lines)
    if (line.words > 0) with_text.push_back(&line);
  NMT_CHECK(!with_text.empty() && samples > 1, "an interval of {} lines with {} samples",
            with_text.size(), samples);
  NumpyGenerator generator(seed);
  std::vector<double> entropies;
  for (int s = 0; s < samples; ++s) {
    double sum = 0;
    std::int64_t words = 0;
    for (std::size_t i = 0; i < with_text.size(); ++i) {
      const LineScore& line =
          *with_text[generator.below(static_cast<std::uint32_t>(with_text.size()))];
      sum -= line.log_probability;
      words += line.words;
    }
    entropies.push_back(sum / static_cast<double>(words));
  }
  std::sort(entropies.begin(), entropies.end());
  const auto at = [&](double share) {
    const double place = share * static_cast<double>(samples - 1);
    const auto below = static_cast<std::size_t>(place);
    const std::size_t above = std::min(below + 1, entropies.size() - 1);
    return std::exp(entropies[below] +
                    (place - static_cast<double>(below)) * (entropies[above] - entropies[below]));
  };
  return {at(0.025), at(0.975)};
}

std::vector<LineScore> score_lines(LanguageModel& model, const Vocabulary& vocabulary,
                                   std::span<const std::string> lines,
                                   const ScoringSettings& settings) {
  Scoring scoring(model, vocabulary, lines, settings);
  return settings.context == LineContext::text ? scoring.by_text() : scoring.by_line();
}

}  // namespace nmt
