#include "app/train/validation.h"

#include "app/compute/workers.h"
#include "core/error.h"
#include "core/files/file.h"
#include "core/log.h"
#include "core/nlohmann.h"
#include "core/number_text.h"
#include "eval/bleu.h"
#include "eval/chrf.h"
#include "model/decoding/model_scorer.h"
#include "search/batch_translator.h"
#include "search/source_encoder.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <limits>
#include <mutex>
#include <numeric>
#include <optional>
#include <tuple>
#include <utility>

namespace nmt::app {
namespace {

constexpr int batch_tokens = 2048;  // padded target tokens of a cross-entropy batch
constexpr std::size_t longest = 1000;

// Batches, the longest first, so that the first one needs the most memory, and the number of
// cropped sides of pairs.
std::pair<std::vector<Batch>, std::int64_t> make_batches(const DevelopmentSet& set,
                                                         const Vocabulary& source,
                                                         const Vocabulary& target,
                                                         int context_sentences, ThreadPool& pool) {
  std::vector<Ids> sources, targets;
  std::int64_t cropped = 0;
  std::vector<EncodedSource> encoded =
      SourceEncoder(source, context_sentences, static_cast<int>(longest), false)
          .encode(set.sources, set.contexts, pool);
  for (std::size_t i = 0; i < set.sources.size(); ++i) {
    Ids t = target.encode(set.references[i]);
    if (encoded[i].source.ids.empty() || t.empty()) continue;
    for (const std::size_t tokens : {encoded[i].tokens, t.size()}) cropped += tokens > longest;
    t.resize(std::min(t.size(), longest));
    sources.push_back(std::move(encoded[i].source.ids));
    targets.push_back(std::move(t));
  }
  std::vector<std::size_t> order(sources.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  const auto size = [&](std::size_t i) { return std::max(sources[i].size(), targets[i].size()); };
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return size(a) > size(b); });
  std::vector<Batch> batches;
  for (std::size_t begin = 0; begin < order.size();) {
    const std::size_t count =
        std::clamp<std::size_t>(batch_tokens / (size(order[begin]) + 1), 1, order.size() - begin);
    std::vector<const Ids*> s, t;
    for (std::size_t i = begin; i < begin + count; ++i) {
      s.push_back(&sources[order[i]]);
      t.push_back(&targets[order[i]]);
    }
    batches.push_back(make_batch(s, t, target.bos(), target.eos()));
    begin += count;
  }
  return {std::move(batches), cropped};
}

std::string parent_of(const std::string& path) {
  return std::filesystem::path(path).parent_path().string();
}

}  // namespace

// A copy of the model with its own memory, so that the training arena is not affected, and workers
// that share its weights once it is frozen.
struct TranslationValidator::Copy {
  Copy(const ModelSpec& spec, int source_size, int target_size, Compute& compute)
      : arena(compute.new_arena()),
        context(compute.context(*arena)),
        model(std::make_unique<Model>(spec, source_size, target_size, context, 0,
                                      Model::Weights::unset)) {}
  void freeze(Compute& compute, const Vocabulary& target) {
    if (workers) return;
    model->freeze();
    scorer.emplace(*model, target.bos(), target.eos());
    workers.emplace(compute, [this, &target](const Context& own) {
      return std::make_shared<ModelScorer>(*model, own, target.bos(), target.eos());
    });
  }
  std::unique_ptr<Arena> arena;
  Context context;
  std::unique_ptr<Model> model;
  std::optional<ModelScorer> scorer;
  std::optional<Workers> workers;
};

void TranslationValidator::check(const std::vector<ValidMetric>& metrics) {
  if (metrics.empty())
    fail(ExitStatus::usage,
         "valid-metrics: none given, expected at least one of bleu, chrf, cross-entropy, "
         "perplexity");
}

