// Numbers of weights, against a paper's table and against sums by hand.

#include "model/model.h"

#include <array>
#include <cstdint>
#include <map>
#include <string>

#include <gtest/gtest.h>

namespace nmt {
namespace {

// ATR paper, table 4: N = 1000, embedding 620, 40K + 40K symbols, tied softmax.
TEST(ParameterTotals, OfThePapers) {
  const auto millions = [](const std::string& unit) {
    ModelSpec spec;
    spec.type = ModelType::rnnsearch;
    spec.enc_cell = spec.dec_cell = unit;
    spec.dim_emb = 620;
    spec.dim_rnn = 1000;
    spec.enc_depth = spec.dec_depth = 1;
    spec.layer_normalization = false;
    return static_cast<double>(Model(spec, 40000, 40000, Context{}, 1).parameters().elements()) /
           1e6;
  };
  EXPECT_NEAR(millions("gru"), 83.5, 0.1);
  EXPECT_NEAR(millions("lstm"), 93.3, 0.1);
  EXPECT_NEAR(millions("ran"), 79.5, 0.1);
  EXPECT_NEAR(millions("atr"), 67.8, 0.1);
}

// Deep models without their tables, by hand: E = D = 6, d = 1024, not context-aware, in units of
// d*d and of d. Encoder: two cells, a map of 2d, five cells with a map each. Decoder: a conditional
// pair, two attention maps, a map; five cells over [x; c] with a map each; six initial states; the
// readout.
TEST(ParameterTotals, OfTheDeepModel) {
  for (const char* unit : {"lrn", "olrn", "gru", "lstm"}) {
    ModelSpec spec;
    spec.enc_cell = spec.dec_cell = unit;
    spec.dim_emb = spec.dim_rnn = 1024;
    spec.enc_depth = spec.dec_depth = 6;
    spec.layer_normalization = false;
    const std::map<std::string, std::array<double, 3>> planes = {
        {"lrn", {3, 0, 1}}, {"olrn", {4, 0, 1}}, {"gru", {3, 3, 1}}, {"lstm", {4, 4, 2}}};
    const auto [w, u, states] = planes.at(unit);
    const double encoder = 2 * (w + u) + 2 + 5 * (w + u + 1);
    const double decoder = 2 * (w + u) + 2 + 1 + 5 * (2 * w + u + 1) + 6 * states + 2;
    const double vectors =
        7 * u + 6 + 7 * u + 1 + 6 + 6 * states + 1;  // biases of h'U and of the maps, v, readout
    const double expected = 1024.0 * 1024.0 * (encoder + decoder) + 1024.0 * vectors;
    const std::int64_t symbols = 5000;
    const double tables = 2.0 * symbols * 1024 + symbols;
    EXPECT_EQ(
        static_cast<double>(Model(spec, symbols, symbols, Context{}, 1).parameters().elements()),
        expected + tables)
        << unit;
  }
}

}  // namespace
}  // namespace nmt
