#include "app/distill/distill.h"

#include "app/distill/steps/steps.h"
#include "app/program.h"
#include "config/fields.h"
#include "core/files/file.h"
#include "core/hash/lines_hash.h"
#include "core/log.h"
#include "model/directory/model_directory.h"
#include "text/lines.h"

#include <utility>

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
  for (const auto& [key, value] : before.items())
    if (!now.contains(key)) return fmt::format("{}: {} before, none now", key, text(value));
  return before == now ? "" : "other settings before";
}

bool is_off(const Step& step, const DistillSpec& spec) {
  return step.is_off && step.is_off(spec);
}

// The first result of a finished step that does not exist.
std::string missing(const Step& step, const Distillation& all, const Json& result) {
  const std::int64_t lines = step.lines ? result.at(step.lines).get<std::int64_t>() : 0,
                     each = all.spec.part_lines;
  return all.work.missing(step.name, (lines + each - 1) / each);
}

// What a step says of its result as stored, which may lack what the step writes.
template <class Read>
auto of_stored(const Step& step, const WorkDirectory& work, const Read& read) {
  try {
    return read();
  } catch (const nlohmann::json::exception&) {
    work.refuse_record(step.name);
  }
}

bool later_has_results(const Step& step, const WorkDirectory& work) {
  return std::any_of(std::begin(steps), std::end(steps), [&](const Step* later) {
    return later->name > step.name && work.has_results(later->name);
  });
}

// `settings`: of the step now.
StepState state_of(const Step& step, const Distillation& all, const Json& settings) {
  using enum StepState::Kind;
  const auto before = all.work.read(step.name);
  if (!before) return {begins, ""};
  const std::string absent =
      before->finished
          ? of_stored(step, all.work, [&] { return missing(step, all, before->result); })
          : "";
  const std::string other = difference(before->settings, settings);
  // Other results than those that later steps have read.
  const bool contradicts =
      !other.empty() && !step.resume_state && later_has_results(step, all.work);
  if (!all.work.has_results(step.name))
    return contradicts ? StepState{refused, other} : StepState{begins, absent};
  if (before->finished && other.empty() && absent.empty()) return {finished, ""};
  if (step.resume_state)
    return all.work.missing(step.name, 0).empty() ? step.resume_state(all)
                                                  : StepState{begins, absent};
  const bool continued = WorkDirectory::continues(step.name);
  if (!before->finished && !continued)
    return contradicts ? StepState{refused, other} : StepState{begins, ""};
  if (!other.empty()) return {refused, other};
  return {continued ? continues : begins, absent};
}

// What a run does with a step that is not repeated, for --dry-run. `trains`: the step train is to
// be run, so that the student, which the settings of the later steps contain, is not known.
std::string describe(const Step& step, const Distillation& all, bool trains) {
  if (trains && all.work.has_results(step.name))
    return fmt::format("refused if the student changes (--redo {})", name_of(step.name));
  if (trains) return "to be run";
  const StepState next = state_of(step, all, step.settings(all));
  const std::string why =
      next.why.empty() || next.kind == StepState::Kind::refused ? "" : ": missing " + next.why;
  switch (next.kind) {
    case StepState::Kind::finished: return "finished";
    case StepState::Kind::refused:
      return fmt::format("refused: {} (--redo {})", next.why, name_of(step.name));
    case StepState::Kind::begins: return "to be run" + why;
    case StepState::Kind::continues: return "to be continued" + why;
  }
  return "";
}

void print_plan(const Distillation& all) {
  const DistillSpec& spec = all.spec;
  std::string text;
  bool trains = false, stops = false;
  for (const Step* step : steps) {
    if (step->name > spec.until) break;
    std::string line;
    if (stops)
      line = "not reached";
    else if (is_off(*step, spec))
      line = "off";
    else if (spec.redo != DistillStep::none && step->name >= spec.redo)
      line = "to be repeated";
    else
      line = describe(*step, all, trains);
    text += fmt::format("{:<10} {}\n", name_of(step->name), line);
    stops = stops || line.starts_with("refused: ");
    trains = trains || (step->name == DistillStep::train && line != "finished");
  }
  print(text);
}

