#include "search/text/text_translator.h"

#include "search/text/line_parts.h"
#include "search/text/repetition_guard.h"

#include <algorithm>
#include <utility>

namespace nmt {

std::vector<TextSpan> TextTranslator::spans_of(const std::string& line,
                                               LetterCase letter_case) const {
  // Markers and terms are case-sensitive: what only becomes one in sentence case is none.
  const bool as_it_was = letter_case == LetterCase::mixed;
  SpanKinds kinds = rules_.preserve;
  kinds.marked &= as_it_was;
  std::vector<TextSpan> spans = find_spans(line, kinds);
  if (as_it_was && rules_.glossary.size() > 0) rules_.glossary.add_terms(line, spans);
  return spans;
}

LetterCase TextTranslator::case_of(const std::string& line) const {
  return rules_.recase && spans_of(line).empty() ? letter_case_of(line) : LetterCase::mixed;
}

std::vector<ContextSentences> TextTranslator::read_contexts(
    std::span<const std::string> lines, std::span<const ContextSentences> contexts) const {
  const int sentences = options().context_sentences;
  if (sentences == 0) return {};
  std::vector<ContextSentences> read(contexts.begin(), contexts.end());
  if (read.empty()) read = contexts_of(lines, sentences);
  for (ContextSentences& context : read)
    for (std::string& sentence : context) {
      if (case_of(sentence) != LetterCase::mixed)
        sentence = in_sentence_case(sentence);
      else
        sentence = without_markers(sentence, spans_of(sentence));
    }
  return read;
}

std::vector<LineTranslation> TextTranslator::translate(std::span<const std::string> lines,
                                                       std::int64_t first_line,
                                                       std::span<const ContextSentences> given) {
  const std::vector<ContextSentences> contexts = read_contexts(lines, given);
  std::vector<LineTranslation> translations = rules_.recase
                                                  ? recased(lines, first_line, contexts)
                                                  : as_written(lines, first_line, contexts);
  translator_.count_repetitions(translations, first_line);
  return translations;
}

std::vector<LineTranslation> TextTranslator::recased(std::span<const std::string> lines,
                                                     std::int64_t first_line,
                                                     std::span<const ContextSentences> contexts) {
  std::vector<std::string> texts(lines.begin(), lines.end());
  std::vector<LetterCase> cases;
  for (std::string& text : texts) {
    cases.push_back(case_of(text));
    if (cases.back() != LetterCase::mixed) text = in_sentence_case(text);
  }
  std::vector<LineTranslation> translations = as_written(texts, first_line, contexts, cases);
  for (std::size_t i = 0; i < lines.size(); ++i) {
    if (cases[i] == LetterCase::mixed) continue;
    for (Output& output : translations[i].outputs) {
      output.text = in_case(output.text, cases[i]);
      output.ids = target_.encode(output.text);
      output.alignment.clear();
    }
  }
  return translations;
}

TextTranslator::MarkedLines TextTranslator::marked(std::span<const std::string> lines,
                                                   std::span<const LetterCase> cases) const {
  MarkedLines all;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    all.spans.push_back(spans_of(lines[i], cases.empty() ? LetterCase::mixed : cases[i]));
    all.plain.push_back(without_markers(lines[i], all.spans.back()));
  }
  return all;
}

std::vector<LineTranslation> TextTranslator::as_written(std::span<const std::string> lines,
                                                        std::optional<std::int64_t> first_line,
                                                        std::span<const ContextSentences> contexts,
                                                        std::span<const LetterCase> cases) {
  if (best_) return lists(lines, first_line, contexts, cases);
  if (!rules_.preserve.any() && rules_.glossary.size() == 0)
    return guarded(uncounted(lines, first_line, contexts), lines);
  const auto [spans, plain] = marked(lines, cases);
  std::vector<LineTranslation> translations =
      guarded(uncounted(plain, first_line, contexts), plain);
  for (std::size_t i = 0; i < lines.size(); ++i)
    if (plain[i] != lines[i])  // the words of the line are others
      for (Output& output : translations[i].outputs) output.alignment.clear();

  struct Cut {
    std::size_t line;
    LineParts parts;
    std::size_t first;  // of its texts in `texts`
  };
  std::vector<Cut> cuts;
  std::vector<std::string> texts;
  std::vector<ContextSentences> contexts_of_texts;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    if (spans[i].empty()) continue;
    std::vector<Output>& outputs = translations[i].outputs;
    const auto lacks_span = [&kept = spans[i]](const Output& output) {
      return !contains_all(output.text, kept);
    };
    const bool loses_best = lacks_span(outputs.front());
    std::erase_if(outputs, lacks_span);
    if (!outputs.empty()) {
      if (loses_best && !rules_.repetition_guard)
        translations[i].repeated =
            reported_repetitions(outputs.front().ids, source_.encode(plain[i]));
      continue;
    }
    cuts.push_back({i, LineParts(lines[i], spans[i]), texts.size()});
    // Every part has the context, of which the shortest part reads the most.
    std::span<const std::string> context;
    if (!contexts.empty()) context = translator_.encoder().used_context(contexts[i], 1);
    for (const LineParts::Part& part : cuts.back().parts.parts) {
      if (!part.translate) continue;
      texts.push_back(part.text);
      if (!contexts.empty()) contexts_of_texts.emplace_back(context.begin(), context.end());
    }
  }
  if (cuts.empty()) return translations;
  statistics_.in_parts += static_cast<std::int64_t>(cuts.size());
  const std::vector<LineTranslation> parts =
      guarded(translator_.translate_parts(texts, contexts_of_texts), texts);
  for (std::size_t i = 0; i < cuts.size(); ++i) {
    const std::size_t end = i + 1 < cuts.size() ? cuts[i + 1].first : texts.size();
    Output& output = translations[cuts[i].line].outputs.emplace_back();
    std::vector<std::string> translated;
    int repeated = 0;
    for (std::size_t k = cuts[i].first; k < end; ++k) {
      const Output& part = parts[k].outputs.front();
      translated.push_back(part.text);
      repeated = std::max(repeated, parts[k].repeated);
      output.log_prob += part.log_prob;
      output.score += part.score;
    }
    output.text = cuts[i].parts.join(translated);
    output.ids = target_.encode(output.text);
    translations[cuts[i].line].repeated = repeated;
  }
  return translations;
}

