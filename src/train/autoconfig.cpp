#include "train/autoconfig.h"

#include "config/fields.h"
#include "config/period.h"
#include "model/architecture.h"
#include "model/check.h"
#include "model/encoder.h"
#include "train/optimization/optimizer.h"
#include "train/reporter.h"

#include <algorithm>
#include <cmath>

namespace nmt::train {
namespace {

struct Row {
  std::int64_t below;  // pairs
  int width, depth, vocabulary, words;
  double dropout, learn_rate;
  int warmup, epochs;
};

// Up to 500,000 pairs, as measured on CPUs (docs/benchmarks/results.md).
constexpr Row rows[] = {
    {5'000, 128, 1, 1'000, 1'024, 0.2, 0.003, 100, 60},
    {20'000, 256, 1, 4'000, 1'024, 0.3, 0.004, 200, 60},
    {100'000, 256, 2, 8'000, 1'280, 0.25, 0.004, 400, 60},
    {small_corpus_pairs, 256, 2, 8'000, 1'280, 0.2, 0.004, 1'000, 20},
    {2'000'000, 512, 3, 24'000, 8'192, 0.1, 0.001, 4'000, 10},
    {-1, 1024, 4, 32'000, 16'384, 0.1, 0.0005, 8'000, 5},
};

const Row& row_of(std::int64_t pairs) {
  for (const Row& row : rows)
    if (row.below < 0 || pairs < row.below) return row;
  return rows[std::size(rows) - 1];
}

}  // namespace

std::int64_t held_out_pairs(std::int64_t pairs) {
  return std::min({std::max<std::int64_t>(pairs / 20, 10), std::max<std::int64_t>(pairs / 2, 1),
                   std::int64_t{1000}});
}

bool choose_positions(ModelSpec& model, int usual) {
  const std::vector<std::string> units = units_of(model);
  const bool has_some = std::any_of(units.begin(), units.end(), [&](const std::string& unit) {
    return unit_settings(model, unit).unit->position_vectors > 0;
  });
  if (model.positions != 0 || !has_some) return false;
  model.positions = usual;
  return true;
}

bool choose_positions(ModelSpec& model, const DataSpec& data) {
  // The windows of a language model continue a text, so that their steps have no position in a
  // sentence: rows that only the first window reads would hardly be trained.
  const bool reads_windows = model.task == Task::language_model;
  return choose_positions(model, reads_windows ? 1 : data.max_length);
}

bool choose_unit(const CorpusSize& size, ModelSpec& model) {
  const ModelSpec fresh;
  if (size.pairs >= small_corpus_pairs || architecture_of(model).has_blocks() ||
      model.enc_cell != fresh.enc_cell || model.dec_cell != fresh.dec_cell)
    return false;
  model.enc_cell = model.dec_cell = small_corpus_unit;
  return true;
}

bool choose_tying(ModelSpec& model, const DataSpec& data) {
  if (model.tied_embeddings_all || !config::one_vocabulary(data)) return false;
  model.tied_embeddings_all = true;
  return true;
}

bool choose_smoothing(const CorpusSize& size, TrainSpec& train) {
  if (train.learn_rate != 0 || train.average_after > 0 || train.exponential_smoothing != 0)
    return false;
  // Over at most some epochs of a small corpus; Marian's usual value for a large one.
  train.exponential_smoothing = size.pairs < small_corpus_pairs ? 0.001 : 0.0001;
  return true;
}

void choose_learning_rate(TrainSpec& train, double usual, const std::string& why,
                          const std::string& warmup, const std::string& warmup_why,
                          std::vector<Choice>& choices) {
  const std::string rule(name_of(train.optimizer));
  const std::optional<double> own = Optimizer::usual_rate(train.optimizer);
  // The rate of RNMT+ rises to N times what it starts at.
  const bool is_rnmt = train.schedule == RateSchedule::rnmt;
  const bool rises = is_rnmt && !train.rnmt_schedule.empty() && train.rnmt_schedule.front() >= 1;
  if (train.learn_rate == 0) {
    train.learn_rate = own.value_or(usual) / (rises ? train.rnmt_schedule.front() : 1);
    choices.push_back(
        {"learn-rate", fmt::format("{}", train.learn_rate), own ? "usual with " + rule : why});
  }
  if (!train.lr_warmup.empty() || (is_rnmt && !own)) return;
  train.lr_warmup = own ? "0u" : warmup;
  choices.push_back({"lr-warmup", train.lr_warmup, own ? rule + " needs none" : warmup_why});
}

double updates_per_epoch(double batches, std::int64_t examples, const DataSpec& data,
                         const TrainSpec& train) {
  if (data.mini_batch > 0)
    batches = std::max(batches, static_cast<double>(examples) / data.mini_batch);
  return std::max(1.0, batches / std::max(1, train.optimizer_delay));
}

void choose_save_freq(TrainSpec& train, const std::string& usual, const std::string& why,
                      std::vector<Choice>& choices) {
  if (!train.save_freq.empty()) return;
  const bool validates{parse_period(train.valid_freq, "valid-freq")};
  train.save_freq = validates ? train.valid_freq : usual;
  choices.push_back({"save-freq", train.save_freq, validates ? "with every validation" : why});
}

bool choose_attention_query(ModelSpec& model) {
  if (model.attention_query || model.attention == AttentionType::none) return false;
  model.attention_query =
      queries_recurrently(model) ? AttentionQuery::recurrent : AttentionQuery::first_layer;
  return true;
}

// Whether the unit, not the architecture, decides the attention query.
bool by_unit(const ModelSpec& model) {
  return architecture_of(model).conditional_by_default && !queries_recurrently(model);
}

bool choose_gate_init(ModelSpec& model) {
  if (model.gate_init) return false;
  model.gate_init = usual_gate_init;
  const std::vector<std::string> units = units_of(model);
  return std::ranges::any_of(units, [&](const std::string& unit) {
    return !unit_settings(model, unit).unit->gate_biases.empty();
  });
}

bool choose_embedding_scale(ModelSpec& model) {
  if (model.block.embedding_scale || !architecture_of(model).has_blocks()) return false;
  model.block.embedding_scale = EmbeddingScale::sqrt;
  return true;
}

std::vector<Choice> choose_noise(const CorpusSize& size, const DataSpec& data, NoiseSpec& noise) {
  const bool in_words = data.vocabs.empty() && data.vocab_type == VocabularyKind::words;
  const bool is_usual = !in_words && size.pairs >= small_corpus_pairs;
  const NoiseSpec rates = is_usual ? usual_noise : NoiseSpec{0, 0, 0, 0};
  std::vector<Choice> choices;
  const auto choose = [&](const char* name, double& rate, double value) {
    if (rate >= 0) return;
    rate = value;
    if (value > 0)
      choices.push_back({name, fmt::format("{}", value), grouped(size.pairs) + " training pairs"});
  };
  choose("noise-upper", noise.upper, rates.upper);
  choose("noise-title", noise.title, rates.title);
  choose("noise-typos", noise.typos, rates.typos);
  choose("noise-punctuation", noise.punctuation, rates.punctuation);
  choose("bpe-dropout", noise.bpe_dropout, 0);
  return choices;
}

std::vector<Choice> choose(const CorpusSize& size, ModelSpec& model, DataSpec& data,
                           TrainSpec& train) {
  std::vector<Choice> choices;
  const Row& row = row_of(size.pairs);
  const std::string by_size = grouped(size.pairs) + " training pairs";
  const auto number = [&](const char* name, auto& setting, auto value, const std::string& why) {
    if (setting != 0) return;
    setting = value;
    choices.push_back({name, fmt::format("{}", value), why});
  };
  const auto text = [&](const char* name, std::string& setting, const std::string& value,
                        const std::string& why) {
    if (!setting.empty()) return;
    setting = value;
    choices.push_back({name, value, why});
  };

  number("dim-emb", model.dim_emb, row.width, by_size);
  number("dim-rnn", model.dim_rnn, row.width, by_size);
  const std::string type = fmt::format("type {}", name_of(model.type));
  if (choose_positions(model, data))
    choices.push_back({"positions", fmt::format("{}", model.positions), "max-length"});
  if (choose_attention_query(model))
    choices.push_back({"attention-query", std::string(name_of(*model.attention_query)),
                       by_unit(model) ? "unit " + model.dec_cell : type});
  if (choose_gate_init(model))
    choices.push_back(
        {"gate-init", std::string(name_of(*model.gate_init)), "each unit's own constant"});
  if (choose_embedding_scale(model))
    choices.push_back(
        {"embedding-scale", std::string(name_of(*model.block.embedding_scale)), type});
  const LayerLimits limits = architecture_of(model).common_layers();
  const int depth = std::clamp(row.depth, limits.min, limits.max);
  const std::string why = depth == row.depth ? by_size : type;
  number("enc-depth", model.enc_depth, depth, why);
  number("dec-depth", model.dec_depth, depth, why);
  if (data.dim_vocabs.empty() && data.vocabs.empty()) {
    data.dim_vocabs = {row.vocabulary};
    choices.push_back({"dim-vocabs", fmt::format("{}", row.vocabulary), by_size});
  }
  for (auto [name, dropout] : {std::pair{"dropout-emb", &model.dropout_emb},
                               {"dropout-rnn", &model.dropout_rnn},
                               {"dropout-readout", &model.dropout_readout}}) {
    if (*dropout >= 0) continue;
    *dropout = row.dropout;
    choices.push_back({name, fmt::format("{}", row.dropout), by_size});
  }
  number("mini-batch-words", data.mini_batch_words, row.words, by_size);

  const double tokens_a_piece =
      4.5;  // bytes a piece of 8,000 joint pieces: 4.2 in German, 4.6 in English captions
  const double labels =
      static_cast<double>(size.target_bytes) / tokens_a_piece + static_cast<double>(size.pairs);
  const double updates =
      updates_per_epoch(labels / (0.9 * data.mini_batch_words), size.pairs, data, train);
  const std::string by_epoch =
      fmt::format("an epoch is about {} updates", grouped(std::llround(updates)));
  choose_learning_rate(train, row.learn_rate, by_size, fmt::format("{}u", row.warmup), by_epoch,
                       choices);
  const auto validation =
      static_cast<std::int64_t>(std::clamp(std::round(updates / 10) * 10, 100.0, 2500.0));
  const std::string usual_period = fmt::format("{}u", validation);
  text("valid-freq", train.valid_freq, usual_period, by_epoch);
  choose_save_freq(train, usual_period, by_epoch, choices);
  text("disp-freq", train.disp_freq, fmt::format("{}u", validation / 5), by_epoch);
  if (train.after.empty())
    text("after", train.after, fmt::format("{}e", row.epochs), "early stopping mostly comes first");
  return choices;
}

}  // namespace nmt::train