// Error (usage): --redo would remove what this command reads.
void check_redo(const Distillation& all) {
  const DistillSpec& spec = all.spec;
  if (spec.redo == DistillStep::none) return;
  std::vector<std::string> inputs = spec.teachers;
  if (!spec.backward.empty()) inputs.push_back(spec.backward);
  const DataSpec& data = spec.student.data;
  for (const auto* more : {&data.train_sets, &data.valid_sets, &spec.test_sets, &data.vocabs})
    inputs.insert(inputs.end(), more->begin(), more->end());
  for (const Step* step : steps)
    for (const std::string& input : inputs)
      if (step->name >= spec.redo && all.work.contains(step->name, input))
        fail(ExitStatus::usage,
             "redo: --redo {} would remove {}, which this command reads; copy it elsewhere first",
             name_of(spec.redo), input);
}

// --redo removes nothing where an earlier step refuses the command.
void remove_repeated(const Distillation& all) {
  const DistillStep first = all.spec.redo;
  if (first == DistillStep::none) return;
  for (const Step* step : steps) {
    if (step->name >= first) break;
    if (is_off(*step, all.spec)) continue;
    const StepState next = state_of(*step, all, step->settings(all));
    if (next.kind == StepState::Kind::refused) refuse_other_settings(step->name, next.why);
    if (next.kind != StepState::Kind::finished) break;
  }
  // Later steps first: what an interrupted removal leaves has the record of the earlier steps,
  // which refuses other settings.
  for (auto step = std::rbegin(steps); step != std::rend(steps); ++step)
    if ((*step)->name >= first) all.work.remove((*step)->name);
}

ExitStatus run(const Step& step, const Distillation& all) {
  const auto name = name_of(step.name);
  if (is_off(step, all.spec)) {
    log::info("{}: off", name);
    return ExitStatus::ok;
  }
  const Json settings = step.settings(all);
  const StepState next = state_of(step, all, settings);
  if (next.kind == StepState::Kind::refused) refuse_other_settings(step.name, next.why);
  if (next.kind == StepState::Kind::finished) {
    log::info("{}: finished before: {}", name, of_stored(step, all.work, [&] {
                return step.summary(all.work.read(step.name)->result);
              }));
    return ExitStatus::ok;
  }
  log::info("{}: {}{}", name, next.kind == StepState::Kind::continues ? "continues" : "begins",
            next.why.empty() ? "" : ": missing " + next.why);
  bool begun = false;
  const Begin begin = [&] {
    if (std::exchange(begun, true)) return;
    all.work.clean(step.name);
    all.work.write(step.name, {settings, false, nullptr});
  };
  Json result;
  const ExitStatus status = step.run(all, begin, result);
  if (status != ExitStatus::ok) return status;
  all.work.write(step.name, {settings, true, result});
  log::info("{}: {}", name, step.summary(result));
  return ExitStatus::ok;
}

}  // namespace

void refuse_other_settings(DistillStep step, const std::string& difference) {
  fail(ExitStatus::usage,
       "{}: this step has results of other settings: {}; repeat it and the later ones with "
       "--redo {}, or give another --output",
       name_of(step), difference, name_of(step));
}

std::string identity(const std::string& model) {
  const StoredCheckpoint checkpoint = ModelDirectory::open(model).published();
  return fmt::format("update {}, {:08x}", checkpoint.updates(), checkpoint.model_crc32());
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
  const Distillation all{spec, work, command};
  check_redo(all);
  if (spec.dry_run) {
    work.check();
    print_plan(all);
    return ExitStatus::ok;
  }
  work.open();
  remove_repeated(all);
  for (const Step* step : steps) {
    if (step->name > spec.until) break;
    if (const ExitStatus status = run(*step, all); status != ExitStatus::ok) return status;
  }
  if (spec.until == DistillStep::check)
    print(read_file(work.at(spec.json ? "table.json" : "table.txt")));
  return ExitStatus::ok;
}

}  // namespace nmt::app