TranslationValidator::TranslationValidator(const ModelSpec& model,
                                           const std::vector<ValidMetric>& metrics,
                                           std::int64_t max_sentences, const SearchSpec& search,
                                           const Vocabulary& source, const Vocabulary& target,
                                           DevelopmentSet set, Compute& compute)
    : model_(model),
      metrics_(metrics),
      search_(search),
      source_(source),
      target_(target),
      set_(std::move(set)),
      compute_(compute) {
  check(metrics_);
  if (max_sentences < 0)
    fail(ExitStatus::usage, "valid-max-sentences: {} is below 0", max_sentences);
  NMT_CHECK(set_.sources.size() == set_.references.size(),
            "a development set of {} sources and {} references", set_.sources.size(),
            set_.references.size());
  NMT_CHECK(set_.contexts.size() == (model.context_sentences > 0 ? set_.sources.size() : 0),
            "a development set of {} sources and {} contexts", set_.sources.size(),
            set_.contexts.size());
  const std::size_t decode =
      max_sentences > 0 ? std::min(set_.sources.size(), static_cast<std::size_t>(max_sentences))
                        : set_.sources.size();
  decoded_ = set_;
  decoded_.sources.resize(decode);
  decoded_.references.resize(decode);
  if (!decoded_.contexts.empty()) decoded_.contexts.resize(decode);
  std::tie(batches_, cropped_sides_) =
      make_batches(set_, source_, target_, model.context_sentences, compute.pool());
  if (batches_.empty())
    fail(ExitStatus::data, "{} and {}: the development set has no pair with text on both sides",
         set_.source_file, set_.reference_file);
}

TranslationValidator::~TranslationValidator() = default;

void TranslationValidator::leave_if_stopped() const {
  if (stop_.pending() != ExitStatus::ok) throw train::Interrupted{};
}

bool TranslationValidator::wants(ValidMetric a, ValidMetric b) const {
  return std::any_of(metrics_.begin(), metrics_.end(),
                     [&](ValidMetric m) { return m == a || m == b; });
}

std::unique_ptr<TranslationValidator::Copy> TranslationValidator::copy(
    const train::CopyWeights& weights) const {
  auto copy = std::make_unique<Copy>(model_, source_.size(), target_.size(), compute_);
  weights(copy->model->parameters());
  return copy;
}

double TranslationValidator::cross_entropy(Copy& copy, std::span<const Batch> batches) const {
  // Workers share frozen weights in host memory; a single worker computes the same with them.
  if (copy.context.backend->host_memory) copy.freeze(compute_, target_);
  std::vector<BatchLoss> losses(batches.size());
  std::mutex one_at_a_time;  // asks whether to stop
  const auto evaluate = [&](const Worker& worker, std::size_t i) {
    {
      const std::lock_guard lock(one_at_a_time);
      leave_if_stopped();
    }
    auto* const scorer = static_cast<ModelScorer*>(worker.scorer);  // of Copy::freeze()
    losses[i] = (scorer ? scorer->model() : *copy.model).evaluate(batches[i]);
  };
  (copy.workers ? copy.workers->crew() : Crew{})
      .run({nullptr, copy.context.cpu}, batches.size(), evaluate);
  double sum = 0;
  std::int64_t tokens = 0;
  for (const BatchLoss& loss : losses) {
    sum += loss.cross_entropy;
    tokens += loss.tokens;
  }
  return sum / static_cast<double>(tokens);
}

std::vector<std::string> TranslationValidator::translate(
    Copy& copy, std::span<const std::string> lines,
    std::span<const ContextSentences> contexts) const {
  copy.freeze(compute_, target_);
  BatchTranslatorOptions options = translator_options(search_, copy.context.cpu);
  options.on_batch = [this](std::int64_t) { leave_if_stopped(); };
  options.warn_crops = false;
  options.batching.option = "valid-mini-batch";
  options.crew = copy.workers->crew();
  options.context_sentences = model_.context_sentences;
  BatchTranslator translator(*copy.scorer, source_, target_, options);
  std::vector<std::string> texts;
  texts.reserve(lines.size());
  const std::size_t window = translator.window();
  for (std::size_t begin = 0; begin < lines.size(); begin += window) {
    const std::size_t count = std::min(window, lines.size() - begin);
    for (LineTranslation& t :
         translator.translate(lines.subspan(begin, count), static_cast<std::int64_t>(begin) + 1,
                              contexts.empty() ? contexts : contexts.subspan(begin, count)))
      texts.push_back(std::move(t.outputs.at(0).text));
  }
  return texts;
}

