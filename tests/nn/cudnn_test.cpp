// Which layers cuDNN and persistent kernels can run, and why not the others.

#include "nn/recurrent/conditional_layer.h"
#include "nn/recurrent/recurrent_layer.h"
#include "nn/recurrent/transition_layer.h"
#include "nn/unit_registry.h"

#include <gtest/gtest.h>

namespace nmt {
namespace {

TEST(Cudnn, KnowsLstmAndGruWithResetAfter) {
  const UnitSettings lstm{.unit = &find_unit("lstm", {}), .width = 6},
      after{.unit = &find_unit("gru", {{"reset", "after"}}), .width = 6};
  EXPECT_EQ(why_not_cudnn(lstm), "");
  EXPECT_EQ(why_not_cudnn(after), "");
  UnitSettings biased = lstm, normal = lstm, grouped = after;
  biased.bias = true;
  normal.layer_normalization = true;
  grouped.groups = 2;
  EXPECT_EQ(why_not_cudnn(biased), "");
  EXPECT_EQ(why_not_cudnn(normal), "layer normalization");
  EXPECT_EQ(why_not_cudnn(grouped), "groups");
  EXPECT_EQ(why_not_cudnn({.unit = &find_unit("gru", {{"reset", "before"}}), .width = 6}),
            "the unit gru reset=before");
  EXPECT_EQ(why_not_cudnn({.unit = &find_unit("lrn", {}), .width = 6}),
            "the unit lrn activation=tanh");
}

TEST(Cudnn, EveryLayerOfAModelIsNoted) {
  ParameterSet parameters;
  Rng rng(1);
  const Builder builder(Context{}, parameters, rng);
  const UnitSettings lstm{.unit = &find_unit("lstm", {}), .width = 6};
  const RecurrentLayer layer(Builder(builder, "a"), lstm, 5);
  const TransitionLayer two(Builder(builder, "b"), lstm, 5, 6);
  const ConditionalLayer conditional(Builder(builder, "c"), lstm, 5, 6, 4, {});
  ASSERT_EQ(parameters.recurrences().size(), 3u);
  EXPECT_EQ(parameters.recurrences()[0].layer, "a");
  EXPECT_EQ(parameters.recurrences()[0].cudnn_unsupported, "");
  EXPECT_EQ(parameters.recurrences()[0].persistent_unsupported, "the CPU");
  EXPECT_EQ(parameters.recurrences()[1].layer, "b");
  EXPECT_EQ(parameters.recurrences()[1].cudnn_unsupported, "two units a step");
  EXPECT_EQ(parameters.recurrences()[1].persistent_unsupported, "two units a step");
  EXPECT_EQ(parameters.recurrences()[2].layer, "c");
  EXPECT_EQ(parameters.recurrences()[2].cudnn_unsupported, "attention between two units");
}

}  // namespace
}  // namespace nmt
