#pragma once

// The parity table: a group a file of cuda/, a row a kernel. A group is a file here and its line in
// groups.def.

#include "tests/cuda/parity.h"

namespace nmt::test {

#define NMT_PARITY_GROUP(name) std::vector<ParityRow> name##_parity();
#include "tests/cuda/groups.def"
#undef NMT_PARITY_GROUP

/// All rows of all groups.
std::vector<ParityRow> parity_table();

}  // namespace nmt::test
