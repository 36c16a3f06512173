#include "app/common_options.h"
#include "app/distill/distill.h"
#include "app/distill/student_defaults.h"
#include "config/fields.h"
#include "core/number_text.h"
#include "model/architecture.h"
#include "model/directory/model_directory.h"
#include "text/lines.h"

namespace nmt::app {
namespace {

using config::Option;

std::vector<Option> training_options(TrainingSpec& spec) {
  std::vector<Option> options = config::without(
      {"model", "no-reload", "rank-timeout", "task", "guided-alignment"}, fields(spec));
  set_student_defaults(options);
  Option& text = config::named(options, "train-sets");
  text.help = "source text for the teacher and, optionally, its reference";
  text.metavar = "SRC [REF]";
  config::named(options, "guided-alignment-weight").help =
      "weight of the teachers' alignments in the training; 0: none";
  config::named(options, "vocabs").unset = "those of the first teacher";
  config::named(options, "valid-sets").unset = "none";
  return options;
}

void check_pair(const char* name, const std::vector<std::string>& files) {
  if (files.size() != 2)
    fail(ExitStatus::usage, "{}: {} files given, expected two: source and reference", name,
         files.size());
  std::int64_t lines[2] = {0, 0};
  for (const int side : {0, 1}) {
    LineReader reader = LineReader::open(files[static_cast<std::size_t>(side)]);
    for (std::string line; reader.next(line);) ++lines[side];
  }
  if (lines[0] != lines[1])
    fail(ExitStatus::data, "{}: {} has {}, but {} has {}", name, files[0],
         counted(lines[0], "line"), files[1], grouped(lines[1]));
  if (lines[0] == 0) fail(ExitStatus::data, "{}: {} has no line", name, files[0]);
}

void check_model(const char* option, const std::string& directory) {
  const ModelDirectory model = ModelDirectory::open(directory);
  model.require(Task::translation);
  if (const int sentences = model.spec().context_sentences; sentences > 0)
    fail(ExitStatus::usage,
         "{}: {} reads {} context sentences; nmt-distill translates sentences alone", option,
         directory, sentences);
}

// The step align reads the teachers' attention, and the training guides the student's.
void check_attention(const DistillSpec& spec) {
  constexpr const char* remedy = "switch guided alignment off with --guided-alignment-weight 0";
  for (const std::string& teacher : spec.teachers)
    if (const ModelSpec model = ModelDirectory::open(teacher).spec();
        model.attention == AttentionType::none)
      fail(ExitStatus::usage,
           "teacher: {} of type {} has no attention (attention none), which the step align reads; "
           "{}",
           teacher, name_of(model.type), remedy);
  if (spec.student.model.attention == AttentionType::none)
    fail(ExitStatus::usage,
         "attention: none leaves the student no attention to train on the teachers' alignments; {}",
         remedy);
}

}  // namespace

std::vector<Option> fields(DistillSpec& spec) {
  return joined(
      {config::in_group(
           "files",
           {Option("output", &spec.output, "work directory of all results; finished steps are kept")
                .meta("DIR"),
            Option("test-sets", &spec.test_sets, "source and reference text of the last step")
                .unset_means("the development set")
                .meta("SRC REF")}),
       config::in_group(
           "teacher",
           {Option("teacher", &spec.teachers, "model directories; several: an ensemble")
                .meta("DIR..."),
            Option("teacher-beam-size", &spec.teacher_beam,
                   "beam size of the teacher and length of its n-best lists")
                .range(1, 1024),
            Option("teacher-length-penalty", &spec.teacher_length_penalty,
                   "length penalty of the teacher")
                .range(0, 100)
                .meta("A"),
            Option("teacher-precision", &spec.teacher_precision,
                   "matmul input precision of the teacher; auto: that of the model"),
            Option("part-lines", &spec.part_lines,
                   "lines per file of translations; an interrupted run repeats at most one file")
                .range(1, 10000000)}),
       config::in_group(
           "selection",
           {Option("select", &spec.selection,
                   "choice among the n-best; auto: bleu with a reference, else score"),
            Option("backward", &spec.backward, "model of the other direction; scores the pairs")
                .unset_means("none")
                .meta("DIR"),
            Option("backward-drop", &spec.backward_drop,
                   "share of pairs to drop by their backward scores")
                .range(0, 0.99),
            Option("max-ratio", &spec.max_ratio, "maximum ratio of the lengths in characters")
                .range(1, 1000)}),
       config::in_group(
           "student",
           {Option("shortlist", &spec.shortlist,
                   "target pieces per sentence: FIRST most frequent, BEST per source piece")
                .range(0, 1000000)
                .meta("FIRST BEST"),
            Option("tolerance", &spec.tolerance, "maximum loss of BLEU by int8").range(0, 100),
            Option("check-sentences", &spec.check_sentences,
                   "sentences that are translated one at a time for the table")
                .range(1, 1000000),
            Option("json", &spec.json, "print the table as JSON")}),
       config::in_group(
           "steps", {Option("until", &spec.until, "last step"),
                     Option("redo", &spec.redo, "first step to repeat; all later ones follow"),
                     Option("dry-run", &spec.dry_run, "print the steps and their state, run none")
                         .never_dumped()}),
       training_options(spec.student)});
}

void note_given(DistillSpec& spec, const config::Settings& settings) {
  note_given(spec.student, settings);
  unset_student_architecture(spec.student);
  TrainingSpec student = spec.student;  // as the step train will have it
  if (spec.aligns()) student.data.guided_alignment = "links";
  if (spec.shares_vocabularies()) student.data.vocabs = {"vocabulary"};
  if (student.unit_given() || architecture_of(student.model).has_blocks()) check_effects(student);
  spec.student.typed.clear();
}

void check(const DistillSpec& spec) {
  if (spec.output.empty())
    fail(ExitStatus::usage, "output: no work directory given; name it with --output DIR");
  if (spec.teachers.empty())
    fail(ExitStatus::usage, "teacher: no model directory given; name it with --teacher DIR");
  for (const std::string& teacher : spec.teachers) check_model("teacher", teacher);
  if (spec.backward.empty() && spec.backward_drop != DistillSpec{}.backward_drop)
    fail(ExitStatus::usage,
         "backward-drop: there is no model to score with; name it with --backward DIR");
  if (!spec.backward.empty()) check_model("backward", spec.backward);
  if (spec.aligns()) check_attention(spec);
  if (spec.student.model.context_sentences > 0)
    fail(ExitStatus::usage,
         "context-sentences: {}, but nmt-distill drops pairs, and with them the order of documents",
         spec.student.model.context_sentences);
  const std::vector<std::string>& text = spec.student.data.train_sets;
  if (text.empty() || text.size() > 2)
    fail(ExitStatus::usage,
         "train-sets: {} files given, expected a source text and, optionally, its reference",
         text.size());
  if (text.size() == 1 && spec.selection.value_or(Selection::score) != Selection::score)
    fail(ExitStatus::usage, "select: {} needs a reference; train-sets has a source text only",
         name_of(*spec.selection));
  if (text.size() == 2) check_pair("train-sets", text);
  if (spec.student.data.valid_sets.empty())
    fail(ExitStatus::usage,
         "valid-sets: no development set given; name it with --valid-sets SOURCE REFERENCE");
  check_pair("valid-sets", spec.student.data.valid_sets);
  if (!spec.test_sets.empty()) check_pair("test-sets", spec.test_sets);
  if (spec.shortlist.size() != 2)
    fail(ExitStatus::usage, "shortlist: {} numbers given, expected two: FIRST and BEST",
         spec.shortlist.size());
  if (spec.redo > spec.until)
    fail(ExitStatus::usage, "redo: {} comes after until: {}", name_of(spec.redo),
         name_of(spec.until));
  config::check(spec.student.noise);
  config::check(spec.student.search);
}

}  // namespace nmt::app
