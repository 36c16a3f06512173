#include "app/benchmark/benchmark.h"

#include "app/benchmark/bench.h"
#include "app/benchmark/facts.h"
#include "app/benchmark/tables/tables.h"
#include "app/compute/compute.h"
#include "app/files/outputs.h"
#include "core/error.h"
#include "core/files/file.h"
#include "core/math/flush_subnormals.h"

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <string>
#include <utility>

namespace nmt::app::bench {
namespace {

using Table = void (*)(Bench&);
constexpr std::pair<const char*, Table> tables[] = {{"processor", processor},
                                                    {"products", products},
                                                    {"zeros", zeros},
                                                    {"recurrences", recurrences},
                                                    {"matrix-states", matrix_states},
                                                    {"layers", layers},
                                                    {"groups", groups},
                                                    {"attention", attention},
                                                    {"softmax", softmax},
                                                    {"pointwise", pointwise},
                                                    {"optimizer", optimizer},
                                                    {"training", training},
                                                    {"mixed", mixed},
                                                    {"step", step},
                                                    {"growth", growth},
                                                    {"decoding", decoding}};

// The report file, which appears when it is complete.
class ReportFile {
 public:
  explicit ReportFile(const std::string& path)
      : path_(path), file_(path), stream_(::open_memstream(&text_, &size_)) {
    if (!stream_) fail(ExitStatus::failed, "{}: {}", path_, std::strerror(errno));
  }
  ~ReportFile() {
    if (stream_) std::fclose(stream_);
    std::free(text_);
  }
  ReportFile(const ReportFile&) = delete;
  ReportFile& operator=(const ReportFile&) = delete;
  std::FILE* get() { return stream_; }
  void close() {
    if (std::fclose(std::exchange(stream_, nullptr)) != 0)
      fail(ExitStatus::failed, "{}: {}", path_, std::strerror(errno));
    file_.write(text_, size_);
    file_.commit();
  }

 private:
  std::string path_;
  AtomicFile file_;
  char* text_ = nullptr;
  std::size_t size_ = 0;
  std::FILE* stream_;
};

void run_tables(Bench& bench, const std::string& filter) {
  bool is_table = false;
  for (const auto& [name, table] : tables) is_table = is_table || filter == name;
  for (const auto& [name, table] : tables)
    if (!is_table || filter == name) table(bench);
  if (bench.rows() == 0)
    fail(ExitStatus::usage, "--filter: no row of any table matches '{}'", filter);
}

}  // namespace

void benchmark(const BenchmarkSpec& spec, std::FILE* terminal) {
  const FlushSubnormals flush_subnormals;  // as training and search
  Compute compute(spec.compute);
  if (is_standard_output(spec.out))
    fail(ExitStatus::usage, "out: {} is standard output, which has a report already; name a file",
         spec.out);
  if (compute.cuda() && !spec.blas.empty())
    fail(ExitStatus::usage, "--blas is for the CPU, not for --device {}", spec.compute.device);
  const kernels::ProductMethod* const library = compute.open_products();
  const auto clock = Clock::of(compute);
  // Not destroyed: the threads of a BLAS end with the program.
  const Blas& blas = *new Blas(spec.blas);
  std::optional<ReportFile> file;
  Reports reports;
  if (!spec.list) {  // a list needs no bounds, which take long on slow devices
    const Facts head = facts(compute, library, *clock, blas,
                             BoundsMeter(compute, *clock, spec.quick).measure(), spec);
    if (!spec.out.empty()) {
      file.emplace(spec.out);
      reports.add(Report::make(spec.format, file->get(), head));
    }
    reports.add(Report::make(file ? "text" : spec.format, terminal, head));
  }
  Bench bench(spec, compute, library, blas, reports);
  run_tables(bench, spec.filter);
  reports.finish();
  if (file) file->close();
  if (bench.failed() > 0)
    fail(ExitStatus::failed, "{} of {} rows failed", bench.failed(), bench.rows());
}

}  // namespace nmt::app::bench
