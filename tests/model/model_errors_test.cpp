// Settings of a model that contradict each other: one line each that names the setting.

#include "core/error.h"
#include "model/check.h"
#include "model/model.h"
#include "tests/model/small_models.h"
#include "tests/support/engine.h"

#include <functional>
#include <string>

#include <gtest/gtest.h>

namespace nmt {
namespace {

using namespace test;

TEST(Model, NamesWhatDoesNotFit) {
  test::Engine engine;
  const auto message = [&](ModelSpec spec) -> std::string {
    try {
      Model model(spec, source_size, target_size, engine.context, 3);
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  };
  ModelSpec spec = small("deep", "lrn");
  spec.heads = 5;
  EXPECT_NE(message(spec).find("heads: 5"), std::string::npos);
  spec = small("deep", "lrn");
  spec.tied_embeddings_all = true;
  EXPECT_NE(message(spec).find("joint vocabulary"), std::string::npos);
  spec = small("deep", "lrn");
  spec.groups = 4;
  EXPECT_NE(message(spec).find(
                "groups: 4 must divide both the width 12 of what a layer reads and the width 10"),
            std::string::npos);
  spec = small("deep", "lnr");
  EXPECT_NE(message(spec).find("known: lrn"), std::string::npos);
  const auto refuses = [&](const char* type, const std::function<void(ModelSpec&)>& change,
                           const char* words) {
    ModelSpec wrong = small(type, "lrn");
    if (wrong.type == ModelType::gnmt) wrong.dim_emb = wrong.dim_rnn;
    change(wrong);
    EXPECT_NE(message(wrong).find(words), std::string::npos) << type << ": " << message(wrong);
    EXPECT_EQ(message(wrong).find('\n'), std::string::npos);
  };
  refuses(
      "rnnsearch", [](ModelSpec& s) { s.enc_depth = 2; },
      "enc-depth: 2 layers, but type rnnsearch has exactly 1");
  refuses(
      "rnnsearch", [](ModelSpec& s) { s.attention = AttentionType::none; },
      "type rnnsearch reads the source through attention");
  refuses(
      "deep", [](ModelSpec& s) { s.attention = AttentionType::none; }, "allowed for type seq2seq");
  refuses(
      "seq2seq", [](ModelSpec& s) { s.context_aware = true; },
      "context-aware: allowed for types deep and rnnsearch, not seq2seq");
  refuses(
      "gnmt", [](ModelSpec& s) { s.context_aware = true; }, "not gnmt");
  refuses(
      "gnmt", [](ModelSpec& s) { s.dim_emb = 12; }, "dim-emb 12 must equal dim-rnn 10");
  refuses(
      "gnmt", [](ModelSpec& s) { s.dec_depth = 1; }, "at least 2");
  refuses(
      "gnmt", [](ModelSpec& s) { s.attention = AttentionType::none; },
      "type gnmt reads the source through attention");
  refuses(
      "seq2seq", [](ModelSpec& s) { s.attention = AttentionType::none, s.heads = 2; },
      "heads: 2 has no effect with attention none");
  refuses(
      "seq2seq", [](ModelSpec& s) { s.attention = AttentionType::none, s.dim_attention = 8; },
      "dim-attention: 8 has no effect");
  refuses(
      "seq2seq",
      [](ModelSpec& s) { s.attention = AttentionType::none, s.attention_projections = true; },
      "attention-projections: true has no effect with attention none");
  refuses(
      "deep", [](ModelSpec& s) { s.context_aware = true, s.upper_context = false; },
      "upper-context: context-aware");
  refuses(
      "deep", [](ModelSpec& s) { s.enc_depth = 1, s.dim_enc_upper = 8; },
      "dim-enc-upper: 8, but enc-depth 1");
  refuses(
      "seq2seq",
      [](ModelSpec& s) {
        s.attention = AttentionType::none, s.attention_query = AttentionQuery::recurrent;
      },
      "attention-query: recurrent has no effect");
}

// Layers that carry vectors between two units, heads that do not divide a layer, and a decoder that
// would not see the source.
TEST(Model, UnitsWithAMatrixStateRefuseWhatTheyCannotDo) {
  test::Engine engine(1);
  const auto refused = [&](const ModelSpec& spec, const std::string& reason) {
    try {
      check_model(spec);
      const Model model(spec, source_size, target_size, engine.context, 3);
      ADD_FAILURE() << reason;
    } catch (const Error& error) {
      EXPECT_EQ(error.status(), ExitStatus::usage);
      EXPECT_NE(std::string(error.what()).find(reason), std::string::npos) << error.what();
    }
  };
  ModelSpec spec = small("deep", "gla");
  spec.attention_query = AttentionQuery::recurrent;
  refused(spec, "unit gla: a unit with a matrix state does not run in the conditional decoder");
  spec = small("deep", "gla");
  spec.context_aware = true;
  refused(spec, "does not run in context-aware layers");
  spec = small("deep", "gla");
  spec.state_heads = 3;
  refused(spec, "state-heads: 3 does not divide the width 10 of unit gla");
  spec = small("seq2seq", "gla");
  spec.attention = AttentionType::none;
  refused(spec, "attention none: unit gla");
}

}  // namespace
}  // namespace nmt
