// nmt-bench: tables of what kernels, layers, training and decoding take on this machine, beside
// what the machine can do.

#include "app/benchmark/openblas.h"
#include "app/benchmark/tables.h"
#include "app/program.h"
#include "config/fields.h"
#include "kernels/instruction_set.h"
#include "kernels/products/product_library.h"

#include <cerrno>
#include <cstring>
#include <ctime>
#include <fstream>
#include <optional>
#include <thread>

#include <fmt/format.h>
#include <unistd.h>

namespace {

using namespace nmt;
using app::bench::Bench;
using config::Option;

std::vector<Option> options(app::bench::Options& o) {
  std::vector<Option> list{
      Option("filter", &o.filter,
             "run the rows whose `table/row` matches this regular expression; a table's name alone "
             "is that table")
          .meta("REGEX"),
      Option("min-time", &o.min_time, "measure every row for at least so many seconds a repetition")
          .range(0)
          .meta("SECONDS"),
      Option("repetitions", &o.repetitions,
             "measure every row so often; the shortest, the median and the deviation are told")
          .range(1),
      Option("format", &o.format,
             "of the report: a Markdown table, a line a row, or one JSON document")
          .one_of({"text", "csv", "json"}),
      Option("out", &o.out,
             "write the report to this file; the text then goes to standard output too")
          .meta("FILE"),
      Option("quick", &o.quick,
             "small shapes, each measured once: whether everything runs and is right, in seconds"),
      Option("list", &o.list, "print the names of the rows, and measure nothing"),
  };
  std::vector<Option> compute = config::only({"cpu-threads", "device", "products", "precision"},
                                             config::fields(o.compute, float32_compute()));
  config::named(compute, "precision").words = enum_words<Precision>();
  list.insert(list.end(), compute.begin(), compute.end());
  for (Option& option : list) option = std::move(option).never_dumped();
  return list;
}

std::string first_word_of(const char* path) {
  std::ifstream file(path);
  std::string word;
  file >> word;
  return word;
}

std::string caches() {
  const auto size = [](int name) { return std::max(0l, sysconf(name)) / 1024; };
  return fmt::format("L1d {} KiB, L2 {} KiB, L3 {} KiB", size(_SC_LEVEL1_DCACHE_SIZE),
                     size(_SC_LEVEL2_CACHE_SIZE), size(_SC_LEVEL3_CACHE_SIZE));
}

app::bench::Facts facts(app::Compute& compute, const kernels::ProductLibrary* products,
                        const app::bench::Clock& clock, const app::bench::Bounds& bounds,
                        const app::bench::Options& o) {
  const std::time_t now = std::time(nullptr);
  char date[32];
  std::strftime(date, sizeof date, "%Y-%m-%dT%H:%M:%SZ", std::gmtime(&now));
  return {{"date", date},
          {"program", compute.describe("nmt-bench")},
          {"processor", app::processor()},
          {"processors", std::to_string(std::thread::hardware_concurrency())},
          {"caches", caches()},
          {"load", first_word_of("/proc/loadavg") + " in the last minute"},
          {"compiler", __VERSION__},
          {"kernels", kernels::instruction_set()},
          {"products", compute.cuda() ? "cuBLAS"
                       : products     ? products->name() + " where it is faster, own tiles"
                                      : "own tiles"},
          {"OpenBLAS", app::bench::openblas_name()},
          {"clock", clock.name()},
          {"precision", std::string(name_of(*o.compute.precision))},
          {"arithmetic", fmt::format("{:.1f} GFLOP/s", 1e-9 * bounds.flops)},
          {"copying", fmt::format("{:.1f} GB/s", 1e-9 * bounds.copied)},
          {"reading", fmt::format("{:.1f} GB/s", 1e-9 * bounds.read)}};
}

using Table = void (*)(Bench&);
constexpr std::pair<const char*, Table> tables[] = {
    {"products", app::bench::products},   {"recurrences", app::bench::recurrences},
    {"layers", app::bench::layers},       {"groups", app::bench::groups},
    {"attention", app::bench::attention}, {"softmax", app::bench::softmax},
    {"pointwise", app::bench::pointwise}, {"optimizer", app::bench::optimizer},
    {"training", app::bench::training},   {"step", app::bench::step},
    {"growth", app::bench::growth},       {"decoding", app::bench::decoding}};

// A file that the report goes to, closed with it.
class File {
 public:
  explicit File(const std::string& path) : path_(path), file_(std::fopen(path.c_str(), "w")) {
    if (!file_) fail(ExitStatus::usage, "--out: {}: {}", path, std::strerror(errno));
  }
  ~File() {
    if (file_) std::fclose(file_);
  }
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  std::FILE* get() { return file_; }
  void close() {
    if (std::fclose(std::exchange(file_, nullptr)) != 0)
      fail(ExitStatus::failed, "{}: {}", path_, std::strerror(errno));
  }

 private:
  std::string path_;
  std::FILE* file_;
};

ExitStatus run(const app::bench::Options& o) {
  app::Compute compute(o.compute);
  const kernels::ProductLibrary* const products = compute.products();
  const auto clock = app::bench::Clock::of(compute);
  const app::bench::Facts head = facts(
      compute, products, *clock, app::bench::BoundsMeter(compute, *clock, o.quick).measure(), o);
  std::optional<File> file;
  app::bench::Reports reports;
  using app::bench::Report;
  if (o.list) {
    // names alone
  } else if (o.out.empty()) {
    reports.add(Report::make(o.format, stdout, head));
  } else {
    file.emplace(o.out);
    reports.add(Report::make(o.format, file->get(), head));
    reports.add(Report::make("text", stdout, head));
  }
  Bench bench(o, compute, products, reports);
  bool is_table = false;
  for (const auto& [name, table] : tables) is_table = is_table || o.filter == name;
  for (const auto& [name, table] : tables)
    if (!is_table || o.filter == name) table(bench);
  if (bench.rows() == 0)
    fail(ExitStatus::usage, "--filter: no row of any table matches '{}'", o.filter);
  reports.finish();
  if (file) file->close();
  if (bench.failed() > 0)
    fail(ExitStatus::failed, "{} of {} rows failed", bench.failed(), bench.rows());
  return ExitStatus::ok;
}

}  // namespace

int main(int argc, char** argv) {
  app::bench::Options o;
  config::Settings settings(
      "nmt-bench", "[OPTIONS] [FILTER [THREADS]]",
      "measures kernels, layers, training and decoding beside what the machine can do");
  settings.add(options(o)).positionals({"filter", "cpu-threads"});
  return app::run_tool(argc, argv, settings, [&] { return run(o); });
}
