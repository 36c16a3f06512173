#include "config/fields.h"

namespace nmt::config {
namespace {

std::vector<Option> list(DataSpec& s) {
  std::vector<Option> options = in_group(
      "data",
      {
          Option("train-sets", &s.train_sets, "source and target text, one sentence a line")
              .alias({"t"})
              .meta("SRC TRG"),
          Option("src", {}, "the first of --train-sets")
              .meta("FILE")
              .spreads_to({"train-sets"}, "", 0),
          Option("tgt", {}, "the second of --train-sets")
              .alias({"trg"})
              .meta("FILE")
              .spreads_to({"train-sets"}, "", 1),
          Option("vocabs", &s.vocabs,
                 "SentencePiece models to take instead of training them: one for both sides, or "
                 "source and target")
              .alias({"v"})
              .meta("FILE..."),
          Option("dim-vocabs", &s.dim_vocabs,
                 "sizes of the vocabularies to train: one number, or source and target")
              .range(8, 1000000)
              .meta("N...")
              .chosen_by_default(),
          Option("joint-vocab", &s.joint_vocab, "train one vocabulary for both sides"),
          Option("sentencepiece-max-lines", &s.sentencepiece_max_lines,
                 "lines at most, taken at even distances, to train a vocabulary on")
              .range(1),
          Option("max-length", &s.max_length,
                 "longest sentence in tokens; pairs with a longer one are left out, and counted")
              .range(1, 100000),
          Option("max-length-crop", &s.max_length_crop,
                 "crop longer sentences instead of leaving the pair out"),
          Option("valid-sets", &s.valid_sets,
                 "source and target text to validate on; none: held out from the training text")
              .meta("SRC TRG"),
          Option("valid-lines", &s.valid_lines,
                 "pairs to hold out for validation when there are no --valid-sets")
              .range(1)
              .chosen_by_default(),
          Option("seed", &s.seed, "start of all random numbers").range(1),
      });
  for (Option& option : in_group(
           "batch",
           {
               Option("mini-batch", &s.mini_batch, "most sentences of a batch; 0: no such limit")
                   .alias({"batch-size"})
                   .range(0, 1000000),
               Option("mini-batch-words", &s.mini_batch_words,
                      "most target tokens of a batch, padding included")
                   .range(1, 100000000)
                   .chosen_by_default(),
               Option("maxi-batch", &s.maxi_batch,
                      "batches of a window within which sentences are sorted by length")
                   .range(1, 1000000),
           }))
    options.push_back(std::move(option));
  return options;
}

}  // namespace

std::vector<Option> fields(DataSpec& spec) {
  return with_defaults(spec, [](auto& s) { return list(s); });
}

void check(const DataSpec& s, ExitStatus status) {
  const auto pair = [&](const char* name, const std::vector<std::string>& files) {
    if (!files.empty() && files.size() != 2)
      fail(status, "{}: {} {} given, expected two: source and target", name, files.size(),
           files.size() == 1 ? "file" : "files");
    for (std::size_t i = 0; i < files.size(); ++i)
      if (files[i].empty())
        fail(status, "{}: no {} file given", name, i == 0 ? "source" : "target");
  };
  pair("train-sets", s.train_sets);
  pair("valid-sets", s.valid_sets);
  if (s.vocabs.size() > 2)
    fail(status, "vocabs: {} files given, expected one for both sides, or source and target",
         s.vocabs.size());
  if (s.dim_vocabs.size() > 2)
    fail(status, "dim-vocabs: {} sizes given, expected one, or source and target",
         s.dim_vocabs.size());
  if (s.vocabs.empty() && s.joint_vocab && s.dim_vocabs.size() == 2 &&
      s.dim_vocabs[0] != s.dim_vocabs[1])
    fail(status,
         "dim-vocabs: {} and {} for one joint vocabulary; give one size, or --no-joint-vocab",
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
