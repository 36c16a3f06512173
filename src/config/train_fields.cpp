#include "config/fields.h"

namespace nmt::config {
namespace {

Option period(const char* name, std::string* member, const char* help) {
  return Option(name, member, help).with_form(Form::period).meta("N[KMG][u|e|t]");
}

void append(std::vector<Option>& options, std::vector<Option> more) {
  for (Option& option : more) options.push_back(std::move(option));
}

std::vector<Option> list(TrainSpec& s) {
  std::vector<Option> options = in_group(
      "model", {
                   Option("model", &s.model,
                          "the model directory; a training goes on where one has been left")
                       .alias({"m"})
                       .meta("DIR"),
               });
  append(options, in_group("batch", {
                                        Option("optimizer-delay", &s.optimizer_delay,
                                               "batches whose gradients make one update")
                                            .range(1, 100000),
                                    }));
  append(
      options,
      in_group(
          "optimizer",
          {
              Option("optimizer", &s.optimizer, "update rule").alias({"o"}),
              Option("optimizer-params", &s.optimizer_params,
                     "numbers of the update rule, each with its value when not given. adam: beta1 "
                     "0.9, beta2 0.98, epsilon "
                     "1e-9; adamw: these and weight decay 0.01; adadelta: rho 0.95, epsilon 1e-6; "
                     "adagrad: epsilon "
                     "1e-8; sgd: momentum 0")
                  .range(0)
                  .meta("X..."),
              Option("learn-rate", &s.learn_rate,
                     "highest learning rate; when not set 1 for adadelta and sgd, 0.05 for adagrad")
                  .alias({"l", "lr"})
                  .range(1e-12, 100)
                  .chosen_by_default(),
              Option("schedule", &s.schedule,
                     "how the rate goes on after the warm-up: with the inverse square root, as in "
                     "RNMT+, or as it is"),
              period("lr-warmup", &s.lr_warmup, "the rate grows from 0 for so long")
                  .chosen_by_default(),
              period("lr-decay-inv-sqrt", &s.lr_decay_inv_sqrt,
                     "the rate falls with the inverse square root from here on; empty: from the "
                     "warm-up's end"),
              Option("rnmt-schedule", &s.rnmt_schedule,
                     "n p s e of the RNMT+ schedule (Chen et al. 2018)")
                  .range(0)
                  .meta("N P S E"),
              Option("lr-decay", &s.lr_decay, "factor of the rate at each decay; 0: none")
                  .range(0, 0.999999),
              Option("lr-decay-strategy", &s.lr_decay_strategy, "when the rate decays"),
              Option("lr-decay-start", &s.lr_decay_start,
                     "first epoch at a decayed rate, and stalled validations before a decay")
                  .range(1)
                  .meta("EPOCH STALLS"),
              Option("cost-type", &s.cost_type,
                     "the cost whose gradient is clipped and taken: the mean over target tokens, "
                     "or over sentences"),
              Option("clip-norm", &s.clip_norm,
                     "longest gradient of the cost; longer ones are scaled down; 0: off")
                  .range(0),
              Option("label-smoothing", &s.label_smoothing,
                     "probability spread over the whole vocabulary")
                  .range(0, 0.99),
              Option("exponential-smoothing", &s.exponential_smoothing,
                     "share of each update in a moving average of the weights, which translates; "
                     "0: off")
                  .range(0, 0.999999)
                  .value_alone("1e-4"),
          }));
  append(
      options,
      in_group(
          "schedule",
          {
              Option("after", &s.after,
                     "stop after so much training; several lengths with commas, the first reached "
                     "stops; +N counts from where the training stands")
                  .alias({"a"})
                  .with_form(Form::periods)
                  .meta("[+]N[KMG][u|e|t],...")
                  .chosen_by_default(),
              Option("after-epochs", {}, "the same as --after Ne")
                  .alias({"e"})
                  .meta("N")
                  .range(0)
                  .spreads_to({"after"}, "e"),
              Option("after-batches", {}, "the same as --after Nu")
                  .meta("N")
                  .range(0)
                  .spreads_to({"after"}, "u"),
              Option("max-minutes", &s.max_minutes,
                     "stop after so many minutes of wall time, over all runs; 0: no limit")
                  .range(0),
              period("disp-freq", &s.disp_freq, "print a line of progress so often")
                  .chosen_by_default(),
              period("save-freq", &s.save_freq, "save a checkpoint so often").chosen_by_default(),
              Option("keep-last", &s.keep_last, "newest checkpoints to keep").range(1, 100000),
              Option("keep-best", &s.keep_best, "best checkpoints to keep besides")
                  .range(0, 100000)
                  .value_alone("1"),
              Option("no-reload", &s.overwrite,
                     "start anew in a model directory that has a training already, which is lost"),
          }));
  append(
      options,
      in_group(
          "validation",
          {
              period("valid-freq", &s.valid_freq, "validate so often").chosen_by_default(),
              Option("valid-metrics", &s.valid_metrics,
                     "what to measure; the first decides which checkpoint is best")
                  .meta("NAME..."),
              Option("valid-max-sentences", &s.valid_max_sentences,
                     "translate at most so many sentences of the development set; 0: all")
                  .range(0),
              Option(
                  "early-stopping", &s.early_stopping,
                  "stop after so many validations without progress of the first metric; 0: never")
                  .range(0, 1000000),
          }));
  append(options,
         in_group("common", {
                                Option("seed", &s.seed, "start of all random numbers").range(1),
                            }));
  return options;
}

}  // namespace

std::vector<Option> fields(TrainSpec& spec) {
  return with_defaults(spec, [](auto& s) { return list(s); });
}

}  // namespace nmt::config
