// Every op of autograd/ops: values and gradients against references in double.

#include "tests/autograd/op_rows.h"
#include "tests/support/gradient_check.h"

#include <filesystem>
#include <fstream>
#include <set>
#include <string>

#include <gtest/gtest.h>

namespace nmt {
namespace {

using test::OpRow;

// The address sanitizer watches the ops, while most of the time is the reference's.
#if defined(__SANITIZE_ADDRESS__)
constexpr int shapes_of_each = 2;
constexpr bool measures_resolution = false;  // it needs more places
#else
constexpr int shapes_of_each = 4;
constexpr bool measures_resolution = true;
#endif
// A gradient that is wrong by this share must be seen on some of the shapes.
constexpr double smallest_fault = 1e-3;

// Functions of autograd/ops that have no gradient.
const std::set<std::string> without_gradient = {
    "send_symbols",   "freeze",      "freeze_blocks",         "freeze_for_zeros",
    "remember",       "logits",      "select_packed_columns", "turns",
    "linear_of_each", "join_packed", "select_rows_of_each"};
// It needs cuDNN and a device: tests/nn/cudnn_test.cpp holds it against linear() and recurrence().
const std::set<std::string> on_a_device = {"cudnn_layer"};

std::vector<OpRow> all_rows() {
  std::vector<OpRow> rows = test::plain_op_rows();
  for (const auto& more :
       {test::attention_op_rows(), test::self_attention_op_rows(), test::recurrent_op_rows(),
        test::matrix_op_rows(), test::label_op_rows()})
    rows.insert(rows.end(), more.begin(), more.end());
  return rows;
}

class OpGradients : public testing::TestWithParam<OpRow> {};

TEST_P(OpGradients, AgreeWithDifferencesInDouble) {
  test::GradientCheck::resolution().clear();
  for (int n = 0; n < shapes_of_each; ++n) {
    SCOPED_TRACE("shapes number " + std::to_string(n));
    test::Engine engine(1 + n);
    engine.rng = Rng(1000 + static_cast<std::uint64_t>(n));
    GetParam().check(engine);
    if (HasFatalFailure()) return;
  }
  EXPECT_FALSE(test::GradientCheck::resolution().empty());
  if (!measures_resolution) return;
  for (const auto& [operand, ratio] : test::GradientCheck::resolution())
    EXPECT_LT(ratio, smallest_fault) << operand << ": the tolerances would hide faults";
}

INSTANTIATE_TEST_SUITE_P(Table, OpGradients, testing::ValuesIn(all_rows()), [](const auto& row) {
  return row.param.op + (row.param.variant.empty() ? "" : "_" + row.param.variant);
});

TEST(OpTable, HasEveryOp) {
  const std::string letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_";
  std::set<std::string> declared, checked = without_gradient;
  // Declarations start in the first column: a type, a space, a name, a parenthesis.
  for (const auto& header :
       std::filesystem::directory_iterator(NMT_SOURCE_DIR "/src/autograd/ops")) {
    std::ifstream file(header.path());
    for (std::string line; std::getline(file, line);) {
      const std::size_t end = line.find('(');
      if (end == std::string::npos || end == 0 || letters.find(line[0]) == std::string::npos)
        continue;
      const std::size_t before = line.find_last_not_of(letters, end - 1);
      if (before == std::string::npos || line[before] != ' ' || before + 1 == end) continue;
      declared.insert(line.substr(before + 1, end - before - 1));
    }
  }
  EXPECT_GT(declared.size(), 15u);
  checked.insert(on_a_device.begin(), on_a_device.end());
  for (const OpRow& row : all_rows()) checked.insert(row.op);
  EXPECT_EQ(declared, checked);
}

}  // namespace
}  // namespace nmt
