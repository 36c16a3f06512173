#include "app/distill/student_training.h"

#include "app/compute/compute.h"
#include "app/compute/recurrence_log.h"
#include "app/train/tasks/translation_training.h"
#include "config/fields.h"
#include "model/directory/model_directory.h"
#include "model/model.h"
#include "nmt/vocabulary.h"
#include "train/trainer.h"

#include <algorithm>
#include <filesystem>
#include <vector>

namespace nmt::app {
namespace {

// The vocabularies of a model directory, as --vocabs names them.
std::vector<std::string> vocabularies(const std::string& model) {
  const std::string joint = model + "/vocab.spm";
  std::error_code error;
  if (std::filesystem::exists(joint, error)) return {joint};
  return {model + "/src.spm", model + "/trg.spm"};
}

// Symbols of both sides. Learned vocabularies do not exist yet.
std::pair<int, int> vocabulary_sizes(const DistillSpec& spec, const DataSpec& student) {
  if (spec.shares_vocabularies()) {
    const VocabularyPair pair = ModelDirectory::open(spec.teachers.front()).load_vocabularies();
    return {pair.source->size(), pair.target->size()};
  }
  if (student.vocabs.empty()) return {student.dim_vocabs.front(), student.dim_vocabs.back()};
  const int source = Vocabulary::load(student.vocabs.front()).size();
  return {source, student.vocabs.size() == 1 ? source : Vocabulary::load(student.vocabs[1]).size()};
}

// Compute refuses what the device lacks. Nothing is measured: `auto` fits every device.
void check_device(const TrainingSpec& student, const std::pair<int, int>& vocabulary) {
  ComputeSpec asked = student.compute;
  if (!asked.precision) asked.precision = Precision::float32;
  Compute compute(asked, ComputeUse::training);
  compute.check_products();
  const std::unique_ptr<Arena> arena = compute.new_training_arena();
  const Context context = compute.training_context(*arena, nullptr);
  Model model(student.model, vocabulary.first, vocabulary.second, context, student.train.seed,
              Model::Weights::none);
  if (asked.recurrences == RecurrenceChoice::cudnn ||
      asked.recurrences == RecurrenceChoice::persistent)
    log_recurrences(context, model.parameters());
}

}  // namespace

TrainingSpec student_training(const DistillSpec& spec, const WorkDirectory& work) {
  TrainingSpec student = spec.student;
  student.data.train_sets = {work.source(), work.target()};
  student.train.model = work.student();
  student.start_anew = "repeat the step with --redo train";
  if (spec.aligns()) student.data.guided_alignment = work.links();
  if (spec.shares_vocabularies()) student.data.vocabs = vocabularies(spec.teachers.front());
  const auto& metrics = student.train.valid_metrics;
  if (std::none_of(metrics.begin(), metrics.end(), [](ValidMetric metric) {
        return metric == ValidMetric::bleu || metric == ValidMetric::chrf;
      }))  // the search is that of later steps alone
    for (const config::Option& option : config::validation_fields(student.search))
      student.given.erase(option.name);
  return student;
}

void check_student(const DistillSpec& spec, std::int64_t lines) {
  TrainingSpec student = student_training(spec, WorkDirectory(spec.output));
  check(student);
  constexpr std::int64_t bytes_per_line = 100;  // decides intervals only
  std::vector<train::Choice> choices;
  choose_settings(student, true, {lines, bytes_per_line * lines}, choices);
  check(student);
  train::Trainer::check(student.train);
  check_device(student, vocabulary_sizes(spec, student.data));
  // Later than what contradicts attention none, which nmt-train tells.
  if (student.model.attention == AttentionType::none && spec.until >= DistillStep::shortlist)
    fail(ExitStatus::usage,
         "attention: none leaves the student no attention, which the step shortlist reads; use "
         "another attention, or end with --until train");
}

}  // namespace nmt::app