std::vector<LineTranslation> TextTranslator::uncounted(std::span<const std::string> lines,
                                                       std::optional<std::int64_t> first_line,
                                                       std::span<const ContextSentences> contexts) {
  return first_line ? translator_.translate_uncounted(lines, *first_line, contexts)
                    : translator_.translate_parts(lines, contexts);
}

std::vector<LineTranslation> TextTranslator::lists(std::span<const std::string> lines,
                                                   std::optional<std::int64_t> first_line,
                                                   std::span<const ContextSentences> contexts,
                                                   std::span<const LetterCase> cases) {
  const auto [spans, plain] = marked(lines, cases);
  std::vector<LineTranslation> translations = uncounted(plain, first_line, contexts);
  std::vector<std::size_t> refused;
  std::vector<std::string> texts;
  std::vector<ContextSentences> contexts_of_texts;
  std::vector<LetterCase> cases_of_texts;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    std::vector<Output>& outputs = translations[i].outputs;
    const auto breaks_rule = [&, &words = plain[i], &kept = spans[i]](const Output& output) {
      return (rules_.repetition_guard && repeats(words, output)) ||
             !contains_all(output.text, kept);
    };
    if (rules_.repetition_guard) translations[i].repeated = 0;
    if (plain[i] != lines[i])  // the words of the line are others
      for (Output& output : outputs) output.alignment.clear();
    if (breaks_rule(outputs.front())) {
      refused.push_back(i);
      texts.push_back(lines[i]);
      if (!contexts.empty()) contexts_of_texts.push_back(contexts[i]);
      if (!cases.empty()) cases_of_texts.push_back(cases[i]);
    }
    std::erase_if(outputs, breaks_rule);
  }
  if (refused.empty()) return translations;
  std::vector<LineTranslation> again =
      best_->as_written(texts, {}, contexts_of_texts, cases_of_texts);
  for (std::size_t i = 0; i < refused.size(); ++i) {
    std::vector<Output>& outputs = translations[refused[i]].outputs;
    Output& best = again[i].outputs.front();
    translations[refused[i]].repeated = again[i].repeated;
    const auto listed = std::find_if(outputs.begin(), outputs.end(), [&](const Output& output) {
      return output.text == best.text;
    });
    if (listed != outputs.end())  // with its alignment
      std::rotate(outputs.begin(), listed, listed + 1);
    else
      outputs.insert(outputs.begin(), std::move(best));
  }
  return translations;
}

bool TextTranslator::repeats(const std::string& line, const Output& output) const {
  return find_output_repetition(line, source_.encode(line), output.text, output.ids).found;
}

void TextTranslator::cut(const std::string& line, Output& output) const {
  const std::vector<std::int32_t> source = source_.encode(line);
  // Removing one repetition may leave another; each round makes the text shorter.
  for (OutputRepetition found;
       (found = find_output_repetition(line, source, output.text, output.ids), found.found);) {
    output.alignment.clear();
    const std::size_t size = output.ids.size();
    if (found.of_words) {
      output.text = without_repeated_words(output.text, found);
      output.ids = target_.encode(output.text);
    } else {
      const auto begin =
          output.ids.begin() + static_cast<std::ptrdiff_t>(found.begin + found.length);
      output.ids.erase(begin,
                       begin + static_cast<std::ptrdiff_t>(found.length * (found.times - 1)));
      output.text = target_.decode(output.ids);
      keep_in_one_line(output.text);
      if (output.ids.size() >= size) return;
    }
  }
}

void TextTranslator::guard(const std::string& line, std::vector<Output>& outputs) const {
  Output shorter = outputs.front();
  cut(line, shorter);
  std::vector<Output> list = std::move(outputs);
  std::erase_if(list, [&](const Output& output) { return repeats(line, output); });
  // A hypothesis that says less than the text without its repetition has lost more than that.
  if (!list.empty() && list.front().text.size() >= shorter.text.size()) {
    ++statistics_.replaced;
  } else {
    std::erase_if(list, [&](const Output& output) { return output.text == shorter.text; });
    list.insert(list.begin(), std::move(shorter));
    ++statistics_.cut;
  }
  outputs = std::move(list);
}

std::vector<LineTranslation> TextTranslator::guarded(std::vector<LineTranslation> translations,
                                                     std::span<const std::string> lines) const {
  if (!rules_.repetition_guard) return translations;
  const bool has_lists = translator_.options().search.n_best;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    std::vector<Output>& outputs = translations[i].outputs;
    translations[i].repeated = 0;
    const bool is_bad = repeats(lines[i], outputs.front());
    if (is_bad)
      guard(lines[i], outputs);
    else if (has_lists)
      std::erase_if(outputs, [&](const Output& output) { return repeats(lines[i], output); });
    if (!has_lists) outputs.resize(1);
  }
  return translations;
}

}  // namespace nmt
