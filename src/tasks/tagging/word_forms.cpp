#include "tasks/tagging/word_forms.h"

namespace nmt {

std::int32_t WordForms::add(const std::string& word) {
  const auto [entry, is_new] = numbers_.try_emplace(word, size());
  if (!is_new) return entry->second;
  const Ids pieces = vocabulary_.encode(word);
  ids_.push_back(pieces.size() == 1 ? pieces[0] : vocabulary_.unk());
  const auto append = [this](std::string_view bytes) {
    for (const char c : bytes) symbols_.push_back(static_cast<unsigned char>(c));
  };
  const std::string_view text = word;
  symbols_.push_back(256);
  if (text.size() <= max_bytes) {
    append(text);
  } else {
    append(text.substr(0, max_bytes / 2));
    append(text.substr(text.size() - max_bytes / 2));
  }
  symbols_.push_back(257);
  ends_.push_back(symbols_.size());
  return entry->second;
}

Ids WordForms::add(std::span<const std::string> words) {
  Ids forms;
  forms.reserve(words.size());
  for (const std::string& word : words) forms.push_back(add(word));
  return forms;
}

void WordForms::clear() {
  numbers_.clear();
  ids_.clear();
  ends_.clear();
  symbols_.clear();
}

std::span<const std::int32_t> WordForms::symbols(std::int32_t form) const {
  const auto at = static_cast<std::size_t>(form);
  const std::size_t begin = at == 0 ? 0 : ends_[at - 1];
  return std::span(symbols_).subspan(begin, ends_[at] - begin);
}

}  // namespace nmt
