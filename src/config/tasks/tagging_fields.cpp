#include "config/tasks/task_fields.h"

namespace nmt::config {

std::vector<Option> tagging_fields(ModelSpec& s) {
  TaggingSpec& tagging = s.tagging;
  return options_of(
      Task::tagging, s,
      {Option("tagging-network", &tagging.network,
              "tagging: recurrent layers forward, in both directions, or two-layer dependent")
           .with_role(Role::shape),
       Option("crf", &tagging.crf, "tagging: linear-chain CRF over the tags")
           .with_role(Role::shape),
       Option("dim-char-emb", &tagging.dim_char_emb, "tagging: width of character embeddings")
           .range(1, 4096)
           .with_role(Role::shape)
           .idle_when([&tagging] { return tagging.dim_char_rnn == 0 ? "dim-char-rnn is 0" : ""; }),
       Option("dim-char-rnn", &tagging.dim_char_rnn,
              "tagging: width of the layer over characters; 0: words alone")
           .range(0, 4096)
           .with_role(Role::shape),
       Option("word-min-count", &tagging.word_min_count,
              "tagging: rarer words of the training text are <unk>")
           .range(1, 1000000)
           .with_role(Role::vocabulary),
       Option("word-column", &tagging.word_column,
              "tagging: column of words; 0: 2 in CoNLL-U, else 1")
           .range(0, 1000)
           .with_role(Role::vocabulary),
       Option("tag-column", &tagging.tag_column,
              "tagging: column of tags; 0: 4 in CoNLL-U, else the last")
           .range(0, 1000)
           .with_role(Role::vocabulary)});
}

}  // namespace nmt::config
