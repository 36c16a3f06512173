#include "search/source_encoder.h"

#include "core/error.h"
#include "text/lines.h"

#include <algorithm>
#include <utility>

namespace nmt {

SourceEncoder::SourceEncoder(const Vocabulary& vocabulary, int context_sentences, int max_length,
                             bool in_pieces)
    : vocabulary_(vocabulary),
      context_sentences_(context_sentences),
      max_length_(static_cast<std::size_t>(max_length)) {
  if (in_pieces) pieces_.emplace(vocabulary);
}

MeasuredSentence SourceEncoder::measure(const std::string& line) const {
  std::vector<std::int32_t> ids = pieces_ ? pieces_->encode(line) : vocabulary_.encode(line);
  const auto length = static_cast<std::int32_t>(ids.size());
  return {std::move(ids), length};
}

std::span<const std::string> SourceEncoder::last_sentences(
    std::span<const std::string> context) const {
  return context.last(std::min(context.size(), static_cast<std::size_t>(context_sentences_)));
}

// As join_context().
std::span<const std::string> SourceEncoder::used_context(std::span<const std::string> context,
                                                         std::size_t tokens) const {
  if (tokens == 0 || tokens >= max_length_) return {};
  const std::span<const std::string> sentences = last_sentences(context);
  std::size_t room = max_length_ - tokens, first = sentences.size();
  for (; first > 0; --first) {
    const std::size_t size = measure(sentences[first - 1]).first.size();
    if (size == 0) continue;
    if (size + 1 > room) break;
    room -= size + 1;
  }
  return sentences.subspan(first);
}

EncodedSource SourceEncoder::encode(const std::string& line,
                                    std::span<const std::string> context) const {
  EncodedSource encoded;
  if (is_blank(line)) return encoded;
  MeasuredSentence sentence = measure(line);
  encoded.tokens = sentence.first.size();
  if (sentence.first.size() > max_length_) sentence.first.resize(max_length_);
  std::vector<MeasuredSentence> before;
  if (encoded.tokens > 0 && encoded.tokens < max_length_)
    for (const std::string& each : context) before.push_back(measure(each));
  encoded.source = join_context(before, std::move(sentence), static_cast<std::int64_t>(max_length_),
                                vocabulary_.eos());
  return encoded;
}

std::vector<EncodedSource> SourceEncoder::encode(std::span<const std::string> lines,
                                                 std::span<const ContextSentences> contexts,
                                                 ThreadPool& pool) const {
  NMT_CHECK(contexts.empty() || contexts.size() == lines.size(), "{} contexts for {} lines",
            contexts.size(), lines.size());
  std::vector<ContextSentences> of_document;
  if (contexts.empty()) contexts = of_document = contexts_of(lines, context_sentences_);
  std::vector<EncodedSource> encoded(lines.size());
  pool.parallel_for(
      static_cast<std::int64_t>(lines.size()), 16, [&](std::int64_t begin, std::int64_t end) {
        for (auto i = static_cast<std::size_t>(begin); i < static_cast<std::size_t>(end); ++i) {
          std::span<const std::string> context;
          if (context_sentences_ > 0) context = contexts[i];
          encoded[i] = encode(lines[i], last_sentences(context));
        }
      });
  return encoded;
}

}  // namespace nmt
