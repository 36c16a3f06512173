#include "config/fields.h"
#include "config/settings.h"

#include <gtest/gtest.h>

namespace nmt::config {
namespace {

TEST(ComputeFields, TrainingChoosesItsPrecisionAndHasNoInt8) {
  ComputeSpec spec;
  Settings settings("test", "", "");
  settings.add(training_fields(spec));
  settings.read({"--cuda-graphs", "off", "--recurrences", "cudnn", "--products", "onednn"});
  EXPECT_EQ(spec.precision, std::nullopt);
  EXPECT_EQ(spec.cuda_graphs, GraphUse::off);
  EXPECT_EQ(spec.recurrences, RecurrenceChoice::cudnn);
  EXPECT_EQ(spec.products, ProductChoice::onednn);
  try {
    ComputeSpec other;
    Settings refused("test", "", "");
    refused.add(training_fields(other)).read({"--precision", "int8"});
    FAIL();
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "--precision: 'int8' is not one of: auto, float32, tf32, bfloat16");
  }
}

TEST(ComputeFields, RecurrencesAreOwnUnlessChosen) {
  ComputeSpec spec;
  Settings settings("test", "", "");
  settings.add(decoding_fields(spec)).read({});
  EXPECT_EQ(spec.recurrences, RecurrenceChoice::own);
  settings.read({"--recurrences", "auto"});
  EXPECT_EQ(spec.recurrences, RecurrenceChoice::automatic);
  settings.read({"--recurrences", "persistent"});
  EXPECT_EQ(spec.recurrences, RecurrenceChoice::persistent);
}

TEST(ComputeFields, DecodingTakesTheDirectorysPrecision) {
  ComputeSpec spec;
  Settings settings("test", "", "");
  settings.add(decoding_fields(spec));
  settings.read({});
  EXPECT_EQ(spec.precision, std::nullopt);
  EXPECT_NE(settings.yaml().find("precision: auto"), std::string::npos);
  EXPECT_EQ(settings.yaml().find("products"), std::string::npos);
}

}  // namespace
}  // namespace nmt::config
