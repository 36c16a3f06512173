#include "app/train/tasks/labeled_examples.h"

#include "app/train/tasks/idle_options.h"
#include "core/error.h"
#include "core/number_text.h"

#include <algorithm>

namespace nmt::app {
namespace {

template <class Setting, class Value>
void choose(const char* name, Setting& setting, Value value, const std::string& why, Setting unset,
            std::vector<train::Choice>& choices) {
  if (setting != unset) return;
  setting = static_cast<Setting>(value);
  choices.push_back({name, fmt::format("{}", value), why});
}

}  // namespace

std::vector<std::string> idle_in_labeling(std::vector<std::string> more) {
  for (const char* name :
       {"dec-cell", "dec-depth", "dropout-readout", "tied-embeddings", "valid-metrics"})
    more.emplace_back(name);
  return idle_outside_translation(std::move(more));
}

std::int64_t held_out(DataSpec& data, std::int64_t all, const char* examples,
                      std::vector<train::Choice>& choices) {
  if (data.valid_lines <= 0) {
    data.valid_lines = train::held_out_pairs(all);
    choices.push_back({"valid-lines", fmt::format("{}", data.valid_lines),
                       fmt::format("no valid-sets; evenly spaced training {}", examples)});
  }
  if (data.valid_lines >= all)
    fail(ExitStatus::data, "valid-lines: {} of the {} {} of {} would leave none to train on",
         data.valid_lines, all, examples, data.train_sets[0]);
  return data.valid_lines;
}

void choose_model(TrainingSpec& spec, const LabelingSizes& sizes, const std::string& why,
                  std::vector<train::Choice>& choices) {
  ModelSpec& model = spec.model;
  choose("dim-emb", model.dim_emb, sizes.dim_emb, why, 0, choices);
  choose("dim-rnn", model.dim_rnn, sizes.dim_rnn, why, 0, choices);
  choose("enc-depth", model.enc_depth, 1, "usual", 0, choices);
  if (model.dec_depth == 0) model.dec_depth = 1;  // unused
  for (auto [name, dropout] :
       {std::pair{"dropout-emb", &model.dropout_emb}, {"dropout-rnn", &model.dropout_rnn}})
    choose(name, *dropout, 0.4, "usual", -1.0, choices);
  if (model.dropout_readout < 0) model.dropout_readout = 0;  // unused
  if (train::choose_positions(model, spec.data))
    choices.push_back({"positions", fmt::format("{}", model.positions), "max-length"});
  if (train::choose_gate_init(model))
    choices.push_back(
        {"gate-init", std::string(name_of(*model.gate_init)), "each unit's own constant"});
  choose("mini-batch-words", spec.data.mini_batch_words, sizes.mini_batch_words, why, 0, choices);
}

void choose_schedule(TrainingSpec& spec, std::int64_t examples, std::int64_t tokens,
                     std::vector<train::Choice>& choices) {
  TrainSpec& train = spec.train;
  const double batches = static_cast<double>(tokens) / spec.data.mini_batch_words;
  const auto updates =
      static_cast<std::int64_t>(train::updates_per_epoch(batches, examples, spec.data, train));
  const auto text = [&](const char* name, std::string& setting, const std::string& value,
                        const std::string& why) {
    choose(name, setting, value, why, std::string(), choices);
  };
  train::choose_learning_rate(train, 0.002, "usual", fmt::format("{}u", updates), "one epoch",
                              choices);
  text("valid-freq", train.valid_freq, "1e", "every epoch");
  train::choose_save_freq(train, "1e", "every epoch", choices);
  text("disp-freq", train.disp_freq, fmt::format("{}u", std::max<std::int64_t>(1, updates / 2)),
       fmt::format("an epoch is about {} updates", grouped(updates)));
  text("after", train.after, "20e", "early stopping mostly comes first");
}

}  // namespace nmt::app
