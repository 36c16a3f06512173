#include "text/document_context.h"

#include "text/lines.h"

namespace nmt {

ContextSentences DocumentContext::next(const std::string& line) {
  if (sentences_ == 0) return {};
  if (is_blank(line)) {
    before_.clear();
    return {};
  }
  ContextSentences context = before_;
  if (before_.size() == sentences_) before_.erase(before_.begin());
  before_.push_back(line);
  return context;
}

std::vector<ContextSentences> contexts_of(std::span<const std::string> lines, int sentences) {
  std::vector<ContextSentences> contexts;
  if (sentences == 0) return contexts;
  DocumentContext document(sentences);
  contexts.reserve(lines.size());
  for (const std::string& line : lines) contexts.push_back(document.next(line));
  return contexts;
}

SourceIds join_context(std::span<const MeasuredSentence> context, MeasuredSentence sentence,
                       std::int64_t limit, std::int32_t separator) {
  std::int64_t room = limit - sentence.second;
  std::size_t first = context.size();
  for (; first > 0; --first) {
    const auto& [ids, length] = context[first - 1];
    if (ids.empty()) continue;
    if (length + 1 > room) break;
    room -= length + 1;
  }
  SourceIds joined;
  for (const auto& [ids, length] : context.subspan(first)) {
    if (ids.empty()) continue;
    joined.ids.insert(joined.ids.end(), ids.begin(), ids.end());
    joined.ids.push_back(separator);
  }
  joined.context = joined.ids.size();
  if (joined.context == 0)
    joined.ids = std::move(sentence.first);
  else
    joined.ids.insert(joined.ids.end(), sentence.first.begin(), sentence.first.end());
  return joined;
}

}  // namespace nmt
