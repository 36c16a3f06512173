#include "tests/cuda/table.h"
#include "tests/support/cuda_fixture.h"

#include <string>
#include <vector>

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

// The kernels of the CPU, for all shapes of the table, with operands beside protected pages.
class CpuBounds : public CudaParity {};

TEST_P(CpuBounds, KernelsStayWithinTheirOperands) {
  const GuardedSide before = guarded_side();
  CudaDevice device;
  for (const GuardedSide side : {GuardedSide::end, GuardedSide::begin}) {
    guarded_side() = side;
    Parity parity(device, Parity::Runs::cpu_alone);
    GetParam().cases(parity);
  }
  guarded_side() = before;
}

// Rows whose kernels of the CPU are those of other rows.
bool is_of_device(const ParityRow& row) {
  const auto has = [&](const char* text) { return row.kernel.find(text) != std::string::npos; };
  return has("rounded") || has("bfloat16") || has("tf32") || has("persistent") || has("cudnn");
}
std::vector<ParityRow> rows_of_cpu() {
  std::vector<ParityRow> table = parity_table();
  std::erase_if(table, is_of_device);
  return table;
}

INSTANTIATE_TEST_SUITE_P(Table, CpuBounds, testing::ValuesIn(rows_of_cpu()),
                         [](const auto& row) { return row.param.kernel; });
INSTANTIATE_TEST_SUITE_P(Table, CudaParity, testing::ValuesIn(parity_table()),
                         [](const auto& row) { return row.param.kernel; });

}  // namespace
}  // namespace nmt::test
