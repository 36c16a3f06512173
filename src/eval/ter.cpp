#include "eval/ter.h"

#include "core/error.h"
#include "eval/edit_distance.h"
#include "eval/tokenize.h"
#include "text/unicode.h"

#include <algorithm>
#include <limits>
#include <map>
#include <optional>
#include <tuple>

namespace nmt {
namespace {

using Ids = std::vector<int>;

constexpr int max_phrase = 10, max_distance = 50, max_candidates = 1000;

/// Which words a path of edits changes, and where it puts the words of the reference.
struct Alignment {
  std::vector<int> position;  ///< per reference word: the hypothesis word before or at it, or -1
  std::vector<char> reference_error, hypothesis_error;

  explicit Alignment(const std::vector<EditDistance::Op>& path) {
    using Op = EditDistance::Op;
    for (const Op op : path) {
      const bool error = op != Op::keep;
      if (op != Op::insert) hypothesis_error.push_back(error);
      if (op == Op::remove) continue;
      position.push_back(static_cast<int>(hypothesis_error.size()) - 1);
      reference_error.push_back(error);
    }
  }
};

/// Moves `length` words at `start` in front of the word at `target`; a target inside of them or
/// behind counts positions as if they were gone.
Ids shifted(const Ids& words, int start, int length, int target) {
  Ids result(words);
  const auto begin = result.begin() + start, end = begin + length;
  if (target < start)
    std::rotate(result.begin() + target, begin, end);
  else if (target > start + length)
    std::rotate(begin, end, result.begin() + target);
  else
    std::rotate(begin, end, std::min(result.begin() + length + target, result.end()));
  return result;
}

/// A shift; the greatest is the best: fewest edits left, longest phrase, earliest phrase and
/// target.
struct Shift {
  std::tuple<int, int, int, int> rank;
  Ids words;
};

class Search {
 public:
  Search(const Ids& hypothesis, const Ids& reference)
      : words_(hypothesis), reference_(reference), distance_(reference_, hypothesis.size()) {}

  std::int64_t edits() {
    std::int64_t shifts = 0;
    while (true) {
      std::optional<Shift> best = best_shift();
      if (candidates_ >= max_candidates || !best || std::get<0>(best->rank) <= 0) break;
      ++shifts;
      words_ = std::move(best->words);
    }
    return shifts + distance_(words_);
  }

 private:
  static bool any(const std::vector<char>& errors, int begin, int length) {
    return std::any_of(errors.begin() + begin, errors.begin() + begin + length,
                       [](char error) { return error != 0; });
  }

  std::optional<Shift> best_shift() {
    std::optional<Shift> best;
    const int before = distance_(words_);
    const Alignment alignment(distance_.path());
    const int words = static_cast<int>(words_.size()), others = static_cast<int>(reference_.size());
    for (int start = 0; start < words; ++start)
      for (int other = std::max(0, start - max_distance);
           other < std::min(others, start + max_distance + 1); ++other)
        for (int length = 1;
             length <= max_phrase && start + length <= words && other + length <= others &&
             words_[start + length - 1] == reference_[other + length - 1];
             ++length) {
          try_phrase(start, other, length, before, alignment, best);
          if (candidates_ >= max_candidates) return best;
        }
    return best;
  }

  /// Shifts a phrase to each place that the reference gives for it.
  void try_phrase(int start, int other, int length, int before, const Alignment& alignment,
                  std::optional<Shift>& best) {
    if (!any(alignment.hypothesis_error, start, length) ||
        !any(alignment.reference_error, other, length))
      return;
    const int at = alignment.position[other];
    if (start <= at && at < start + length) return;
    int previous = -1;
    for (int offset = -1; offset < length; ++offset) {
      const int place = other + offset;
      const int target = place == -1 ? 0 : alignment.position[place] + 1;
      if (target == previous) continue;
      previous = target;
      Shift shift{{}, shifted(words_, start, length, target)};
      shift.rank = {before - distance_(shift.words), length, -start, -target};
      ++candidates_;
      if (!best || shift.rank > best->rank) best = std::move(shift);
    }
  }

  Ids words_;
  const Ids& reference_;
  EditDistance distance_;
  int candidates_ = 0;
};

// Row: edits, sum of the lengths of the references, references, 1.
class TerMetric : public Metric {
 public:
  explicit TerMetric(const TerOptions& options) : options_(options) {}
  std::string name() const override { return "TER"; }
  std::string signature(int references, const std::string& trials) const override {
    return ter_signature(options_, references, trials);
  }
  std::string verbose(const std::vector<std::int64_t>&) const override { return ""; }
  std::vector<std::int64_t> row(const std::string& hypothesis,
                                const std::vector<std::string>& references) const override {
    NMT_CHECK(!references.empty(), "TER: expected at least one reference");
    const std::vector<std::string> mine = words(hypothesis);
    std::int64_t fewest = std::numeric_limits<std::int64_t>::max(), lengths = 0;
    for (const std::string& reference : references) {
      const std::vector<std::string> other = words(reference);
      fewest = std::min(fewest, translation_edits(mine, other));
      lengths += static_cast<std::int64_t>(other.size());
    }
    return {fewest, lengths, static_cast<std::int64_t>(references.size()), 1};
  }
  double score(const std::vector<std::int64_t>& sum) const override {
    return percent(static_cast<double>(sum[0]), static_cast<double>(sum[1]),
                   static_cast<double>(sum[2]) / static_cast<double>(sum[3]));
  }
  SampleScore score_of_floats(const std::vector<float>& sum) const override {
    if (sum[1] <= 0) return {percent(sum[0], 0, 1), false};
    return {static_cast<double>(100 * (sum[0] / (sum[1] / (sum[2] / sum[3])))), true};
  }

 private:
  static double percent(double edits, double lengths, double references) {
    if (lengths > 0) return 100 * (edits / (lengths / references));
    return edits > 0 ? 100 : 0;
  }
  std::vector<std::string> words(const std::string& line) const {
    return split_words(options_.case_sensitive ? line
                                               : encode_utf8(lowercase_of(decode_utf8(line))));
  }
  TerOptions options_;
};

}  // namespace

std::int64_t translation_edits(std::span<const std::string> hypothesis,
                               std::span<const std::string> reference) {
  if (reference.empty()) return static_cast<std::int64_t>(hypothesis.size());
  std::map<std::string_view, int> known;
  const auto ids = [&](std::span<const std::string> words) {
    Ids result;
    for (const std::string& word : words)
      result.push_back(known.try_emplace(word, static_cast<int>(known.size())).first->second);
    return result;
  };
  const Ids mine = ids(hypothesis), other = ids(reference);
  return Search(mine, other).edits();
}

std::unique_ptr<Metric> ter_metric(const TerOptions& options) {
  return std::make_unique<TerMetric>(options);
}

std::string ter_signature(const TerOptions& options, int references, const std::string& trials) {
  return fmt::format("nrefs:{}|{}case:{}|tok:tercom|norm:no|punct:yes|asian:no|version:nmt-{}",
                     references, trials, options.case_sensitive ? "mixed" : "lc", NMT_VERSION);
}

}  // namespace nmt