train::ValidationResult TranslationValidator::validate(const train::CopyWeights& weights,
                                                       const Progress& progress) {
  const auto model = copy(weights);
  double entropy = 0;
  std::optional<std::vector<std::string>> texts;  // none: the model cannot translate
  warn_of_crops();
  if (wants(ValidMetric::cross_entropy, ValidMetric::perplexity))
    entropy = cross_entropy(*model, batches_);
  if (wants(ValidMetric::bleu, ValidMetric::chrf)) {
    try {
      texts = translate(*model, decoded_.sources, decoded_.contexts);
      keep(*texts, progress.updates);
    } catch (const ScoreNotFinite& error) {
      log::warn("validation: {}", error.what());
    }
  }
  const auto of_texts = [&](const auto& score) {
    return texts ? score(*texts) : std::numeric_limits<double>::quiet_NaN();
  };
  train::ValidationResult result;
  for (const ValidMetric metric : metrics_) {
    const auto add = [&](double value, bool higher_is_better) {
      result.push_back({std::string(name_of(metric)), value, higher_is_better});
    };
    switch (metric) {
      case ValidMetric::bleu:
        add(of_texts([&](const auto& t) { return corpus_bleu(t, decoded_.references).score; }),
            true);
        break;
      case ValidMetric::chrf:
        add(of_texts([&](const auto& t) { return corpus_chrf(t, decoded_.references); }), true);
        break;
      case ValidMetric::cross_entropy: add(entropy, false); break;
      case ValidMetric::perplexity: add(std::exp(entropy), false); break;
    }
  }
  return result;
}

// Once, as all validations read the same lines.
void TranslationValidator::warn_of_crops() {
  if (std::exchange(crops_warned_, true)) return;
  if (cropped_sides_ > 0 && wants(ValidMetric::cross_entropy, ValidMetric::perplexity))
    log::warn(
        "{}: the development pairs have {} of more than {} tokens; the cross-entropy of "
        "validations is that of the first {}",
        set_.source_file, counted(cropped_sides_, "side"), longest, longest);
  if (wants(ValidMetric::bleu, ValidMetric::chrf)) warn_of_cropped_translations();
}

void TranslationValidator::warn_of_cropped_translations() const {
  const std::vector<EncodedSource> encoded =
      SourceEncoder(source_, model_.context_sentences, search_.max_length, false)
          .encode(decoded_.sources, decoded_.contexts, compute_.pool());
  const auto is_cropped = [&](const EncodedSource& line) {
    return line.tokens > static_cast<std::size_t>(search_.max_length);
  };
  const auto first = std::find_if(encoded.begin(), encoded.end(), is_cropped);
  if (first == encoded.end()) return;
  const auto i = static_cast<std::size_t>(first - encoded.begin());
  log::warn(
      "{}: {} of {} lines have more than {} tokens, the first is line {}; validations translate "
      "only the first {} tokens (--valid-max-length)",
      set_.source_file, std::count_if(first, encoded.end(), is_cropped), encoded.size(),
      search_.max_length, set_.lines.empty() ? static_cast<std::int64_t>(i) + 1 : set_.lines[i],
      search_.max_length);
}

void TranslationValidator::keep_translations(std::string path) {
  path_ = std::move(path);
  directory_ = identity_of(parent_of(path_));
}

void TranslationValidator::keep(const std::vector<std::string>& outputs, std::int64_t updates) {
  if (path_.empty()) return;
  // Where another directory has the path of the model, the next save reports it.
  if (identity_of(parent_of(path_)) != directory_) return;
  try {
    write_file(path_, development_json(updates, decoded_, outputs));
  } catch (const Error& error) {
    log::warn("{}; training continues without it", error.what());
    path_.clear();
  }
}

std::size_t TranslationValidator::longest_sentence() const {
  const std::vector<EncodedSource> encoded =
      SourceEncoder(source_, model_.context_sentences, search_.max_length, false)
          .encode(set_.sources, set_.contexts, compute_.pool());
  const auto longest = std::max_element(
      encoded.begin(), encoded.end(),
      [](const auto& a, const auto& b) { return a.source.ids.size() < b.source.ids.size(); });
  return static_cast<std::size_t>(longest - encoded.begin());
}

void TranslationValidator::dry_run(const train::CopyWeights& weights) {
  const auto model = copy(weights);
  warn_of_crops();
  // As many of the largest batches as are evaluated at a time.
  const std::size_t workers = compute_.cuda() ? 1 : static_cast<std::size_t>(compute_.workers());
  cross_entropy(*model, std::span(batches_).first(std::min(batches_.size(), workers)));
  if (!wants(ValidMetric::bleu, ValidMetric::chrf)) return;
  const std::size_t longest_line = longest_sentence();
  const std::span<const ContextSentences> contexts = set_.contexts;
  translate(*model, std::span(set_.sources).subspan(longest_line, 1),
            contexts.empty() ? contexts : contexts.subspan(longest_line, 1));
}

std::string development_json(std::int64_t updates, const DevelopmentSet& set,
                             const std::vector<std::string>& outputs) {
  nlohmann::ordered_json json{{"updates", updates},
                              {"sources", set.sources},
                              {"references", set.references},
                              {"outputs", outputs}};
  if (!set.contexts.empty()) json["contexts"] = set.contexts;
  return json.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

}  // namespace nmt::app
