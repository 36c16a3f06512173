#include "app/train/tasks/translation_training.h"

#include "app/train/training_vocabularies.h"
#include "core/error.h"
#include "core/log.h"
#include "core/nlohmann.h"
#include "core/shell_word.h"
#include "data/pair_loader.h"
#include "model/architecture.h"
#include "text/noise.h"
#include "train/reporter.h"

#include <algorithm>
#include <map>

namespace nmt::app {
namespace {

using Json = nlohmann::ordered_json;
constexpr std::int64_t max_sampled =
    10000;  // pairs: less than a second of encoding; the standard error of a 1 % bin is 0.1 %

Json pairs_of(const std::map<std::int64_t, std::int64_t>& counts) {
  Json list = Json::array();
  for (const auto& [length, count] : counts) list.push_back({length, count});
  return list;
}

// Lengths in pieces of evenly spaced training pairs.
Json lengths(const TrainingText& text, const VocabularyPair& vocabularies) {
  const ParallelCorpus& corpus = *text.corpus;
  const std::int64_t step = (corpus.pairs() + max_sampled - 1) / max_sampled;
  std::map<std::int64_t, std::int64_t> counts[2];
  std::int64_t sampled = 0;
  std::string storage;
  for (std::int64_t i = 0; i < corpus.pairs(); i += step) {
    if (std::binary_search(text.excluded.begin(), text.excluded.end(), i)) continue;
    ++counts[0][std::ssize(vocabularies.source->encode(corpus.line(Side::source, i, storage)))];
    ++counts[1][std::ssize(vocabularies.target->encode(corpus.line(Side::target, i, storage)))];
    ++sampled;
  }
  return Json{{"pairs", sampled}, {"source", pairs_of(counts[0])}, {"target", pairs_of(counts[1])}};
}

std::int64_t documents(const TextFile& file) {
  std::int64_t count = 0;
  std::string storage;
  bool is_between = true;
  for (std::int64_t i = 0; i < file.lines(); ++i) {
    const bool is_end = is_blank(file.line(i, storage));
    if (is_between && !is_end) ++count;
    is_between = is_end;
  }
  return count;
}

// How many documents there are, and how much of the context fits, by evenly spaced pairs.
void log_context(const TrainingSpec& spec, const TrainingText& text,
                 const VocabularyPair& vocabularies) {
  const ParallelCorpus& corpus = *text.corpus;
  const TextFile& file = corpus.file(Side::source);
  PairLoader loader{corpus, *vocabularies.source, *vocabularies.target, spec.data};
  loader.context_sentences = spec.model.context_sentences;
  const std::int64_t step = (corpus.pairs() + max_sampled - 1) / max_sampled;
  std::int64_t sentences = 0, used = 0;
  for (std::int64_t i = 0; i < corpus.pairs(); i += step) {
    const EncodedPair pair = loader.encode(i, 0);
    if (pair.source.empty()) continue;
    sentences += i - file.context_begin(i, loader.context_sentences);
    used += std::count(pair.source.begin(), pair.source.end(), vocabularies.source->eos());
  }
  if (sentences == 0) {
    log::info("context: no sampled sentence has preceding sentences in its document; documents: {}",
              grouped(documents(file)));
    return;
  }
  const double percent = 100.0 * static_cast<double>(used) / static_cast<double>(sentences);
  log::info(
      "context: at most {} preceding source sentences; documents, separated by blank source lines: "
      "{}; {:.1f} % of the context sentences fit into max-length {}{}",
      loader.context_sentences, grouped(documents(file)), percent, spec.data.max_length,
      percent < 95 ? "; a larger max-length keeps more" : "");
}

// Guided alignment trains one head, which alignments then read.
void choose_alignment_head(TrainingSpec& spec, bool is_new, std::vector<train::Choice>& choices) {
  if (spec.model.attention == AttentionType::none)
    fail(ExitStatus::usage,
         "guided-alignment: a model of type {} with attention none has no attention to train; use "
         "another attention, or guided-alignment none",
         name_of(spec.model.type));
  if (spec.model.heads == 1 || spec.model.alignment_head > 0) return;
  if (spec.is_given("alignment-head"))
    fail(ExitStatus::usage,
         "alignment-head: 0 is the mean of {} heads, but guided-alignment trains one; give a head "
         "from 1 to {}",
         spec.model.heads, spec.model.heads);
  if (!is_new)
    fail(ExitStatus::usage,
         "guided-alignment: this training began without it, and its alignments are the mean of {} "
         "heads; go on with guided-alignment-weight=0, or {}",
         spec.model.heads, spec.start_anew);
  spec.model.alignment_head = 1;
  choices.push_back({"alignment-head", "1", "guided-alignment trains one head"});
}

// BpeDropout refuses such a vocabulary as well, but only once it has been trained.
void require_pieces_for_dropout(const TrainingSpec& spec) {
  const DataSpec& data = spec.data;
  if (spec.noise.bpe_dropout > 0 && data.vocabs.empty() && data.vocab_type == VocabularyKind::words)
    fail(ExitStatus::usage,
         "bpe-dropout {}: needs a vocabulary of byte-pair encoding, but vocab-type is words; "
         "bpe-dropout=0 trains without",
         spec.noise.bpe_dropout);
}

}  // namespace

void choose_settings(TrainingSpec& spec, bool is_new, const train::CorpusSize& size,
                     std::vector<train::Choice>& choices) {
  require_pieces_for_dropout(spec);
  if (spec.is_guided()) choose_alignment_head(spec, is_new, choices);
  if (is_new && !spec.unit_given() && train::choose_unit(size, spec.model))
    choices.push_back({"unit", spec.model.dec_cell, grouped(size.pairs) + " training pairs"});
  if (is_new && !spec.is_given("exponential-smoothing") &&
      train::choose_smoothing(size, spec.train))
    choices.push_back({"exponential-smoothing", fmt::format("{}", spec.train.exponential_smoothing),
                       "learn-rate is chosen too"});
  for (train::Choice& choice : train::choose(size, spec.model, spec.data, spec.train))
    choices.push_back(std::move(choice));
  for (train::Choice& choice : train::choose_noise(size, spec.data, spec.noise))
    choices.push_back(std::move(choice));
  if (is_new && !spec.ties_given() && train::choose_tying(spec.model, spec.data))
    choices.push_back({"tied-embeddings-all", "true", "one vocabulary for both sides"});
}

void TranslationTraining::read(TrainingSpec& spec, bool is_new, std::vector<train::Choice>& choices,
                               train::Communicator& ranks) {
  TranslationValidator::check(spec.train.valid_metrics);
  text_ = open_training_text(spec.data, spec.model.context_sentences, choices, ranks);
  choose_settings(spec, is_new, text_.size(), choices);
  if (spec.is_guided())
    text_.alignments = open_alignments(spec.data.guided_alignment, *text_.corpus, ranks);
}

void TranslationTraining::try_model(const TrainingSpec& spec) const {
  Model(spec.model, any_vocabulary, any_vocabulary, Context{}, spec.train.seed);
}

std::string TranslationTraining::batching_hash(const TrainingSpec& spec) const {
  const DataSpec& data = spec.data;
  const NoiseSpec& noise = spec.noise;
  return fmt::format(
      "{} without {} of {}; seed {}, max-length {}{}{}, mini-batch {}, mini-batch-words {}, "
      "maxi-batch {}{}{}",
      text_.corpus->identity().current, text_.excluded.size(), text_.corpus->pairs(), data.seed,
      data.max_length, data.max_length_unit == LengthUnit::words ? " words" : "",
      data.max_length_crop ? " cropped" : "", data.mini_batch, data.mini_batch_words,
      data.maxi_batch,
      TextNoise(noise, data.seed).any() ? fmt::format(", noise {} {} {} {}", noise.upper,
                                                      noise.title, noise.typos, noise.punctuation)
                                        : "",
      noise.bpe_dropout > 0 ? fmt::format(", bpe-dropout {}", noise.bpe_dropout) : "");
}

VocabularyPair TranslationTraining::make_vocabularies(const TrainingSpec& spec,
                                                      train::Heartbeat& heartbeat) {
  return app::make_vocabularies(spec.data, spec.noise, text_, heartbeat);
}

void TranslationTraining::make(const TrainingSpec& spec, const VocabularyPair& vocabularies,
                               TrainingDevice& device, const train::StopRequest& stop) {
  vocabularies_ = vocabularies;
  const Vocabulary &source = *vocabularies_.source, &target = *vocabularies_.target;
  train::Communicator& ranks = device.ranks();
  if (spec.model.context_sentences > 0 && device.is_rank_0())
    log_context(spec, text_, vocabularies_);
  model_.emplace(spec.model, source.size(), target.size(), device.context(), spec.train.seed);
  data_.emplace(
      *text_.corpus, source, target, spec.data, text_.excluded,
      RankSlice{ranks.rank(), ranks.size()},
      [&ranks](const Ids& mine) { return ranks.all_gather(mine); }, spec.noise,
      spec.model.context_sentences, text_.alignments.get());
  source_.emplace(*data_, spec.data);
  translations_.emplace(spec.model, spec.train.valid_metrics, spec.train.valid_max_sentences,
                        spec.search, source, target, text_.development, device.compute());
  translations_->stop_on(stop);
}

std::string TranslationTraining::summary(const TrainingSpec& spec) const {
  return fmt::format("{}, {} and {}", name_of(spec.model.type),
                     encoder_attends(spec.model) ? "self-attention" : spec.model.enc_cell,
                     spec.model.dec_cell);
}

void TranslationTraining::use_directory(const std::string& path) {
  translations_->keep_translations(path + "/development.json");
}

Json TranslationTraining::record(const TrainingSpec& spec) {
  const DataSpec& data = spec.data;
  return Json{{"data",
               {{"files", data.train_sets},
                {"pairs", text_.corpus->pairs()},
                {"held_out", std::ssize(text_.excluded)},
                {"development_files", data.valid_sets},
                {"development_pairs", std::ssize(text_.development.sources)},
                {"max_length", data.max_length},
                {"source_pieces", vocabularies_.source->size()},
                {"target_pieces", vocabularies_.target->size()},
                {"weights", model_->parameters().elements()}}},
              {"lengths", lengths(text_, vocabularies_)}};
}

std::string TranslationTraining::next_step(const std::string& directory) const {
  return fmt::format("translate with: nmt-translate -m {} < INPUT > OUTPUT", shell_word(directory));
}

}  // namespace nmt::app
