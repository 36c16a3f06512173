#include "search/beam/shortlist.h"

#include "core/error.h"
#include "text/lines.h"

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <numeric>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <utility>

namespace nmt {
namespace {

template <class T>
std::optional<T> number(std::string_view text) {
  T value{};
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), value);
  if (parsed.ec != std::errc() || parsed.ptr != text.data() + text.size()) return std::nullopt;
  return value;
}

bool is_separator(char c) {
  return c == ' ' || c == '\t';
}

// The three words of a line; nothing if it does not have three.
std::optional<std::array<std::string_view, 3>> three_words(std::string_view line) {
  std::array<std::string_view, 3> words;
  std::size_t at = 0;
  const auto skip = [&](bool blank) {
    while (at < line.size() && is_separator(line[at]) == blank) ++at;
  };
  for (std::string_view& word : words) {
    skip(true);
    const std::size_t begin = at;
    skip(false);
    word = line.substr(begin, at - begin);
    if (word.empty()) return std::nullopt;
  }
  skip(true);
  if (at < line.size()) return std::nullopt;
  return words;
}

class Pieces {
 public:
  explicit Pieces(const Vocabulary& vocabulary) {
    const auto size = static_cast<std::size_t>(vocabulary.size());
    texts_.reserve(size);
    ids_.reserve(size);
    for (std::int32_t id = 0; id < vocabulary.size(); ++id)
      ids_.emplace(texts_.emplace_back(vocabulary.piece(id)), id);
  }
  Pieces(const Pieces&) = delete;
  Pieces& operator=(const Pieces&) = delete;

  std::int32_t id(std::string_view piece, const char* side, const std::string& path,
                  std::int64_t line) {
    if (last_ != ids_.end() && last_->first == piece) return last_->second;
    const auto found = ids_.find(piece);
    if (found == ids_.end())
      fail(ExitStatus::data,
           "shortlist: {}:{}: '{}' is not a piece of the {} vocabulary; the shortlist belongs to "
           "another model",
           path, line, piece, side);
    last_ = found;
    return found->second;
  }

 private:
  std::vector<std::string> texts_;  // never moved: ids_ views them
  std::unordered_map<std::string_view, std::int32_t> ids_;
  // Neighboring lines mostly have the same source.
  std::unordered_map<std::string_view, std::int32_t>::iterator last_ = ids_.end();
};

struct Translation {
  std::int32_t source, target;
  double probability;
};

// By descending probability, then by id.
bool before(const Translation& a, const Translation& b) {
  return a.probability != b.probability ? a.probability > b.probability : a.target < b.target;
}

// The translations in the order of their sources, and where those of each source begin, [sources +
// 1]. A counting sort: a shortlist of a large vocabulary has some hundred thousand.
std::vector<std::int64_t> group_by_source(std::vector<Translation>& translations, int sources) {
  std::vector<std::int64_t> begin(static_cast<std::size_t>(sources) + 1);
  for (const Translation& each : translations) ++begin[static_cast<std::size_t>(each.source) + 1];
  std::partial_sum(begin.begin(), begin.end(), begin.begin());
  std::vector<Translation> grouped(translations.size());
  std::vector<std::int64_t> next(begin.begin(), begin.end() - 1);
  for (const Translation& each : translations)
    grouped[static_cast<std::size_t>(next[static_cast<std::size_t>(each.source)]++)] = each;
  translations = std::move(grouped);
  return begin;
}

void sort_unique(std::vector<std::int32_t>& ids) {
  std::sort(ids.begin(), ids.end());
  ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
}

}  // namespace

std::optional<ShortlistOptions> ShortlistOptions::parse(const std::vector<std::string>& words) {
  if (words.empty() || (words.size() == 1 && words[0] == off)) return std::nullopt;
  if (words.size() > 4)
    fail(ExitStatus::usage, "shortlist: {} arguments given, expected FILE [FIRST [BEST [PRUNE]]]",
         words.size());
  ShortlistOptions options;
  options.path = words[0];
  const auto count = [&](std::size_t at, const char* name, int& value) {
    if (words.size() <= at) return;
    const auto parsed = number<int>(words[at]);
    if (!parsed || *parsed < 0 || *parsed > 1000000)
      fail(ExitStatus::usage, "shortlist: {} is '{}', expected an integer from 0 to 1000000", name,
           words[at]);
    value = *parsed;
  };
  count(1, "FIRST", options.first);
  count(2, "BEST", options.best);
  if (words.size() > 3) {
    const auto parsed = number<double>(words[3]);
    if (!parsed || !(*parsed >= 0 && *parsed <= 1))
      fail(ExitStatus::usage, "shortlist: PRUNE is '{}', expected a probability from 0 to 1",
           words[3]);
    options.prune = *parsed;
  }
  return options;
}

