#pragma once

#include "app/models/open_models.h"
#include "app/translate/translate_spec.h"
#include "search/batch_translator.h"
#include "search/beam/shortlist.h"
#include "search/text/text_translator.h"

#include <algorithm>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>

namespace nmt::app {

/// A translator, with its device, models, vocabularies, shortlist and workers. Not thread-safe.
class OpenTranslator {
 public:
  /// `title` begins the first log line. File names in the spec are ignored; translate() uses them.
  /// `models`: loaded before with the same models, compute settings and maximum length; null: loads
  /// them. Errors: as check(TranslateSpec), OpenModels and Shortlist::load.
  explicit OpenTranslator(const TranslateSpec& spec, const std::string& title = "nmt",
                          std::shared_ptr<OpenModels> models = nullptr);
  OpenTranslator(const OpenTranslator&) = delete;
  OpenTranslator& operator=(const OpenTranslator&) = delete;

  /// For lines in memory (translate()) and for streams of lines (translate_stream), with the rules
  /// for text and, where it asks for them, the n-best lists of the spec.
  LineTranslator& translator() { return wants_lists_ ? n_best() : *whole_.best; }
  /// The same with n-best lists of up to beam_size hypotheses, whose best is that of translator().
  LineTranslator& n_best() { return *whole_.lists; }
  const BatchTranslator::Statistics& statistics() const {
    return (wants_lists_ ? whole_.n_best : whole_.plain)->statistics();
  }

  /// Translators for several threads, without lists: each lane is one worker. Lanes may be used at
  /// a time, but not with translator() and n_best(). Without workers, translator() and n_best() are
  /// the only lane.
  int lanes() const { return std::max(1, static_cast<int>(lanes_.size())); }
  LineTranslator& translator(int lane) { return *lane_at(lane).best; }
  LineTranslator& n_best(int lane) { return *lane_at(lane).lists; }
  /// n_best(lane) with word alignments, which hypotheses that the text rules change lack.
  LineTranslator& aligned(int lane) { return *lane_at(lane).aligned_lists; }
  /// Frees idle memory of a lane if it holds much more than its largest batch needed: the sizes of
  /// batches differ, and free chunks of one do not fit the tensors of the next.
  void trim(int lane);

  const TextTranslator::Statistics& text_statistics() const { return text_statistics_; }
  /// Called after each batch with its number of sentences, by one thread at a time.
  void on_batch(std::function<void(std::int64_t sentences)> listener) {
    on_batch_ = std::move(listener);
  }
  Inference& inference() { return models_->inference; }
  const std::shared_ptr<OpenModels>& models() const { return models_; }

 private:
  struct Lane {
    std::optional<BatchTranslator> plain, n_best, aligned;
    std::optional<TextTranslator> ruled_plain, ruled_n_best, ruled_aligned;
    LineTranslator* best = nullptr;
    LineTranslator* lists = nullptr;
    LineTranslator* aligned_lists = nullptr;
  };
  void load_shortlist(const TranslateSpec& spec);
  void open(Lane& lane, StepScorer& scorer, BatchTranslatorOptions options);
  Lane& lane_at(int lane) {
    return lanes_.empty() ? whole_ : lanes_[static_cast<std::size_t>(lane)];
  }

  bool wants_lists_;
  TextRules rules_;
  std::shared_ptr<OpenModels> models_;
  std::shared_ptr<const Shortlist> shortlist_;  // null: none
  std::function<void(std::int64_t)> on_batch_;
  TextTranslator::Statistics text_statistics_;
  Lane whole_;  // all workers
  std::deque<Lane> lanes_;
};

struct TranslateResult {
  std::int64_t lines = 0;  ///< read and written
  BatchTranslator::Statistics statistics;
  std::int64_t in_parts = 0, replaced = 0, cut = 0;  ///< lines: TextTranslator::Statistics
};

/// Translates the lines of spec.input or spec.text to spec.output and logs progress and speed. If
/// the input is a pipe or terminal, translations are flushed before it waits for more lines.
/// Errors: as OpenTranslator, LineInput, LineWriter and translate_stream; invalid file names are
/// reported before a model is loaded.
TranslateResult translate(const TranslateSpec& spec);

}  // namespace nmt::app
