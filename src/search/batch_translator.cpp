#include "search/batch_translator.h"

#include "core/error.h"
#include "core/log.h"
#include "core/threads/thread_pool.h"
#include "search/repetition.h"
#include "search/source_text_scorer.h"
#include "text/lines.h"

#include <algorithm>
#include <iterator>
#include <mutex>

#include <fmt/format.h>

namespace nmt {

void keep_in_one_line(std::string& text) {
  std::replace(text.begin(), text.end(), '\n', ' ');
}

int reported_repetitions(std::span<const std::int32_t> output,
                         std::span<const std::int32_t> source) {
  const int times = longest_repetition(output).times;
  const bool is_reported =
      times >= min_reported_repetitions && times > 2 * longest_repetition(source).times;
  return is_reported ? times : 0;
}

BatchTranslatorOptions translator_options(const SearchSpec& spec, const Cpu& cpu) {
  BatchTranslatorOptions options;
  options.search = search_options(spec, cpu);
  options.alignment = spec.alignment;
  options.batching = {spec.mini_batch, spec.maxi_batch,
                      spec.maxi_batch_sort == WindowOrder::source_length, spec.max_length};
  return options;
}

BatchTranslator::BatchTranslator(StepScorer& scorer, const Vocabulary& source,
                                 const Vocabulary& target, BatchTranslatorOptions options)
    : scorer_(scorer),
      source_(source),
      target_(target),
      options_(std::move(options)),
      encoder_(source, options_.context_sentences, options_.batching.max_length,
               options_.pieces_in) {
  options_.batching.check();
  require_same_size(scorer, target);
  if (options_.pieces_out) target_pieces_.emplace(target);
  options_.search.unk = target.unk();
  options_.search.bos = target.bos();
  options_.search.eos = target.eos();
  options_.search.want_attention = options_.attention || options_.alignment != AlignmentKind::none;
}

std::vector<LineTranslation> BatchTranslator::translate(
    std::span<const std::string> lines, std::int64_t first_line,
    std::span<const ContextSentences> contexts) {
  std::vector<LineTranslation> translations = run(lines, first_line, contexts);
  count_repetitions(translations, first_line);
  return translations;
}

std::vector<LineTranslation> BatchTranslator::translate_uncounted(
    std::span<const std::string> lines, std::int64_t first_line,
    std::span<const ContextSentences> contexts) {
  return run(lines, first_line, contexts);
}

std::vector<LineTranslation> BatchTranslator::translate_parts(
    std::span<const std::string> parts, std::span<const ContextSentences> contexts) {
  return run(parts, std::nullopt, contexts);
}

std::vector<LineTranslation> BatchTranslator::run(std::span<const std::string> lines,
                                                  std::optional<std::int64_t> first_line,
                                                  std::span<const ContextSentences> contexts) {
  const std::vector<EncodedSource> encoded =
      encoder_.encode(lines, contexts, options_.crew.widest(*options_.search.cpu.pool));
  std::vector<LineTranslation> translations(lines.size());
  std::vector<std::size_t> sentences, lengths(lines.size());
  const auto max_length = static_cast<std::size_t>(options_.batching.max_length);
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const SourceIds& source = encoded[i].source;
    if (source.ids.empty()) {
      translations[i].outputs.resize(1);
      continue;
    }
    lengths[i] = source.ids.size();
    sentences.push_back(i);
    if (!first_line) continue;
    if (encoded[i].tokens > max_length) {
      if (statistics_.cropped++ == 0 && options_.warn_crops)
        log::warn(
            "line {} has {} tokens, only the first {} are translated (max-length); further "
            "cropped lines "
            "are not reported individually",
            *first_line + static_cast<std::int64_t>(i), encoded[i].tokens, max_length);
    }
    statistics_.source_tokens += std::ssize(source.sentence());
  }
  if (first_line) statistics_.sentences += static_cast<std::int64_t>(sentences.size());
  // Lines that do not count are reported as none: the listener may stop the call.
  const auto report = [&](std::size_t count) {
    if (options_.on_batch) options_.on_batch(first_line ? static_cast<std::int64_t>(count) : 0);
  };
  report(lines.size() - sentences.size());

