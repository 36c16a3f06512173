#include "app/compute/product_choice.h"

#include "app/compute/compute.h"
#include "core/files/file.h"
#include "core/threads/thread_pool.h"
#include "kernels/products/bf16/bf16_products.h"
#include "kernels/products/product.h"
#include "kernels/products/product_method.h"

#include <cstdlib>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <unistd.h>

namespace nmt::app {
namespace {

using kernels::LibraryKinds;
using Answers = std::vector<bool>;

TEST(ProductChoice, IsMeasuredOnceForEachKey) {
  const std::string folder = testing::TempDir() + "nmt_choice_" + std::to_string(::getpid()),
                    path = folder + "/nmt/products.json";
  std::filesystem::remove_all(folder);
  int measured = 0;
  Answers result{true, false, true, false};
  const auto measure = [&] {
    ++measured;
    return result;
  };
  EXPECT_EQ(stored_choice(path, "a", 4, measure), result);
  result = {false, true, true, true};
  EXPECT_EQ(stored_choice(path, "a", 4, measure), (Answers{true, false, true, false}));
  EXPECT_EQ(measured, 1);
  EXPECT_EQ(stored_choice(path, "b", 4, measure), result);
  EXPECT_EQ(stored_choice(path, "a", 4, measure), (Answers{true, false, true, false}));
  EXPECT_EQ(measured, 2);
  const std::string deep = "{\"x\": " + std::string(300'000, '[') + std::string(300'000, ']') + "}";
  for (const std::string& damaged :
       {std::string(), std::string("{"), std::string("[]"), deep,
        std::string(R"({"a": [true, false, true]})"), std::string(R"({"a": [1, 2, 3, 4]})")}) {
    write_file(path, damaged);
    EXPECT_EQ(stored_choice(path, "a", 4, measure), result) << damaged.substr(0, 40);
    EXPECT_EQ(stored_choice(path, "a", 4, [] { return Answers(4); }), result)
        << damaged.substr(0, 40);
  }
  std::filesystem::remove_all(folder);
  measured = 0;
  EXPECT_EQ(stored_choice("", "a", 4, measure), std::nullopt) << "no place to store it";
  EXPECT_EQ(stored_choice("/proc/nowhere/products.json", "a", 4, measure), std::nullopt);
  EXPECT_EQ(measured, 0);
}

// Times of a side that takes `base`, ten times as long in every call that `disturbed` names, and
// longer with every call by `drift`.
std::function<double()> side(double base, const std::function<bool(int)>& disturbed, double drift) {
  return [=, call = 0]() mutable {
    const double time = base * (disturbed(call) ? 10 : 1) * (1 + drift * call);
    ++call;
    return time;
  };
}

TEST(ProductChoice, AComparisonWithstandsDisturbedCallsAndDrift) {
  const auto never = [](int) { return false; };
  const auto often = [](int call) { return call % 3 == 1; };
  const auto late = [](int call) { return call > 7; };
  for (const double drift : {0.0, 0.05, -0.02})
    for (const auto& mine : {std::function<bool(int)>(never), std::function<bool(int)>(often)})
      for (const auto& other : {std::function<bool(int)>(never), std::function<bool(int)>(late)}) {
        const auto faster = [&](double candidate, double present) {
          return is_faster(side(candidate, mine, drift), side(present, other, drift), 1.03);
        };
        EXPECT_TRUE(faster(1.0, 1.05)) << drift;
        EXPECT_FALSE(faster(1.0, 1.02)) << drift << ": within the margin";
        EXPECT_FALSE(faster(1.0, 0.9)) << drift;
      }
}

TEST(ProductChoice, AComparisonAlternatesWhoIsFirst) {
  // The second call of each pair is 10 % faster, whichever side it is.
  int call = 0;
  const auto timed = [&] { return call++ % 2 == 0 ? 1.0 : 0.9; };
  EXPECT_FALSE(is_faster(timed, timed, 1.12));
  std::string order;
  is_faster([&] { return order += 'c', 1.0; }, [&] { return order += 'p', 1.0; }, 1);
  EXPECT_EQ(order.substr(0, 10), "cpcppccppc");
}

TEST(ProductChoice, OnednnTakesAllProductsThatItCan) {
  std::string why;
  const kernels::ProductMethod* const library = kernels::ProductMethod::one_dnn(&why);
  if (!library) GTEST_SKIP() << why;
  library->use_for({});
  ComputeSpec spec;
  spec.cpu_threads = 1;
  spec.precision = Precision::float32;
  spec.products = ProductChoice::onednn;
  EXPECT_EQ(Compute(spec, ComputeUse::training).open_products(), library);
  EXPECT_TRUE(library->takes({.m = 64, .n = 64, .k = 64}));
  EXPECT_TRUE(library->takes({.m = 1000, .n = 64, .k = 64}));
  library->use_for(kernels::zen4_kinds);
}

TEST(ProductChoice, ThreeNumbersInBfloat16NeedAmxAndFloat32) {
  ComputeSpec spec;
  spec.cpu_threads = 1;
  spec.products = ProductChoice::bfloat16x3;
  const kernels::ProductMethod* const split = kernels::ProductMethod::bfloat16x3();
  {
    Compute compute(spec, ComputeUse::training);
    EXPECT_EQ(compute.precision(), Precision::float32) << "chosen with the products";
    if (split) {
      EXPECT_EQ(compute.open_products(), split);
      EXPECT_EQ(split->bf16_products()->parts, 3);
      EXPECT_FALSE(split->rounds_inputs());
    } else {
      EXPECT_THROW(compute.open_products(), Error);
    }
  }
  spec.precision = Precision::bfloat16;
  EXPECT_THROW(Compute(spec, ComputeUse::training), Error);
  ThreadPool pool(1);
  if (!split) {
    EXPECT_FALSE(bfloat16x3_is_faster({&pool}));
  }
}

TEST(ProductChoice, DecidesWhichProductsTheLibraryComputes) {
  std::string why;
  const kernels::ProductMethod* const library = kernels::ProductMethod::one_dnn(&why);
  if (!library) GTEST_SKIP() << why;
  const kernels::Product gradient{.m = 64, .n = 64, .k = 64, .transpose_a = true},
      long_sums{.m = 2000, .n = 64, .k = 512}, few_rows{.m = 64, .n = 64, .k = 64},
      many_rows{.m = 1000, .n = 64, .k = 64}, tiny{.m = 31, .n = 640, .k = 512};
  for (int bits = 0; bits < 16; ++bits) {
    const LibraryKinds kinds{(bits & 1) != 0, (bits & 2) != 0, (bits & 4) != 0, (bits & 8) != 0};
    library->use_for(kinds);
    EXPECT_EQ(library->takes(gradient), kinds[0]);
    EXPECT_EQ(library->takes(long_sums), kinds[1]);
    EXPECT_EQ(library->takes(few_rows), kinds[2]);
    EXPECT_EQ(library->takes(many_rows), kinds[3]);
    EXPECT_FALSE(library->takes(tiny));
  }
  ThreadPool pool(1);
  measure_products({&pool, library});
  library->use_for(kernels::zen4_kinds);
}

// Sets a variable of the environment for a scope.
class Variable {
 public:
  Variable(const char* name, const std::string& value) : name_(name) {
    if (const char* const before = std::getenv(name)) before_ = before;
    ::setenv(name, value.c_str(), 1);
  }
  ~Variable() { before_ ? ::setenv(name_, before_->c_str(), 1) : ::unsetenv(name_); }
  Variable(const Variable&) = delete;
  Variable& operator=(const Variable&) = delete;

 private:
  const char* name_;
  std::optional<std::string> before_;
};

TEST(ProductChoice, ThePrecisionOfThisProcessorIsStored) {
  const std::string folder = testing::TempDir() + "nmt_precision_" + std::to_string(::getpid()),
                    path = folder + "/nmt/products.json";
  std::filesystem::remove_all(folder);
  const Variable cache("XDG_CACHE_HOME", folder);
  ThreadPool pool(1);
  const bool faster = bfloat16_is_faster({&pool});
  if (!kernels::bf16_products().is_native) {
    EXPECT_FALSE(faster);
    EXPECT_FALSE(std::filesystem::exists(path)) << "nothing to measure";
    return;
  }
  std::string stored = read_file(path);
  const std::string answer = faster ? "true" : "false", other = faster ? "false" : "true";
  ASSERT_NE(stored.find(answer), std::string::npos) << stored;
  stored.replace(stored.find(answer), answer.size(), other);
  write_file(path, stored);
  EXPECT_EQ(bfloat16_is_faster({&pool}), !faster) << "measured again";
  std::filesystem::remove_all(folder);
}

// The second call would measure again: two measurements may differ.
TEST(ProductChoice, TheProcessorDecidesWhereNothingCanBeStored) {
  const Variable cache("XDG_CACHE_HOME", "/proc/nowhere");
  ThreadPool pool(1);
  EXPECT_EQ(bfloat16_is_faster({&pool}), kernels::fast_bf16_products() != nullptr);
  EXPECT_EQ(bfloat16x3_is_faster({&pool}), kernels::ProductMethod::bfloat16x3() != nullptr);
}

TEST(ProductChoice, AStoredChoiceIsForTheFeaturesOfAProcessor) {
  EXPECT_EQ(product_features("fpu avx2 fma sse4_2 avx512f avx512_bf16 amx_tile amx_bf16 avx"),
            "avx2 fma avx512f avx512_bf16 amx_tile amx_bf16");
  EXPECT_EQ(product_features(""), "");
  const std::string folder = testing::TempDir() + "nmt_features_" + std::to_string(::getpid());
  std::filesystem::remove_all(folder);
  std::string why;
  const kernels::ProductMethod* const library = kernels::ProductMethod::one_dnn(&why);
  if (!library || !measured_class().empty()) GTEST_SKIP() << why;
  const Variable cache("XDG_CACHE_HOME", folder);
  ThreadPool pool(2);
  EXPECT_EQ(choose_products({&pool, library}), "measured now");
  library->use_for(kernels::zen4_kinds);
  const std::string stored = read_file(folder + "/nmt/products.json");
  EXPECT_NE(stored.find("; caches "), stored.npos) << stored;
  std::filesystem::remove_all(folder);
}

TEST(ProductChoice, TheLogSaysWhyAPrecisionWasChosen) {
  const std::string folder = testing::TempDir() + "nmt_reason_" + std::to_string(::getpid());
  const Variable cache("XDG_CACHE_HOME", folder);
  ComputeSpec spec;
  spec.device = "cpu";
  spec.cpu_threads = 1;
  const auto line = [&](ComputeUse use) { return Compute(spec, use).describe("nmt-train"); };
  const std::string choice = bfloat16_is_faster(Compute(spec).cpu())
                                 ? "bfloat16 (auto: faster than float32 here)"
                                 : "float32 (auto: bfloat16 is not faster here)";
  EXPECT_EQ(line(ComputeUse::training).find(choice) != std::string::npos,
            kernels::bf16_products().is_native)
      << line(ComputeUse::training);
  EXPECT_EQ(line(ComputeUse::inference).find("auto"), std::string::npos);
  spec.precision = Precision::float32;
  EXPECT_EQ(line(ComputeUse::training).find("auto"), std::string::npos);
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace nmt::app