Shortlist Shortlist::load(const ShortlistOptions& options, const Vocabulary& source,
                          const Vocabulary& target) {
  Pieces sources(source), targets(target);
  std::vector<Translation> translations;
  std::vector<Translation> frequent;  // source: none
  const auto is_symbol = [&](std::int32_t id) { return id == target.bos() || id == target.unk(); };
  LineReader reader = LineReader::open(options.path);
  std::string line;
  std::int64_t lines = 0;
  while (reader.next(line)) {
    ++lines;
    const auto words = three_words(line);
    const auto probability = words ? number<double>((*words)[2]) : std::nullopt;
    if (!probability || !(*probability >= 0 && *probability <= 1))
      fail(ExitStatus::data,
           "shortlist: {}:{}: expected 'TARGET SOURCE PROBABILITY' with a probability from 0 to 1",
           options.path, lines);
    const std::int32_t id = targets.id((*words)[0], "target", options.path, lines);
    const bool whole = (*words)[1] == shortlist_no_source;
    const std::int32_t from = whole ? -1 : sources.id((*words)[1], "source", options.path, lines);
    if (is_symbol(id) || (!whole && *probability < options.prune)) continue;
    (whole ? frequent : translations).push_back({from, id, *probability});
  }
  reader.notes().warn(options.path);
  if (lines == 0) fail(ExitStatus::data, "shortlist: {} is empty", options.path);

  Shortlist list;
  if (frequent.empty())
    for (std::int32_t id = 0; id < target.size(); ++id)
      if (!is_symbol(id)) frequent.push_back({-1, id, 0.0});
  std::sort(frequent.begin(), frequent.end(), before);
  // Lines may repeat: a target counts once for each source.
  std::vector<std::int32_t> last_source(static_cast<std::size_t>(target.size()), -2);
  const auto is_first = [&last_source](const Translation& each) {
    return std::exchange(last_source[static_cast<std::size_t>(each.target)], each.source) !=
           each.source;
  };
  for (const Translation& each : frequent)
    if (list.always_.size() < static_cast<std::size_t>(options.first) && is_first(each))
      list.always_.push_back(each.target);
  list.always_.push_back(target.eos());
  sort_unique(list.always_);

  const std::vector<std::int64_t> groups = group_by_source(translations, source.size());
  list.begin_.reserve(groups.size());
  list.begin_.push_back(0);
  for (std::size_t id = 0; id + 1 < groups.size(); ++id) {
    const auto begin = translations.begin() + groups[id],
               end = translations.begin() + groups[id + 1];
    std::sort(begin, end, before);
    int taken = 0;
    for (auto at = begin; at < end && taken < options.best; ++at)
      if (is_first(*at)) {
        list.targets_.push_back(at->target);
        ++taken;
      }
    list.begin_.push_back(list.size());
  }
  return list;
}

std::vector<std::int32_t> Shortlist::candidates(std::span<const std::int32_t> source) const {
  // A bit for each target piece.
  constexpr int width = 64;
  std::vector<std::uint64_t> chosen;
  const auto choose = [&](std::int32_t id) {
    const auto word = static_cast<std::size_t>(id / width);
    if (word >= chosen.size()) chosen.resize(word + 1);
    chosen[word] |= std::uint64_t{1} << id % width;
  };
  for (const std::int32_t id : always_) choose(id);
  for (const std::int32_t piece : source) {
    NMT_CHECK(piece >= 0 && piece + 1 < static_cast<std::int32_t>(begin_.size()),
              "source id {} is outside the vocabulary of {}", piece, begin_.size() - 1);
    for (std::int64_t i = begin_[piece]; i < begin_[piece + 1]; ++i)
      choose(targets_[static_cast<std::size_t>(i)]);
  }
  std::vector<std::int32_t> ids;
  for (std::size_t word = 0; word < chosen.size(); ++word)
    for (std::uint64_t bits = chosen[word]; bits != 0; bits &= bits - 1)
      ids.push_back(static_cast<std::int32_t>(word) * width + std::countr_zero(bits));
  return ids;
}

}  // namespace nmt
