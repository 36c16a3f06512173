#include "model/check.h"

#include "core/error.h"

#include <algorithm>
#include <string>
#include <vector>

#include <fmt/ranges.h>

namespace nmt {
namespace {

void positive(const char* name, int value) {
  if (value < 1) fail(ExitStatus::usage, "{}: {} is not a positive number", name, value);
}

void one_of(const char* name, const std::string& value, const std::vector<std::string>& allowed) {
  if (std::find(allowed.begin(), allowed.end(), value) == allowed.end())
    fail(ExitStatus::usage, "{}: '{}' is none of {}", name, value, fmt::join(allowed, ", "));
}

// The settings of attention mean nothing without it.
void check_without_attention(const ModelSpec& spec) {
  if (spec.type != "seq2seq")
    fail(ExitStatus::usage,
         "attention none: type {} reads the source through attention, additive or dot; type "
         "seq2seq takes none",
         spec.type);
  if (spec.attention_query != "auto")
    fail(ExitStatus::usage,
         "attention-query: '{}' means nothing beside attention none; leave it auto",
         spec.attention_query);
  if (spec.heads != 1)
    fail(ExitStatus::usage, "heads: {} means nothing beside attention none; leave it 1",
         spec.heads);
  if (spec.dim_attention != 0)
    fail(ExitStatus::usage, "dim-attention: {} means nothing beside attention none; leave it 0",
         spec.dim_attention);
}

}  // namespace

void check_model(const ModelSpec& spec) {
  positive("dim-emb", spec.dim_emb);
  positive("dim-rnn", spec.dim_rnn);
  positive("enc-depth", spec.enc_depth);
  positive("dec-depth", spec.dec_depth);
  positive("heads", spec.heads);
  one_of("type", spec.type, {"rnnsearch", "deep", "seq2seq", "gnmt"});
  one_of("attention", spec.attention, {"additive", "dot", "none"});
  one_of("attention-query", spec.attention_query, {"auto", "recurrent", "first-layer"});
  if (spec.attention == "none") check_without_attention(spec);
  if (spec.type == "rnnsearch" && (spec.enc_depth != 1 || spec.dec_depth != 1))
    fail(ExitStatus::usage,
         "type rnnsearch has one layer on each side, not enc-depth {} and dec-depth {}; type deep "
         "takes any",
         spec.enc_depth, spec.dec_depth);
  if (spec.context_aware && spec.type != "rnnsearch" && spec.type != "deep")
    fail(ExitStatus::usage, "context-aware: is for types rnnsearch and deep, not {}", spec.type);
  if (spec.type == "gnmt" && spec.dim_emb != spec.dim_rnn)
    fail(
        ExitStatus::usage,
        "type gnmt: dim-emb {} must equal dim-rnn {}, since the softmax reads the top layer itself",
        spec.dim_emb, spec.dim_rnn);
  if (spec.type == "gnmt" && spec.dec_depth < 2)
    fail(ExitStatus::usage,
         "type gnmt: dec-depth {}: the layers above the first read the context; at least 2",
         spec.dec_depth);
}

bool asks_recurrently(const ModelSpec& spec) {
  return spec.attention_query == "recurrent" ||
         (spec.attention_query == "auto" && spec.type != "gnmt");
}

}  // namespace nmt
