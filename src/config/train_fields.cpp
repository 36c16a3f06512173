#include "config/fields.h"
#include "config/period.h"

namespace nmt::config {
namespace {

// Why nothing happens at validations before the end of a training; "" if something does.
std::string no_validations(const TrainSpec& s) {
  return !s.valid_freq.empty() && !parse_period(s.valid_freq, "valid-freq") ? "valid-freq is 0"
                                                                            : "";
}

// For an option that only validations use; its value 0 turns it off.
IdleRule without_validations(const TrainSpec& s, const int TrainSpec::*member) {
  return [&s, member] { return s.*member == 0 ? "" : no_validations(s); };
}

Option period(const char* name, std::string* member, const char* help) {
  return Option(name, member, help).with_form(Form::period).meta("N[KMG][u|e|t]");
}

std::vector<Option> optimizer(TrainSpec& s) {
  const ChangeRule same_state = [](const std::string& before, const std::string& now) {
    const auto has_moments = [](const std::string& name) {
      const auto rule = find_enum<UpdateRule>(name);
      return rule == UpdateRule::adam || rule == UpdateRule::adamw;
    };
    return has_moments(before) && has_moments(now) ? "" : "the optimizer states are incompatible";
  };
  const ChangeRule same_momentum = [&s](const std::string& before, const std::string& now) {
    const auto is_off = [](const std::string& momentum) {
      return momentum == "none" || momentum == "0";
    };
    return s.optimizer == UpdateRule::sgd && is_off(before) != is_off(now)
               ? "momentum cannot be enabled or disabled during a training"
               : "";
  };
  return {
      Option("optimizer", &s.optimizer, "optimizer").alias({"o"}).changes_if(same_state),
      Option("optimizer-params", &s.optimizer_params,
             "parameters of the optimizer, in order; adam: beta1 beta2 epsilon")
          .unset_means("those of the optimizer")
          .range(0)
          .meta("X...")
          .changes_if(same_momentum),
      Option("cost-type", &s.cost_type, "training cost: mean over target tokens or over sentences"),
      Option("clip-norm", &s.clip_norm, "gradient norm limit; 0: no clipping").range(0),
      Option("label-smoothing", &s.label_smoothing, "label smoothing probability").range(0, 0.99),
      Option("guided-alignment-weight", &s.guided_alignment_weight,
             "weight of the cost of guided alignment; 0: off")
          .range(0, 1000),
      Option("average-after", &s.average_after,
             "validations without improvement before averaging weights (NT-ASGD); 0: off")
          .range(0, 1000000)
          .idle_when(without_validations(s, &TrainSpec::average_after))
          .changes_if([](const std::string& before, const std::string& now) {
            return (before == "0") != (now == "0")
                       ? "averaging cannot be enabled or disabled during a training"
                       : "";
          }),
      Option("exponential-smoothing", &s.exponential_smoothing,
             "weight of each update in the moving average of weights; 0: off")
          .range(0, 0.999999)
          .value_alone("1e-4")
          .otherwise_chosen("0.001 or 0.0001 for translation where learn-rate is chosen, else 0")
          .kept_by_resume()
          .changes_if([](const std::string& before, const std::string& now) {
            return (before == "0") != (now == "0")
                       ? "averaging cannot be enabled or disabled during a training"
                       : "";
          }),
  };
}

std::vector<Option> learning_rate(TrainSpec& s) {
  const auto unless_schedule = [&s](RateSchedule wanted) {
    return [&s, wanted] {
      return s.schedule == wanted ? "" : fmt::format("schedule is {}", name_of(s.schedule));
    };
  };
  const IdleRule no_decay = [&s] { return s.lr_decay == 0 ? "lr-decay is 0" : ""; };
  const IdleRule no_stalls = [&s]() -> std::string {
    const bool only_stalls = s.lr_decay > 0 && s.lr_decay_strategy == DecayStrategy::stalled;
    return only_stalls ? no_validations(s) : "";
  };
  const IdleRule no_start = [&s, no_decay, no_stalls]() -> std::string {
    for (const std::string& why : {no_decay(), no_stalls()})
      if (!why.empty()) return why;
    if (s.lr_decay_start.size() < 2) return "";
    const auto& usual = TrainSpec().lr_decay_start;
    if (s.lr_decay_strategy == DecayStrategy::epoch && s.lr_decay_start[1] != usual[1])
      return "its second number: lr-decay-strategy is epoch";
    if (s.lr_decay_strategy == DecayStrategy::stalled && s.lr_decay_start[0] != usual[0])
      return "its first number: lr-decay-strategy is stalled";
    return "";
  };
  return {
      Option("learn-rate", &s.learn_rate,
             "peak learning rate; rnmt+: initial rate, 1/N of the peak")
          .alias({"l", "lr"})
          .range(1e-12, 100)
          .chosen_by_default(),
      Option("schedule", &s.schedule,
             "learning rate after warm-up: inverse square root, RNMT+ or constant"),
      period("lr-warmup", &s.lr_warmup, "length of the linear warm-up")
          .chosen_by_default()
          .idle_when([&s]() -> std::string {
            return s.schedule == RateSchedule::rnmt && parse_period(s.lr_warmup, "lr-warmup")
                       ? "schedule rnmt+ has its own warm-up"
                       : "";
          }),
      period("lr-decay-inv-sqrt", &s.lr_decay_inv_sqrt,
             "start of the inverse square root decay; 0: no decay")
          .unset_means("end of warm-up")
          .idle_when(unless_schedule(RateSchedule::inv_sqrt)),
      Option("rnmt-schedule", &s.rnmt_schedule,
             "parameters of the RNMT+ schedule (Chen et al. 2018)")
          .range(0)
          .meta("N P S E")
          .idle_when(unless_schedule(RateSchedule::rnmt)),
      Option("lr-floor", &s.lr_floor, "lowest learning rate of schedule and decays; 0: none")
          .range(0, 100)
          .idle_when([&s] {
            return s.schedule == RateSchedule::constant && s.lr_decay == 0 && s.lr_floor > 0
                       ? "schedule is constant and lr-decay is 0"
                       : "";
          }),
      Option("lr-cooldown", &s.lr_cooldown,
             "final fraction of the training with linear decay to 0; 0: none")
          .range(0, 1),
      Option("lr-decay", &s.lr_decay, "learning rate factor of each decay; 0: no decay")
          .range(0, 0.999999)
          .idle_when(no_stalls),
      Option("lr-decay-strategy", &s.lr_decay_strategy, "event that decays the learning rate")
          .idle_when(no_decay),
      Option("lr-decay-start", &s.lr_decay_start,
             "first decayed epoch, and stalled validations per decay")
          .range(1)
          .meta("EPOCH STALLS")
          .idle_when(no_start),
  };
}

std::vector<Option> schedule(TrainSpec& s) {
  return {
      Option(
          "after", &s.after,
          "training length, or the first reached of a list; 0: no limit; +N: additional training")
          .alias({"a"})
          .with_form(Form::periods)
          .meta("[+]N[KMG][u|e|t],...")
          .chosen_by_default(),
      Option("after-epochs", {}, "training length in epochs")
          .alias({"e"})
          .meta("N")
          .range(0)
          .spreads_to({"after"}, "e"),
      Option("after-batches", {}, "training length in updates")
          .meta("N")
          .range(0)
          .spreads_to({"after"}, "u"),
      Option("max-minutes", &s.max_minutes, "wall time limit in minutes over all runs; 0: no limit")
          .range(0),
      period("disp-freq", &s.disp_freq, "progress log interval").chosen_by_default(),
      period("save-freq", &s.save_freq, "checkpoint interval").chosen_by_default(),
      Option("keep-last", &s.keep_last, "latest checkpoints to keep").range(1, 100000),
      Option("keep-best", &s.keep_best, "best checkpoints to keep, which may be among the latest")
          .range(0, 100000)
          .value_alone("1")
          .idle_when(without_validations(s, &TrainSpec::keep_best)),
      Option("no-reload", &s.overwrite, "new training that replaces the one in the model directory")
          .with_role(Role::location),
  };
}

std::vector<Option> validation(TrainSpec& s) {
  return {
      period("valid-freq", &s.valid_freq, "validation interval").chosen_by_default(),
      Option("valid-metrics", &s.valid_metrics,
             "validation metrics; the first one selects the best checkpoint")
          .meta("NAME..."),
      Option("valid-max-sentences", &s.valid_max_sentences,
             "sentences of the development set to translate; 0: all")
          .range(0),
      Option("early-stopping", &s.early_stopping,
             "validations without improvement before stopping; 0: never")
          .range(0, 1000000)
          .idle_when(without_validations(s, &TrainSpec::early_stopping)),
  };
}

std::vector<Option> list(TrainSpec& s) {
  return joined(
      {in_group("model",
                {Option("model", &s.model, "model directory; an existing training is resumed")
                     .alias({"m"})
                     .meta("DIR")
                     .with_role(Role::location)}),
       in_group(
           "batch",
           {Option("optimizer-delay", &s.optimizer_delay, "batches per update").range(1, 100000)}),
       in_group("optimizer", joined({optimizer(s), learning_rate(s)})),
       in_group("schedule", schedule(s)), in_group("validation", validation(s)),
       in_group("common",
                with_role(Role::hold_out, {Option("seed", &s.seed, "random seed").range(1)}))});
}

}  // namespace

std::vector<Option> fields(TrainSpec& spec) {
  return with_defaults(spec, [](auto& s) { return list(s); });
}

}  // namespace nmt::config
