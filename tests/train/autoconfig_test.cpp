#include "train/autoconfig.h"

#include "train/optimization/schedule.h"

#include <algorithm>
#include <tuple>

#include <gtest/gtest.h>

namespace nmt::train {
namespace {

TEST(AutoConfig, HoldsOutATwentiethWithinBounds) {
  EXPECT_EQ(held_out_pairs(29000), 1000);
  EXPECT_EQ(held_out_pairs(10'000'000), 1000);
  EXPECT_EQ(held_out_pairs(2000), 100);
  EXPECT_EQ(held_out_pairs(100), 10);
  EXPECT_EQ(held_out_pairs(12), 6);
  EXPECT_EQ(held_out_pairs(2), 1);
}

TEST(AutoConfig, ThirtyThousandCaptions) {
  ModelSpec model;
  DataSpec data;
  TrainSpec train;
  const auto choices = choose({28'000, 2'100'000}, model, data, train);
  EXPECT_EQ(model.dim_emb, 256);
  EXPECT_EQ(model.dim_rnn, 256);
  EXPECT_EQ(model.enc_depth, 2);
  EXPECT_EQ(model.dec_depth, 2);
  EXPECT_EQ(data.dim_vocabs, std::vector<int>{8000});
  EXPECT_EQ(data.mini_batch_words, 1280);
  EXPECT_GT(model.dropout_rnn, 0);
  // 2,100,000 / 4.5 + 28,000 = 494,667 labels, over 0.9 * 1280 of them an update: 429 updates.
  EXPECT_EQ(train.valid_freq, "430u");
  EXPECT_EQ(train.disp_freq, "86u");
  for (const Choice& choice : choices) EXPECT_FALSE(choice.why.empty()) << choice.name;
  EXPECT_NO_THROW(Schedule{train});
}

TEST(AutoConfig, AnEpochOfFewPairsPerBatchHasMoreUpdates) {
  ModelSpec model;
  DataSpec data;
  data.mini_batch = 20;
  TrainSpec train;
  train.optimizer_delay = 2;
  choose({28'000, 2'100'000}, model, data, train);
  EXPECT_EQ(train.valid_freq, "700u");  // 28,000 pairs by 40
}

TEST(AutoConfig, CheckpointsComeWithoutValidationsToo) {
  for (const auto& [valid, save, expected] : {std::tuple{"", "", "430u"},
                                              {"7u", "", "7u"},
                                              {"0", "", "430u"},
                                              {"0u", "", "430u"},
                                              {"0", "9u", "9u"},
                                              {"0", "0", "0"}}) {
    ModelSpec model;
    DataSpec data;
    TrainSpec train;
    train.valid_freq = valid;
    train.save_freq = save;
    choose({28'000, 2'100'000}, model, data, train);
    EXPECT_EQ(train.save_freq, expected) << valid << " " << save;
  }
}

TEST(AutoConfig, SmallCorporaGetAGru) {
  const auto unit = [](std::int64_t pairs, auto change) {
    ModelSpec model;
    change(model);
    const std::string before = model.enc_cell + " " + model.dec_cell;
    const bool chosen = choose_unit({pairs, pairs * 60}, model);
    const std::string after = model.enc_cell + " " + model.dec_cell;
    EXPECT_EQ(chosen, after != before);
    return after;
  };
  const auto same = [](ModelSpec&) {};
  EXPECT_EQ(unit(499'999, same), "gru gru");
  EXPECT_EQ(unit(500'000, same), "lrn lrn");
  EXPECT_EQ(unit(5'000, [](ModelSpec& m) { m.type = ModelType::rnnsearch; }), "gru gru");
  EXPECT_EQ(unit(5'000, [](ModelSpec& m) { m.type = ModelType::block; }), "lrn lrn");
  EXPECT_EQ(unit(5'000, [](ModelSpec& m) { m.dec_cell = "ssru"; }), "lrn ssru");
}

TEST(AutoConfig, OneVocabularyIsOneTable) {
  const auto ties = [](auto change) {
    ModelSpec model;
    DataSpec data;
    change(data);
    const bool chosen = choose_tying(model, data);
    EXPECT_EQ(chosen, model.tied_embeddings_all);
    return chosen;
  };
  EXPECT_TRUE(ties([](DataSpec&) {}));
  EXPECT_FALSE(ties([](DataSpec& d) { d.joint_vocab = false; }));
  EXPECT_TRUE(ties([](DataSpec& d) { d.vocabs = {"joint.spm"}; }));
  EXPECT_FALSE(ties([](DataSpec& d) { d.vocabs = {"en.spm", "de.spm"}; }));
}

TEST(AutoConfig, WeightsAreAveragedWhereTheLearningRateIsChosen) {
  const auto smoothing = [](std::int64_t pairs, auto change) {
    TrainSpec train;
    change(train);
    const double before = train.exponential_smoothing;
    const bool chosen = choose_smoothing({pairs, pairs * 60}, train);
    EXPECT_EQ(chosen, train.exponential_smoothing != before);
    return train.exponential_smoothing;
  };
  const auto same = [](TrainSpec&) {};
  EXPECT_EQ(smoothing(29'000, same), 0.001);
  EXPECT_EQ(smoothing(499'999, same), 0.001);
  EXPECT_EQ(smoothing(500'000, same), 0.0001);
  EXPECT_EQ(smoothing(29'000, [](TrainSpec& t) { t.learn_rate = 0.001; }), 0);
  EXPECT_EQ(smoothing(29'000, [](TrainSpec& t) { t.average_after = 3; }), 0);
  EXPECT_EQ(smoothing(29'000, [](TrainSpec& t) { t.exponential_smoothing = 0.01; }), 0.01);
}

TEST(AutoConfig, LargeCorporaHaveNoise) {
  const auto rates = [](std::int64_t pairs, NoiseSpec noise, auto change) {
    DataSpec data;
    change(data);
    const std::size_t choices = choose_noise({pairs, pairs * 60}, data, noise).size();
    return std::vector<double>{noise.upper, noise.title, noise.typos, noise.punctuation,
                               static_cast<double>(choices)};
  };
  const auto same = [](DataSpec&) {};
  const auto words = [](DataSpec& d) { d.vocab_type = VocabularyKind::words; };
  // github.com/mozilla/translations: 7 % upper case, 5 % title case, 5 % typos, 20 % punctuation.
  EXPECT_EQ(rates(500'000, {}, same), (std::vector<double>{0.07, 0.05, 0.05, 0.2, 4}));
  EXPECT_EQ(rates(499'999, {}, same), (std::vector<double>{0, 0, 0, 0, 0}));
  EXPECT_EQ(rates(10'000'000, {}, words), (std::vector<double>{0, 0, 0, 0, 0}));
  EXPECT_EQ(rates(10'000'000, {0, -1, 0.5, 0}, same), (std::vector<double>{0, 0.05, 0.5, 0, 1}));
}

TEST(AutoConfig, WhatAsksTheSourceIsSaid) {
  using Query = std::optional<AttentionQuery>;
  const auto query = [](ModelType type, AttentionType attention = AttentionType::additive,
                        Query set = {}) {
    ModelSpec model;
    model.type = type;
    model.attention = attention;
    model.attention_query = set;
    choose_attention_query(model);
    return model.attention_query;
  };
  EXPECT_EQ(query(ModelType::deep), AttentionQuery::recurrent);
  EXPECT_EQ(query(ModelType::gnmt), AttentionQuery::first_layer);
  EXPECT_EQ(query(ModelType::gnmt, AttentionType::additive, AttentionQuery::recurrent),
            AttentionQuery::recurrent);
  EXPECT_EQ(query(ModelType::seq2seq, AttentionType::none), Query());
}

TEST(AutoConfig, HowGatesStartIsSaid) {
  ModelSpec model;
  DataSpec data;
  TrainSpec train;
  model.dim_rnn = 64;
  const auto is_said = [&] {
    const auto choices = choose({28'000, 2'100'000}, model, data, train);
    return std::any_of(choices.begin(), choices.end(),
                       [](const Choice& choice) { return choice.name == "gate-init"; });
  };
  EXPECT_TRUE(is_said());
  EXPECT_EQ(model.gate_init, usual_gate_init);
  model.gate_init = GateInit::chrono;
  EXPECT_FALSE(is_said());
  EXPECT_EQ(model.gate_init, GateInit::chrono);
}

TEST(AutoConfig, BlocksScaleEmbeddings) {
  using Scale = std::optional<EmbeddingScale>;
  const auto scale = [](ModelType type, Scale set = {}) {
    ModelSpec model;
    model.type = type;
    model.block.embedding_scale = set;
    choose_embedding_scale(model);
    return model.block.embedding_scale;
  };
  EXPECT_EQ(scale(ModelType::block), EmbeddingScale::sqrt);
  EXPECT_EQ(scale(ModelType::block, EmbeddingScale::none), EmbeddingScale::none);
  EXPECT_EQ(scale(ModelType::deep), Scale()) << "the option is one of blocks";
}

TEST(AutoConfig, WhatIsSetStays) {
  ModelSpec model;
  model.dim_emb = 64;
  model.dropout_emb = 0;
  DataSpec data;
  data.vocabs = {"joint.spm"};
  TrainSpec train;
  train.after = "7u";
  train.learn_rate = 0.5;
  const auto choices = choose({3'000'000, 300'000'000}, model, data, train);
  EXPECT_EQ(model.dim_emb, 64);
  EXPECT_EQ(model.dim_rnn, 1024);
  EXPECT_EQ(model.dropout_emb, 0);
  EXPECT_TRUE(data.dim_vocabs.empty());
  EXPECT_EQ(train.after, "7u");
  EXPECT_EQ(train.learn_rate, 0.5);
  for (const Choice& choice : choices) {
    EXPECT_NE(choice.name, "dim-emb");
    EXPECT_NE(choice.name, "after");
  }
}

TEST(AutoConfig, EachOptimizerHasItsRate) {
  for (const auto& [name, rate] : {std::pair{"adadelta", 1.0},
                                   {"adagrad", 0.05},
                                   {"sgd", 1.0},
                                   {"adam", 0.004},
                                   {"adamw", 0.004}}) {
    ModelSpec model;
    DataSpec data;
    TrainSpec train;
    train.optimizer = parse_enum<UpdateRule>(name, "optimizer");
    choose({28'000, 2'100'000}, model, data, train);
    EXPECT_EQ(train.learn_rate, rate) << name;
    const Schedule schedule(train);
    // Those with a rate of their own begin with it and keep it; the others warm up.
    const bool warms_up = std::string(name).starts_with("adam");
    EXPECT_EQ(schedule.rate({1, 0.01, 4000}, {}), warms_up ? rate / 400 : rate) << name;
    EXPECT_EQ(schedule.rate({100000, 50, 400'000'000}, {}) < rate, warms_up) << name;
  }
}

TEST(AutoConfig, LargerCorporaNeverGetLess) {
  int width = 0, vocabulary = 0;
  for (std::int64_t pairs : {10, 4'999, 5'000, 20'000, 99'999, 100'000, 1'000'000, 5'000'000}) {
    ModelSpec model;
    DataSpec data;
    TrainSpec train;
    choose({pairs, pairs * 60}, model, data, train);
    EXPECT_GE(model.dim_rnn, width);
    EXPECT_GE(data.dim_vocabs.at(0), vocabulary);
    width = model.dim_rnn, vocabulary = data.dim_vocabs.at(0);
  }
}

}  // namespace
}  // namespace nmt::train
