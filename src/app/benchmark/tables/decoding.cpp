#include "app/benchmark/tables/models.h"
#include "app/benchmark/tables/tables.h"
#include "config/precision.h"
#include "model/decoding/model_scorer.h"
#include "model/inventory.h"
#include "search/beam/device_search.h"
#include "search/beam/top_k.h"

#include <cmath>

#include <fmt/format.h>

namespace nmt::app::bench {
namespace {

constexpr std::int32_t bos = 1, eos = 2;
constexpr int max_steps = 100000;  // limit per row

// A search that never ends: at each step, every hypothesis is extended by a random symbol.
class Steps {
 public:
  Steps(Case& c, Model& model, int sentences, int beam, int length)
      : scorer_(model, bos, eos),
        beam_(beam),
        vocabulary_(model.target_vocabulary()),
        top_k_(c.bench().compute().cpu(), vocabulary_, beam, {}, eos) {
    options_.cpu = c.bench().compute().cpu();
    options_.beam_size = beam;
    options_.n_best = true;
    options_.max_length_offset = max_steps;
    Rng rng(5);
    for (int s = 0; s < sentences; ++s) {
      std::vector<std::int32_t>& source = sources_.emplace_back();
      for (int i = 0; i < length; ++i) source.push_back(random_symbol(rng));
    }
    rewind();
  }

  void rewind() {
    search_ = nullptr;
    decoding_ = scorer_.begin(sources_, false);
    if (const Context* device = decoding_->device()) {
      search_ =
          std::make_unique<DeviceSearch>(*device, *decoding_, vocabulary_, sources_, options_);
      search_->step();
      return;
    }
    parents_.clear();
    for (int s = 0; s < static_cast<int>(sources_.size()); ++s) parents_.push_back(s);
    tokens_.assign(parents_.size(), bos);
    advance();
    parents_.clear();
    for (int s = 0; s < static_cast<int>(sources_.size()); ++s)
      parents_.insert(parents_.end(), static_cast<std::size_t>(beam_), s);
    Rng rng(6);
    tokens_.clear();
    for (std::size_t i = 0; i < parents_.size(); ++i) tokens_.push_back(random_symbol(rng));
    advance();
    for (std::size_t i = 0; i < parents_.size(); ++i) parents_[i] = static_cast<std::int32_t>(i);
  }

  // A step of beam search: the decoder, the scores of all hypotheses, the best extensions of each;
  // on a device also the selection, without synchronization.
  void step() {
    if (search_) return search_->step();
    const DecodingStep step = advance();
    top_k_.select(*decoding_, step);
  }

  // log p of a random translation of each source, step by step.
  double forced(const std::vector<Ids>& targets) {
    search_ = nullptr;
    decoding_ = scorer_.begin(sources_, false);
    parents_.clear();
    for (int s = 0; s < static_cast<int>(sources_.size()); ++s) parents_.push_back(s);
    tokens_.assign(parents_.size(), bos);
    double sum = 0;
    for (std::size_t t = 0; t <= targets[0].size(); ++t) {
      const DecodingStep step = advance();
      std::vector<std::int32_t> symbols;
      for (const Ids& target : targets) symbols.push_back(t < target.size() ? target[t] : eos);
      for (const float log_prob : TokenScores(*decoding_, step, vocabulary_, symbols).read())
        sum += log_prob;
      tokens_ = symbols;
    }
    return sum;
  }
  const std::vector<std::vector<std::int32_t>>& sources() const { return sources_; }

 private:
  std::int32_t random_symbol(Rng& rng) const {
    return static_cast<std::int32_t>(3 + rng.below(static_cast<std::uint64_t>(vocabulary_ - 3)));
  }
  DecodingStep advance() { return decoding_->advance(parents_, tokens_); }

  ModelScorer scorer_;
  int beam_, vocabulary_;
  TopK top_k_;
  std::vector<std::vector<std::int32_t>> sources_;
  std::unique_ptr<Decoding> decoding_;
  std::vector<std::int32_t> parents_, tokens_;
  SearchOptions options_;
  std::unique_ptr<DeviceSearch> search_;  // on a device
};

// Bytes of a packed weight.
int stored_bytes(Precision precision) {
  return precision == Precision::int8 ? 1 : precision == Precision::bfloat16 ? 2 : 4;
}

// Checks with a narrow model of the same kind that the scores of single steps add up to the score
// of one pass over the whole target.
void check(Case& c, const ModelCase& what, Precision precision) {
  ModelCase small = what;
  small.spec.dim_emb = small.spec.dim_rnn = 16;
  small.vocabulary = 40;
  const Context context = c.context();
  Model plain(small.spec, small.vocabulary, small.vocabulary, context, 1),
      frozen(small.spec, small.vocabulary, small.vocabulary, context, 1);
  frozen.freeze();
  Steps steps(c, frozen, 3, 1, 5);
  std::vector<Ids> targets;
  std::vector<const Ids*> source_rows, target_rows;
  Rng rng(7);
  for (std::size_t s = 0; s < 3; ++s) {
    Ids& target = targets.emplace_back();
    for (int t = 0; t < 4; ++t) target.push_back(static_cast<std::int32_t>(3 + rng.below(37)));
  }
  for (std::size_t s = 0; s < 3; ++s) {
    source_rows.push_back(&steps.sources()[s]);
    target_rows.push_back(&targets[s]);
  }
  const double whole =
      -plain.evaluate(make_batch(source_rows, target_rows, bos, eos)).cross_entropy;
  c.compare("the log probability", steps.forced(targets), whole, whole,
            precision == Precision::float32 ? 1e-5 : 2e-2);
}

struct Search {
  int batch, beam;
};

}  // namespace

void decoding(Bench& bench) {
  const bool quick = bench.options().quick;
  const Precision precision = bench.options().compute.precision.value();
  std::vector<ModelCase> models{small_model("gru", AttentionQuery::recurrent),
                                small_model("lrn", AttentionQuery::recurrent), deep_model("olrn"),
                                gnmt_model("lstm")};
  std::vector<Search> searches{{1, 1}, {1, 4}, {32, 1}, {32, 4}, {128, 1}, {128, 4}};
  if (quick) models = {tiny_model("gru")}, searches = {{1, 1}, {3, 2}};
  for (const ModelCase& what : models) {
    const auto row = [&](const Search& s) {
      return fmt::format("{} {} batch {} beam {}", what.name, name_of(precision), s.batch, s.beam);
    };
    for (const Search& s : searches)
      bench.row("decoding", row(s), [&](Case& c) {
        check(c, what, precision);
        Model model(what.spec, what.vocabulary, what.vocabulary, c.context(), 1);
        const Inventory inventory = take_inventory(model);
        const double products = static_cast<double>(inventory.products("target token")),
                     rows = s.batch * s.beam;
        model.freeze();
        Steps steps(c, model, s.batch, s.beam, quick ? 5 : 25);
        // Each step reads all matrices once, for any number of rows; at batch size 1 this
        // dominates.
        c.work(2 * products * rows, products * static_cast<double>(stored_bytes(precision)),
               Traffic::read);
        const double seconds = c.time([&] { steps.step(); });
        c.time_without_graphs([&] { steps.step(); });
        c.show_profiler([&] { steps.step(); });
        c.extra("hypotheses' tokens/s", rows / seconds);
        c.extra("sentences' tokens/s", s.batch / seconds);
        c.extra("weights, MB", 1e-6 * products * static_cast<double>(stored_bytes(precision)));
      });
  }
}

}  // namespace nmt::app::bench
