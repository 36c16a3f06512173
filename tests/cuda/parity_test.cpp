#include "tests/cuda/table.h"
#include "tests/support/cuda_fixture.h"

#include <gtest/gtest.h>

namespace nmt::test {

std::vector<ParityRow> parity_table() {
  std::vector<ParityRow> table;
#define NMT_PARITY_GROUP(name) \
  for (ParityRow & row : name##_parity()) table.push_back(std::move(row));
#include "tests/cuda/groups.def"
#undef NMT_PARITY_GROUP
  return table;
}

namespace {

class CudaParity : public NeedsCuda, public testing::WithParamInterface<ParityRow> {};

TEST_P(CudaParity, CpuAndCudaAgree) {
  CudaDevice device;
  Parity parity(device);
  GetParam().cases(parity);
}

INSTANTIATE_TEST_SUITE_P(Table, CudaParity, testing::ValuesIn(parity_table()),
                         [](const auto& row) { return row.param.kernel; });

}  // namespace
}  // namespace nmt::test
