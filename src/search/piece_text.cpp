#include "search/piece_text.h"

#include <algorithm>

namespace nmt {
namespace {
constexpr std::string_view white_space = " \t\v\f\r";
}

PieceText::PieceText(const Vocabulary& vocabulary) : vocabulary_(vocabulary) {
  for (std::int32_t id = 0; id < vocabulary.size(); ++id)
    if (id != vocabulary.bos() && id != vocabulary.eos()) ids_.emplace(vocabulary.piece(id), id);
}

std::vector<std::int32_t> PieceText::encode(std::string_view line) const {
  std::vector<std::int32_t> ids;
  for (std::size_t at = 0;;) {
    const std::size_t begin = line.find_first_not_of(white_space, at);
    if (begin == std::string_view::npos) return ids;
    at = std::min(line.find_first_of(white_space, begin), line.size());
    const auto found = ids_.find(std::string(line.substr(begin, at - begin)));
    ids.push_back(found == ids_.end() ? vocabulary_.unk() : found->second);
  }
}

std::string PieceText::decode(std::span<const std::int32_t> ids) const {
  std::string text;
  for (const std::int32_t id : ids) {
    if (!text.empty()) text += ' ';
    text += vocabulary_.piece(id);
  }
  return text;
}

}  // namespace nmt