  const std::vector<std::vector<std::size_t>> batches =
      options_.batching.cut(std::move(sentences), lengths, options_.crew.size());
  std::mutex one_at_a_time;
  options_.crew.run({&scorer_, options_.search.cpu}, batches.size(),
                    [&](const Worker& worker, std::size_t i) {
                      translate_batch(worker, batches[i], lines, encoded, translations);
                      const std::lock_guard lock(one_at_a_time);
                      report(batches[i].size());
                    });
  if (!first_line) return translations;
  for (std::size_t i = 0; i < lines.size(); ++i)
    if (lengths[i] > 0)
      statistics_.target_tokens +=
          static_cast<std::int64_t>(translations[i].outputs.front().ids.size());
  return translations;
}

void BatchTranslator::count_repetitions(std::span<const LineTranslation> translations,
                                        std::int64_t first_line) {
  for (std::size_t i = 0; i < translations.size(); ++i) {
    const int times = translations[i].repeated;
    if (times == 0 || statistics_.repeating++ > 0 || !options_.warn_repetitions) continue;
    log::warn(
        "line {}: the translation repeats a sequence {} times in a row; further such lines are not "
        "reported individually",
        first_line + static_cast<std::int64_t>(i), times);
  }
}

void BatchTranslator::translate_batch(const Worker& worker, std::span<const std::size_t> batch,
                                      std::span<const std::string> lines,
                                      std::span<const EncodedSource> encoded,
                                      std::vector<LineTranslation>& translations) {
  std::vector<Ids> sources;
  std::vector<std::string> texts;
  std::vector<std::size_t> lengths, contexts;
  for (const std::size_t line : batch) {
    const SourceIds& source = encoded[line].source;
    sources.push_back(source.ids);
    texts.push_back(lines[line]);
    lengths.push_back(source.ids.size());
    contexts.push_back(source.context);
  }
  SearchOptions search = options_.search;
  search.cpu = worker.cpu;
  std::vector<SentenceResult> results(batch.size());
  oom_splitter_.run(lengths, [&](std::size_t first, std::size_t count) {
    SourceTextScorer scorer(*worker.scorer, std::span(texts).subspan(first, count));
    search.contexts = std::span(contexts).subspan(first, count);
    std::vector<SentenceResult> part =
        beam_search(scorer, std::span(sources).subspan(first, count), search);
    std::move(part.begin(), part.end(), results.begin() + static_cast<std::ptrdiff_t>(first));
  });
  worker.cpu.pool->parallel_for(
      static_cast<std::int64_t>(batch.size()), 4, [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t i = begin; i < end; ++i)
          translations[batch[i]] = read(results[i], lines[batch[i]], encoded[batch[i]].source);
      });
}

LineTranslation BatchTranslator::read(const SentenceResult& result, std::string_view line,
                                      const SourceIds& source) const {
  LineTranslation translation;
  translation.repeated = reported_repetitions(result.hypotheses.front().ids, source.sentence());
  const PieceGroups source_groups =
      groups_of_source(options_.alignment, source_, line, source, options_.pieces_in);
  for (const Hypothesis& hypothesis : result.hypotheses) {
    Output& output = translation.outputs.emplace_back();
    output.text =
        target_pieces_ ? target_pieces_->decode(hypothesis.ids) : target_.decode(hypothesis.ids);
    keep_in_one_line(output.text);
    output.ids = hypothesis.ids;
    output.log_prob = hypothesis.log_prob;
    output.score = hypothesis.score;
    if (options_.attention) output.attention = hypothesis.attention;
    if (options_.alignment == AlignmentKind::none) continue;
    const PieceGroups target_groups = options_.alignment == AlignmentKind::word
                                          ? words_of_ids(target_, hypothesis.ids)
                                          : each_piece(hypothesis.ids.size());
    output.alignment = hard_alignment(hypothesis.attention, static_cast<int>(source.ids.size()) + 1,
                                      source_groups, target_groups);
  }
  return translation;
}

std::string format_translation(const LineTranslation& translation, std::int64_t id,
                               const BatchTranslatorOptions& options) {
  std::string text;
  const auto out = std::back_inserter(text);
  for (const Output& output : translation.outputs) {
    if (options.search.n_best) fmt::format_to(out, "{} ||| ", id);
    text += output.text;
    if (options.alignment != AlignmentKind::none)
      fmt::format_to(out, " ||| {}", pharaoh(output.alignment));
    if (options.search.n_best)
      fmt::format_to(out, " ||| F0= {:.6f} ||| {:.6f}", output.log_prob, output.score);
    text += '\n';
    if (!options.search.n_best) break;
  }
  return text;
}

}  // namespace nmt
