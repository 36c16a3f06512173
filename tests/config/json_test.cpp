#include "config/json.h"

#include "config/fields.h"
#include "core/nlohmann.h"

#include <gtest/gtest.h>

namespace nmt::config {
namespace {

using Json = nlohmann::ordered_json;

std::string refused(const std::string& text) {
  ModelSpec spec;
  try {
    from_json(Json::parse(text), fields(spec), "config.json");
  } catch (const Error& error) {
    EXPECT_EQ(error.status(), ExitStatus::data);
    return error.what();
  }
  return "no error";
}
// All that a stored model must say.
const std::string chosen =
    R"("dim-emb": 8, "dim-rnn": 8, "enc-depth": 1, "dec-depth": 1, "dropout-emb": 0, "dropout-rnn": 0.5, "dropout-readout": 0)";

TEST(Json, EverySpecReadsBack) {
  ModelSpec model;
  model.enc_cell = "gru";
  model.dim_emb = model.dim_rnn = 77;
  model.enc_depth = model.dec_depth = 2;
  model.dropout_emb = model.dropout_rnn = model.dropout_readout = 0.1;
  model.tied_embeddings_all = true;
  ModelSpec copy;
  from_json(Json::parse(to_json(fields(model)).dump()), fields(copy), "x");
  EXPECT_EQ(to_json(fields(copy)), to_json(fields(model)));
  EXPECT_EQ(copy.enc_cell, "gru");
  EXPECT_EQ(copy.dropout_emb, 0.1);

  DataSpec data;
  data.train_sets = {"a \"b\"", "ü"};
  data.seed = 18446744073709551615u;
  DataSpec data_copy;
  from_json(Json::parse(to_json(fields(data)).dump()), fields(data_copy), "x");
  EXPECT_EQ(data_copy.train_sets, data.train_sets);
  EXPECT_EQ(data_copy.seed, data.seed);
  EXPECT_TRUE(data_copy.dim_vocabs.empty());

  TrainSpec train;
  train.learn_rate = 0.1 + 0.2;  // more digits than are usually printed
  train.after = "3e,1Gt";
  TrainSpec train_copy;
  from_json(Json::parse(to_json(fields(train)).dump()), fields(train_copy), "x");
  EXPECT_EQ(train_copy.learn_rate, train.learn_rate);
  EXPECT_EQ(train_copy.after, train.after);
  EXPECT_EQ(train_copy.rnmt_schedule, train.rnmt_schedule);
}

TEST(Json, IsReadStrictly) {
  EXPECT_EQ(refused("{" + chosen + "}"), "no error");
  EXPECT_EQ(refused("{" + chosen + R"(, "heads": 1.5})"),
            "config.json: heads: '1.5' is not an integer from 1 to 1024");
  EXPECT_EQ(refused("{" + chosen + R"(, "heads": "1"})"),
            "config.json: heads: '1' is not an integer from 1 to 1024");
  EXPECT_EQ(refused("{" + chosen + R"(, "heads": 0})"),
            "config.json: heads: '0' is not an integer from 1 to 1024");
  EXPECT_EQ(refused("{" + chosen + R"(, "heads": 99999999999999999999})"),
            "config.json: heads: '1e+20' is not an integer from 1 to 1024");
  EXPECT_EQ(refused("{" + chosen + R"(, "bias": "true"})"),
            "config.json: bias: 'true' is not true or false");
  EXPECT_EQ(refused("{" + chosen + R"(, "attention": null})"),
            "config.json: attention: 'null' is not one of: additive, dot, none");
  EXPECT_EQ(refused("{" + chosen + R"(, "attention": "nothing"})"),
            "config.json: attention: 'nothing' is not one of: additive, dot, none");
  EXPECT_EQ(refused("{" + chosen + R"(, "unit": "gru", "haeds": 1})"),
            "config.json: unknown fields 'unit', 'haeds'; written by another version?");
  EXPECT_EQ(
      refused(
          R"({"type": "deep", "dim-emb": 5, "dim-rnn": 8, "enc-depth": 1, "dec-depth": 1, "dropout-emb": 0, "dropout-rnn": 0})"),
      "config.json: dropout-readout is missing");
  EXPECT_EQ(refused("[]"), "config.json: expected a JSON object of settings");
}

}  // namespace
}  // namespace nmt::config
