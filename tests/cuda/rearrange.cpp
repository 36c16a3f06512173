#include "kernels/recurrent/rearrange.h"

#include "tests/cuda/table.h"

namespace nmt::test {

std::vector<ParityRow> rearrange_parity() {
  using namespace nmt::kernels;
  return {
      {"rearrange",
       [](Parity& p) {
         for (const std::int64_t rows : {1, 3, 33})
           for (const std::int64_t groups : {1, 2, 3, 4, 8})
             for (const std::int64_t part : {1, 31, 33}) {
               const std::int64_t width = groups * part;
               p.sizes("rows {} groups {} width {}", rows, groups, width);
               const auto x = p.floats(rows * width), y = p.floats(rows * width),
                          dx = p.floats(rows * width), sum = p.floats(rows * width);
               p.run(
                   [&](const auto& on) {
                     rearrange(on, rows, groups, width, x(on), y(on));
                     rearrange_back(on, rows, groups, width, x(on), false, dx(on));
                     rearrange_back(on, rows, groups, width, x(on), true, sum(on));
                   },
                   0);
             }
       }},
  };
}

}  // namespace nmt::test
