#include "app/models/loaded_ensemble.h"

#include <limits>

#include <gtest/gtest.h>

namespace nmt::app {
namespace {

TEST(EnsembleSpec, WeightsAreAboveZero) {
  EnsembleSpec spec;
  spec.models = {"one"};
  for (const double weight : {0.0, -0.5, std::numeric_limits<double>::quiet_NaN(),
                              std::numeric_limits<double>::infinity()}) {
    spec.weights = {weight};
    EXPECT_THROW(check(spec), Error) << weight;
  }
  spec.weights = {1e-3};
  EXPECT_NO_THROW(check(spec));
  spec.models = {"one", "two"};
  EXPECT_THROW(check(spec), Error);
}

}  // namespace
}  // namespace nmt::app
