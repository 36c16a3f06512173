#pragma once

// The table of ops: one row for each op of autograd/ops and variant of it, with the check of its
// values and gradients on random shapes (tests/support/gradient_check.h).

#include "tests/support/engine.h"

#include <functional>
#include <ostream>
#include <string>
#include <vector>

namespace nmt::test {

struct OpRow {
  std::string op;       ///< as autograd/ops names it
  std::string variant;  ///< letters, digits and _
  std::function<void(Engine&)> check;
};
inline std::ostream& operator<<(std::ostream& out, const OpRow& row) {
  return out << row.op << ' ' << row.variant;
}

std::vector<OpRow> plain_op_rows();
std::vector<OpRow> attention_op_rows();
std::vector<OpRow> self_attention_op_rows();
std::vector<OpRow> recurrent_op_rows();
std::vector<OpRow> matrix_op_rows();
std::vector<OpRow> label_op_rows();

/// A random size.
inline std::int64_t between(Engine& engine, std::int64_t least, std::int64_t most) {
  return least +
         static_cast<std::int64_t>(engine.rng.below(static_cast<std::uint64_t>(most - least + 1)));
}

}  // namespace nmt::test
