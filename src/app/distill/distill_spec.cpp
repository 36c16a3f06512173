#include "app/common_options.h"
#include "app/compute/compute.h"
#include "app/distill/distill.h"
#include "app/distill/parts.h"
#include "app/distill/student_defaults.h"
#include "app/distill/student_training.h"
#include "app/models/loaded_ensemble.h"
#include "config/fields.h"
#include "config/tasks/task_fields.h"
#include "core/files/file.h"
#include "core/number_text.h"
#include "model/architecture.h"
#include "model/directory/model_directory.h"
#include "text/lines.h"

#include <filesystem>
#include <optional>

namespace nmt::app {
namespace {

using config::Option;

std::vector<Option> training_options(TrainingSpec& spec) {
  std::vector<Option> options = config::without(
      {"model", "no-reload", "rank-timeout", "task", "guided-alignment"}, fields(spec));
  for (const Option& other : config::joined({config::language_model_fields(spec.model),
                                             config::tagging_fields(spec.model),
                                             config::classification_fields(spec.model)}))
    options = config::without({other.name}, std::move(options));
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

// Each text is read several times. A missing file or a directory is refused where it is opened.
void require_regular_file(const char* name, const std::string& file) {
  std::error_code error;
  const bool is_stream = file.empty() || file == "-";
  if (is_stream || (std::filesystem::exists(file, error) && !is_file(file) && !is_directory(file)))
    fail(ExitStatus::usage, "{}: {} cannot be read several times; expected a regular file", name,
         is_stream ? "standard input" : file);
}

// Returns the number of lines, which are the same in all files.
std::int64_t check_lines(const char* name, const std::vector<std::string>& files) {
  std::vector<std::int64_t> lines;
  for (const std::string& file : files) {
    require_regular_file(name, file);
    LineReader reader = LineReader::open(file);
    for (std::string line; reader.next(line);) continue;
    lines.push_back(reader.lines());
  }
  if (lines.front() != lines.back())
    fail(ExitStatus::data, "{}: {} has {}, but {} has {}", name, files.front(),
         counted(lines.front(), "line"), files.back(), grouped(lines.back()));
  if (lines.front() == 0) fail(ExitStatus::data, "{}: {} has no line", name, files.front());
  return lines.front();
}

void check_pair(const char* name, const std::vector<std::string>& files) {
  if (files.size() != 2)
    fail(ExitStatus::usage, "{}: {} given, expected two: source and reference", name,
         counted(std::ssize(files), "file"));
  check_lines(name, files);
}

// Speeds are in words.
void require_text(const std::string& path) {
  LineReader reader = LineReader::open(path);
  for (std::string line; reader.next(line);)
    if (!is_blank(line)) return;
  fail(ExitStatus::data, "{}: has no line with text to measure the student by", path);
}

void check_model(const char* option, const std::string& directory) {
  if (!ModelDirectory::is_there(directory))
    fail(ExitStatus::usage, "{}: {} is not a model directory: {}", option, directory,
         is_directory(directory) ? "config.json is missing"
         : is_file(directory) ? "it is a file (an option that takes several names takes all up to "
                                "the next option)"
                              : "there is no such directory");
  const ModelDirectory model = ModelDirectory::open(directory);
  if (const Task task = model.spec().task; task != Task::translation)
    fail(ExitStatus::usage, "{}: {} is {}; expected {}", option, directory, model_of(task),
         model_of(Task::translation));
  model.published();
  if (const int sentences = model.spec().context_sentences; sentences > 0)
    fail(ExitStatus::usage,
         "{}: {} reads {} context sentences; nmt-distill translates sentences alone", option,
         directory, sentences);
}

// The device has the precision of the teachers and of the backward model.
void check_precision(const DistillSpec& spec) {
  ComputeSpec asked;  // float32, which every device has
  asked.device = spec.student.compute.device;
  asked.cpu_threads = spec.student.compute.cpu_threads;
  asked.precision = Precision::float32;
  Compute compute(asked);
  const Precision teacher = decoding_precision(spec.teacher_precision, spec.teachers);
  if (!compute.cuda() && teacher == Precision::tf32)
    fail(ExitStatus::usage,
         "teacher-precision: tf32 is for a GPU (--device cuda), not for the CPU; give float32, "
         "bfloat16 or int8");
  if (compute.cuda() && teacher == Precision::int8)
    fail(ExitStatus::usage,
         "teacher-precision: int8 is for the CPU, not for --device {}; use --teacher-precision "
         "float32 for int8 weights",
         asked.device);
  if (compute.cuda() && !spec.backward.empty() &&
      decoding_precision(std::nullopt, {spec.backward}) == Precision::int8)
    fail(ExitStatus::usage,
         "backward: {} has int8 weights, which are for the CPU, not for --device {}; give the "
         "model in float32",
         spec.backward, asked.device);
}

void check_teachers(const DistillSpec& spec) {
  for (const std::string& teacher : spec.teachers) check_model("teacher", teacher);
  const std::string& first = spec.teachers.front();
  const VocabularyPair of_first = ModelDirectory::open(first).load_vocabularies();
  for (const std::string& teacher : spec.teachers)
    require_one_target("teacher", first, *of_first.target, teacher,
                       *ModelDirectory::open(teacher).load_vocabularies().target);
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
                   "fraction of pairs to drop by their backward scores")
                .range(0, 0.99),
            Option("overlap-drop", &spec.overlap_drop,
                   "fraction of pairs to drop, those least similar to the reference")
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
  // Used by the steps convert and check, whatever the validations of the training measure.
  for (const config::Option& option : config::validation_fields(student.search))
    student.given.erase(option.name);
  if (student.unit_given() || architecture_of(student.model).has_blocks()) check_effects(student);
  spec.student.typed.clear();
  if (!settings.asks_dump().empty()) spec.student.spread.clear();  // a dump has no shorthands
}

void check(const DistillSpec& spec) {
  if (spec.output.empty())
    fail(ExitStatus::usage, "output: no work directory given; name it with --output DIR");
  if (spec.teachers.empty())
    fail(ExitStatus::usage, "teacher: no model directory given; name it with --teacher DIR");
  check_teachers(spec);
  if (spec.backward.empty() && spec.backward_drop != DistillSpec{}.backward_drop)
    fail(ExitStatus::usage,
         "backward-drop: there is no model to score with; name it with --backward DIR");
  if (!spec.backward.empty()) check_model("backward", spec.backward);
  check_precision(spec);
  if (spec.aligns()) check_attention(spec);
  if (spec.student.model.context_sentences > 0)
    fail(ExitStatus::usage,
         "context-sentences: {}, but nmt-distill drops pairs, and with them the order of documents",
         spec.student.model.context_sentences);
  const std::vector<std::string>& text = spec.student.data.train_sets;
  if (text.empty() || text.size() > 2)
    fail(ExitStatus::usage,
         "train-sets: {} given, expected a source text and, optionally, its reference",
         counted(std::ssize(text), "file"));
  if (text.size() == 1 && spec.selection.value_or(Selection::score) != Selection::score)
    fail(ExitStatus::usage, "select: {} needs a reference; train-sets has a source text only",
         name_of(*spec.selection));
  if (text.size() == 1 && spec.overlap_drop > 0)
    fail(ExitStatus::usage, "overlap-drop: {} needs a reference; train-sets has a source text only",
         spec.overlap_drop);
  const std::int64_t lines = check_lines("train-sets", text);
  if (spec.student.data.valid_sets.empty())
    fail(ExitStatus::usage,
         "valid-sets: no development set given; name it with --valid-sets SOURCE REFERENCE");
  check_pair("valid-sets", spec.student.data.valid_sets);
  if (!spec.test_sets.empty()) check_pair("test-sets", spec.test_sets);
  require_text(spec.test_sets.empty() ? spec.student.data.valid_sets[0] : spec.test_sets[0]);
  if (spec.shortlist.size() != 2)
    fail(ExitStatus::usage, "shortlist: {} given, expected two: FIRST and BEST",
         counted(std::ssize(spec.shortlist), "number"));
  if (spec.redo > spec.until)
    fail(ExitStatus::usage, "redo: {} comes after until: {}", name_of(spec.redo),
         name_of(spec.until));
  check_student(spec, lines);
}

}  // namespace nmt::app
