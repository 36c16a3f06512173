#include "text/vocabulary/bpe_dropout.h"

#include "core/error.h"
#include "text/utf8.h"
#include "text/vocabulary/sentencepiece_model.h"

#include <string_view>

namespace nmt {
namespace {

constexpr std::size_t kLongestWord = 64;  // characters

std::uint64_t key(std::int32_t left, std::int32_t right) {
  return static_cast<std::uint64_t>(static_cast<std::uint32_t>(left)) << 32 |
         static_cast<std::uint32_t>(right);
}

// Ends of the characters of a piece.
std::vector<std::size_t> character_ends(std::string_view piece) {
  std::vector<std::size_t> ends;
  for (std::size_t i = 1; i <= piece.size(); ++i)
    if (i == piece.size() || !continues_character(piece[i])) ends.push_back(i);
  return ends;
}

}  // namespace

BpeDropout::BpeDropout(const Vocabulary& vocabulary, double probability)
    : probability_(static_cast<float>(probability)) {
  if (vocabulary_type(vocabulary.bytes()) != VocabularyType::bpe)
    fail(ExitStatus::usage,
         "bpe-dropout {}: needs a vocabulary of byte-pair encoding (SentencePiece type BPE), which "
         "this one is not; bpe-dropout=0 trains without",
         probability);
  const std::vector<VocabularyPiece> pieces = vocabulary_pieces(vocabulary.bytes());
  NMT_CHECK(static_cast<int>(pieces.size()) == vocabulary.size(),
            "bpe-dropout: {} pieces of {} read", pieces.size(), vocabulary.size());
  std::unordered_map<std::string_view, std::int32_t> ids;
  for (std::size_t id = 0; id < pieces.size(); ++id)
    if (pieces[id].is_normal) ids.emplace(pieces[id].text, static_cast<std::int32_t>(id));
  const auto id_of = [&](std::string_view text) {
    const auto found = ids.find(text);
    return found == ids.end() ? -1 : found->second;
  };
  characters_.resize(pieces.size());
  for (std::size_t id = 0; id < pieces.size(); ++id) {
    const std::string_view text = pieces[id].text;
    starts_word_.push_back(vocabulary.starts_word(static_cast<std::int32_t>(id)));
    if (!pieces[id].is_normal) continue;
    std::size_t begin = 0;
    for (const std::size_t end : character_ends(text)) {
      characters_[id].push_back(id_of(text.substr(begin, end - begin)));
      begin = end;
      if (end == text.size()) break;
      const std::int32_t left = id_of(text.substr(0, end)), right = id_of(text.substr(end));
      if (left >= 0 && right >= 0)
        merges_.emplace(key(left, right), Merge{static_cast<std::int32_t>(id), pieces[id].score});
    }
    for (const std::int32_t character : characters_[id])
      if (character < 0) {  // it cannot be spelled
        characters_[id].clear();
        break;
      }
  }
}

const BpeDropout::Merge* BpeDropout::find(std::int32_t left, std::int32_t right) const {
  const auto found = merges_.find(key(left, right));
  return found == merges_.end() ? nullptr : &found->second;
}

void BpeDropout::merge(std::vector<std::int32_t>& word, std::vector<const Merge*>& after,
                       Rng& rng) const {
  after.clear();  // after[i]: the merge of pieces i and i + 1
  for (std::size_t i = 0; i + 1 < word.size(); ++i) after.push_back(find(word[i], word[i + 1]));
  for (;;) {
    const Merge* best = nullptr;
    std::size_t at = 0;
    for (std::size_t i = 0; i < after.size(); ++i) {
      if (!after[i] || rng.uniform() < probability_) continue;
      if (best && after[i]->score <= best->score) continue;
      best = after[i];
      at = i;
    }
    if (!best) return;
    word[at] = best->id;
    word.erase(word.begin() + static_cast<std::ptrdiff_t>(at) + 1);
    after.erase(after.begin() + static_cast<std::ptrdiff_t>(at));
    if (at > 0) after[at - 1] = find(word[at - 1], word[at]);
    if (at < after.size()) after[at] = find(word[at], word[at + 1]);
  }
}

std::vector<std::int32_t> BpeDropout::apply(const std::vector<std::int32_t>& ids, Rng& rng) const {
  std::vector<std::int32_t> out, word;
  std::vector<const Merge*> after;
  const auto end_word = [&] {
    merge(word, after, rng);
    out.insert(out.end(), word.begin(), word.end());
    word.clear();
  };
  for (const std::int32_t id : ids) {
    const auto index = static_cast<std::size_t>(id);
    if (starts_word_[index] || word.size() >= kLongestWord) end_word();
    if (characters_[index].empty()) {
      end_word();
      out.push_back(id);
    } else {
      word.insert(word.end(), characters_[index].begin(), characters_[index].end());
    }
  }
  end_word();
  return out;
}

}  // namespace nmt
