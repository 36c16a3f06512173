#include "config/fields.h"
#include "core/number_text.h"

#include <utility>

namespace nmt::config {
namespace {

std::vector<Option> text(DataSpec& s) {
  return {
      Option("train-sets", &s.train_sets, "source and target text, one sentence per line")
          .alias({"t"})
          .meta("SRC TRG")
          .with_role(Role::location),
      Option("src", {}, "source text").meta("FILE").spreads_to({"train-sets"}, "", 0),
      Option("tgt", {}, "target text")
          .alias({"trg"})
          .meta("FILE")
          .spreads_to({"train-sets"}, "", 1),
  };
}

std::vector<Option> vocabularies(DataSpec& s) {
  const IdleRule given = [&s] { return s.vocabs.empty() ? "" : "vocabs are given"; };
  return with_role(
      Role::vocabulary,
      {
          Option("vocabs", &s.vocabs, "SentencePiece models: one for both sides, or two")
              .unset_means("learned from the training text")
              .alias({"v"})
              .meta("FILE...")
              .kept_by_resume(),
          Option("vocab-type", &s.vocab_type,
                 "units of a learned vocabulary: subwords, or words between spaces")
              .idle_when(given),
          Option("dim-vocabs", &s.dim_vocabs, "vocabulary size for both sides, or two sizes")
              .range(8, 1000000)
              .meta("N...")
              .chosen_by_default()
              .idle_when(given),
          Option("joint-vocab", &s.joint_vocab, "one vocabulary for both sides").idle_when(given),
          Option("sentencepiece-max-lines", &s.sentencepiece_max_lines,
                 "evenly spaced lines to learn a vocabulary from")
              .range(1)
              .idle_when([&s, given]() -> std::string {
                const std::string why = given();
                return why.empty() && s.vocab_type == VocabularyKind::words ? "vocab-type is words"
                                                                            : why;
              }),
      });
}

std::vector<Option> sentences(DataSpec& s) {
  return {
      Option("max-length", &s.max_length,
             "sentence length limit; longer pairs are dropped and counted")
          .range(1, 100000),
      Option("max-length-unit", &s.max_length_unit,
             "unit of --max-length: pieces of the vocabulary, or words between spaces"),
      Option("max-length-crop", &s.max_length_crop, "crop long sentences instead of dropping them"),
      Option("guided-alignment", &s.guided_alignment,
             "word links of each training pair, such as 0-0 1-2, which attention learns")
          .meta("FILE")
          .differs_by_rank(),
      Option("valid-sets", &s.valid_sets, "development source and target text")
          .unset_means("held-out training pairs")
          .meta("SRC TRG")
          .with_role(Role::location)
          .changes_if([](const std::string&, const std::string& now) {
            return now == "none" ? "pairs held out now would have been trained on" : "";
          }),
      Option("valid-lines", &s.valid_lines, "pairs held out for validation without --valid-sets")
          .range(1)
          .chosen_by_default()
          .with_role(Role::hold_out)
          .idle_when([&s] { return s.valid_sets.empty() ? "" : "valid-sets are given"; }),
      Option("seed", &s.seed, "random seed").range(1).with_role(Role::hold_out),
  };
}

std::vector<Option> batches(DataSpec& s) {
  return {
      Option("mini-batch", &s.mini_batch, "maximum sentences per batch; 0: no limit")
          .alias({"batch-size"})
          .range(0, 1000000),
      Option("mini-batch-words", &s.mini_batch_words,
             "maximum target tokens per batch, padding included")
          .range(1, 100000000)
          .chosen_by_default(),
      Option("maxi-batch", &s.maxi_batch, "batches per window, which is sorted by sentence length")
          .range(1, 1000000),
  };
}

std::vector<Option> list(DataSpec& s) {
  return joined({in_group("data", joined({text(s), vocabularies(s), sentences(s)})),
                 in_group("batch", batches(s))});
}

}  // namespace

std::vector<Option> fields(DataSpec& spec) {
  return with_defaults(spec, [](auto& s) { return list(s); });
}

void check(const DataSpec& s, Task task, ExitStatus status) {
  const auto pair = [&](const char* name, const std::vector<std::string>& files) {
    if (!files.empty() && files.size() != 2)
      fail(status, "{}: {} given, expected two: source and target", name,
           counted(std::ssize(files), "file"));
    for (std::size_t i = 0; i < files.size(); ++i)
      if (files[i].empty())
        fail(status, "{}: no {} file given", name, i == 0 ? "source" : "target");
  };
  const auto one = [&](const char* name, const std::vector<std::string>& files) {
    if (files.size() > 1)
      fail(status, "{}: {} files given, {} needs one", name, files.size(), model_of(task));
    if (!files.empty() && files[0].empty()) fail(status, "{}: no file given", name);
  };
  if (s.guided_alignment.empty()) fail(status, "guided-alignment: no file given");
  for (const auto& [name, files] :
       {std::pair{"train-sets", &s.train_sets}, {"valid-sets", &s.valid_sets}}) {
    if (files_per_set(task) == 1)
      one(name, *files);
    else
      pair(name, *files);
  }
  if (s.vocabs.size() > 2)
    fail(status, "vocabs: {} files given, expected one for both sides, or source and target",
         s.vocabs.size());
  if (s.dim_vocabs.size() > 2)
    fail(status, "dim-vocabs: {} sizes given, expected one, or source and target",
         s.dim_vocabs.size());
  if (s.vocabs.empty() && s.joint_vocab && s.dim_vocabs.size() == 2 &&
      s.dim_vocabs[0] != s.dim_vocabs[1])
    fail(status,
         "dim-vocabs: {} and {} for one joint vocabulary; give one size, or joint-vocab=false",
         s.dim_vocabs[0], s.dim_vocabs[1]);
}

bool one_vocabulary(const DataSpec& s) {
  return s.vocabs.empty() ? s.joint_vocab : s.vocabs.size() == 1 || s.vocabs[0] == s.vocabs[1];
}

void check(const ModelSpec& model, const DataSpec& data, ExitStatus status) {
  if (!one_vocabulary(data) && (model.tied_embeddings_all || model.tied_embeddings_src))
    fail(status, "tied-embeddings-{}: needs one vocabulary for both sides, but {}",
         model.tied_embeddings_all ? "all" : "src",
         data.vocabs.empty() ? "joint-vocab is false" : "vocabs names two");
}

}  // namespace nmt::config
