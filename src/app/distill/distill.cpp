#include "app/distill/distill.h"

#include "app/distill/steps/steps.h"
#include "app/program.h"
#include "config/fields.h"
#include "core/file.h"
#include "core/hash/checksum.h"
#include "core/hash/lines_hash.h"
#include "core/log.h"
#include "model/directory/model_directory.h"
#include "text/lines.h"

namespace nmt::app {
namespace {

using Json = nlohmann::ordered_json;

const Step* const steps[] = {&translate_step, &select_step,    &filter_step,  &align_step,
                             &train_step,     &shortlist_step, &convert_step, &check_step};

std::string text(const Json& value) {
  return value.is_string() ? value.get<std::string>() : value.dump();
}

// The first setting in which a record differs from what is asked: "beam-size: 4 before, 8 now".
std::string difference(const Json& before, const Json& now) {
  for (const auto& [key, value] : now.items())
    if (value.is_object() && before.contains(key) && before.at(key) != value)
      return difference(before.at(key), value);
    else if (!before.contains(key) || before.at(key) != value)
      return fmt::format("{}: {} before, {} now", key,
                         before.contains(key) ? text(before.at(key)) : "none", text(value));
  return before == now ? "" : "other settings before";
}

void require_same(const Step& step, const Json& before, const Json& now) {
  if (const std::string other = difference(before, now); !other.empty())
    fail(ExitStatus::usage,
         "{}: this step has results of other settings: {}; repeat it and the later ones with "
         "--redo {}, or give another --output",
         name_of(step.name), other, name_of(step.name));
}

bool is_off(const Step& step, const DistillSpec& spec) {
  return step.is_off && step.is_off(spec);
}

// What a run would do with the step. Later steps have unknown inputs until the earlier ones have
// run.
std::string state(const DistillSpec& spec, const WorkDirectory& work, const Step& planned) {
  const DistillStep step = planned.name;
  if (is_off(planned, spec)) return "off";
  if (spec.redo != DistillStep::none && step >= spec.redo) return "to be repeated";
  const auto record = work.read(step);
  if (!record) return "to be run";
  return record->finished ? "finished" : "to be continued";
}

void print_plan(const DistillSpec& spec, const WorkDirectory& work) {
  std::string text;
  for (const Step* step : steps)
    if (step->name <= spec.until)
      text += fmt::format("{:<10} {}\n", name_of(step->name), state(spec, work, *step));
  print(text);
}

ExitStatus run(const Step& step, const Distillation& all) {
  if (is_off(step, all.spec)) {
    log::info("{}: off", name_of(step.name));
    return ExitStatus::ok;
  }
  const Json settings = step.settings(all);
  const auto before = all.work.read(step.name);
  if (before && !step.accepts_changes) require_same(step, before->settings, settings);
  if (before && before->finished && before->settings == settings) {
    log::info("{}: finished before: {}", name_of(step.name), step.summary(before->result));
    return ExitStatus::ok;
  }
  all.work.clean(step.name);
  all.work.write(step.name, {settings, false, nullptr});
  log::info("{}: {}", name_of(step.name), before ? "continues" : "begins");
  Json result;
  const ExitStatus status = step.run(all, result);
  if (status != ExitStatus::ok) return status;
  all.work.write(step.name, {settings, true, result});
  log::info("{}: {}", name_of(step.name), step.summary(result));
  return ExitStatus::ok;
}

}  // namespace

std::string identity(const std::string& model) {
  const StoredCheckpoint checkpoint = ModelDirectory::open(model).published();
  const std::uint32_t sum = crc32(read_file(checkpoint.folder() + "/model.safetensors"));
  return fmt::format("update {}, {:08x}", checkpoint.updates(), sum);
}

std::vector<std::string> identities(const std::vector<std::string>& models) {
  std::vector<std::string> all;
  for (const std::string& model : models) all.push_back(identity(model));
  return all;
}

std::string text_identity(const std::string& path) {
  LineReader reader = LineReader::open(path);
  LinesHash hash;
  for (std::string line; reader.next(line);) hash.add(line);
  return fmt::format("{} lines, {}", reader.lines(), hash.text());
}

nlohmann::ordered_json search_settings(SearchSpec search) {
  Json settings = Json::object();
  for (const config::Option& option : config::validation_fields(search))
    settings[option.name] = config::joined_values(option);
  return settings;
}

ExitStatus distill(const DistillSpec& spec, const std::vector<std::string>& command) {
  check(spec);
  WorkDirectory work(spec.output);
  if (spec.dry_run) {
    print_plan(spec, work);
    return ExitStatus::ok;
  }
  work.open();
  if (spec.redo != DistillStep::none)
    for (const Step* step : steps)
      if (step->name >= spec.redo) work.remove(step->name);
  const Distillation all{spec, work, command};
  for (const Step* step : steps) {
    if (step->name > spec.until) break;
    if (const ExitStatus status = run(*step, all); status != ExitStatus::ok) return status;
  }
  if (spec.until == DistillStep::check)
    print(read_file(work.at(spec.json ? "table.json" : "table.txt")));
  return ExitStatus::ok;
}

}  // namespace nmt::app
