#pragma once

// The parity table: one group for each source of cuda/kernels, one row for each kernel. A group is
// a file in this folder and its line in groups.def.

#include "tests/cuda/parity.h"

namespace nmt::test {

#define NMT_PARITY_GROUP(name) std::vector<ParityRow> name##_parity();
#include "tests/cuda/groups.def"
#undef NMT_PARITY_GROUP

/// All rows of all groups.
std::vector<ParityRow> parity_table();

}  // namespace nmt::test
