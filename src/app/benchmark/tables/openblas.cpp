#include "app/benchmark/tables/openblas.h"

#include "core/dynamic_library.h"

namespace nmt::app::bench {
namespace {

// Of enum CBLAS_ORDER and CBLAS_TRANSPOSE, which every CBLAS shares.
constexpr int row_major = 101, plain = 111, transposed = 112;

struct OpenblasLibrary {
  DynamicLibrary library{"libopenblas.so.0"};
  void (*openblas_set_num_threads)(int threads) = nullptr;
  char* (*openblas_get_corename)() = nullptr;
  char* (*openblas_get_config)() = nullptr;
  void (*cblas_sgemm)(int order, int transpose_a, int transpose_b, int m, int n, int k, float alpha,
                      const float* a, int lda, const float* b, int ldb, float beta, float* c,
                      int ldc) = nullptr;

  OpenblasLibrary() {
    NMT_FIND_FUNCTION(openblas_set_num_threads);
    NMT_FIND_FUNCTION(openblas_get_corename);
    NMT_FIND_FUNCTION(openblas_get_config);
    NMT_FIND_FUNCTION(cblas_sgemm);
  }
};

const OpenblasLibrary& library() {
  static const OpenblasLibrary& opened = *new OpenblasLibrary;  // its threads end with the program
  return opened;
}

}  // namespace

bool has_openblas() {
  return library().library.error().empty();
}

std::string openblas_name() {
  if (!has_openblas()) return "absent";
  const std::string config = library().openblas_get_config();
  return config.substr(0, config.find(' ', config.find(' ') + 1)) + ", " +
         library().openblas_get_corename();
}

void openblas_product(ThreadPool& pool, const OpenblasProduct& s, const float* a, const float* b,
                      float* c) {
  static const bool alone =
      (library().openblas_set_num_threads(1), true);  // only our thread pool is used
  (void)alone;
  const auto lda = s.transpose_a ? s.m : s.k, ldb = s.transpose_b ? s.k : s.n;
  const bool by_columns = s.n > s.m;
  pool.parallel_for(
      by_columns ? s.n : s.m, by_columns ? 32 : 1, [&](std::int64_t begin, std::int64_t end) {
        const std::int64_t row = by_columns ? 0 : begin, column = by_columns ? begin : 0;
        const std::int64_t rows = by_columns ? s.m : end - begin,
                           columns = by_columns ? end - begin : s.n;
        library().cblas_sgemm(row_major, s.transpose_a ? transposed : plain,
                              s.transpose_b ? transposed : plain, static_cast<int>(rows),
                              static_cast<int>(columns), static_cast<int>(s.k), 1.0f,
                              a + (s.transpose_a ? row : row * lda), static_cast<int>(lda),
                              b + (s.transpose_b ? column * ldb : column), static_cast<int>(ldb),
                              0.0f, c + row * s.n + column, static_cast<int>(s.n));
      });
}

}  // namespace nmt::app::bench
