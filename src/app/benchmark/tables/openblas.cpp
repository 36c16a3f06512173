#include "app/benchmark/tables/openblas.h"

#ifdef NMT_WITH_OPENBLAS

#include <cblas.h>

extern "C" {
void openblas_set_num_threads(int threads);
char* openblas_get_corename();
char* openblas_get_config();
}

namespace nmt::app::bench {

bool has_openblas() {
  return true;
}

std::string openblas_name() {
  const std::string config = openblas_get_config();
  return config.substr(0, config.find(' ', config.find(' ') + 1)) + ", " + openblas_get_corename();
}

void openblas_product(ThreadPool& pool, const OpenblasProduct& s, const float* a, const float* b,
                      float* c) {
  static const bool alone = (openblas_set_num_threads(1), true);  // only our thread pool is used
  (void)alone;
  const auto lda = s.transpose_a ? s.m : s.k, ldb = s.transpose_b ? s.k : s.n;
  const bool by_columns = s.n > s.m;
  pool.parallel_for(
      by_columns ? s.n : s.m, by_columns ? 32 : 1, [&](std::int64_t begin, std::int64_t end) {
        const std::int64_t row = by_columns ? 0 : begin, column = by_columns ? begin : 0;
        const std::int64_t rows = by_columns ? s.m : end - begin,
                           columns = by_columns ? end - begin : s.n;
        cblas_sgemm(CblasRowMajor, s.transpose_a ? CblasTrans : CblasNoTrans,
                    s.transpose_b ? CblasTrans : CblasNoTrans, static_cast<int>(rows),
                    static_cast<int>(columns), static_cast<int>(s.k), 1.0f,
                    a + (s.transpose_a ? row : row * lda), static_cast<int>(lda),
                    b + (s.transpose_b ? column * ldb : column), static_cast<int>(ldb), 0.0f,
                    c + row * s.n + column, static_cast<int>(s.n));
      });
}

}  // namespace nmt::app::bench

#else

namespace nmt::app::bench {

bool has_openblas() {
  return false;
}
std::string openblas_name() {
  return "absent";
}
void openblas_product(ThreadPool&, const OpenblasProduct&, const float*, const float*, float*) {}

}  // namespace nmt::app::bench

#endif
