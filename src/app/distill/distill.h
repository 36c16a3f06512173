#pragma once

#include "app/distill/distill_enums.h"
#include "app/train/training_spec.h"
#include "config/option.h"
#include "config/settings.h"
#include "core/error.h"

#include <optional>
#include <string>
#include <vector>

namespace nmt::app {

/// Specification of nmt-distill.
struct DistillSpec {
  /// The student's training. train_sets: the text to translate and, optionally, its reference;
  /// train.model is ignored.
  TrainingSpec student;
  /// Whether the student has the vocabularies of the first teacher.
  bool shares_vocabularies() const {
    return student.data.vocabs.empty() && student.data.dim_vocabs.empty() &&
           student.data.vocab_type == VocabularyKind::sentencepiece;
  }
  /// Whether the student's attention is trained on the teachers' alignments.
  bool aligns() const { return student.train.guided_alignment_weight > 0; }
  std::string output;  ///< work directory of all results

  std::vector<std::string> teachers;  ///< model directories; several: an ensemble
  int teacher_beam = 4;               ///< also the length of the n-best lists
  double teacher_length_penalty = 0.6;
  std::optional<Precision> teacher_precision;  ///< none: that of the directories
  int part_lines = 5000;                       ///< lines per file of translations

  std::optional<Selection> selection;  ///< none: bleu with references, else score
  std::string backward;                ///< model directory, target to source; "": none
  double backward_drop = 0.05;         ///< share of pairs with the lowest backward scores
  double overlap_drop = 0;             ///< share of pairs with the least similar references
  double max_ratio = 3;                ///< of the lengths in characters

  std::vector<int> shortlist{100, 100};  ///< FIRST and BEST of nmt-translate --shortlist
  double tolerance = 0.5;                ///< loss of BLEU by int8

  std::vector<std::string> test_sets;  ///< source and reference; empty: the development set
  int check_sentences = 500;           ///< of the measurement with batches of one sentence
  bool json = false;

  DistillStep until = DistillStep::check;  ///< the last step
  DistillStep redo = DistillStep::none;    ///< repeat this step and all later ones
  bool dry_run = false;
};

/// The options of nmt-distill: its own and those of nmt-train, with the defaults of a student.
std::vector<config::Option> fields(DistillSpec& spec);
/// Records which settings of the student were given, and gives another architecture than that of
/// the default student its own defaults (unset_student_architecture). Call it after
/// Settings::read(). Errors (usage): typed settings of the student without effect.
void note_given(DistillSpec& spec, const config::Settings& settings);
/// Errors (usage): missing files or models, settings that contradict each other, and those that a
/// later step would refuse, as check_student.
void check(const DistillSpec& spec);

/// Distills the teacher into a student: runs the steps that are not finished, and prints the table
/// of the last one. Each step records its settings in the work directory. `command`: the command
/// line, for the log of the training. Returns the status of an interrupted training, else ok.
/// Errors (usage): a finished step had other settings, or another process works in the directory;
/// (data): damaged files; as the jobs of the steps.
ExitStatus distill(const DistillSpec& spec, const std::vector<std::string>& command);

}  // namespace nmt::app
