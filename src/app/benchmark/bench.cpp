#include "app/benchmark/bench.h"

#include "app/program.h"
#include "kernels/pointwise.h"

#include <algorithm>
#include <numeric>

namespace nmt::app::bench {
Pattern::Pattern(const std::string& text) : any_(text.empty()) {
  if (any_) return;
  if (const int wrong = ::regcomp(&compiled_, text.c_str(), REG_EXTENDED | REG_NOSUB); wrong != 0) {
    char why[128];
    ::regerror(wrong, &compiled_, why, sizeof why);
    fail(ExitStatus::usage, "--filter: '{}' is not a regular expression: {}", text, why);
  }
}

Pattern::~Pattern() {
  if (!any_) ::regfree(&compiled_);
}

bool Pattern::fits(const std::string& name) const {
  return any_ || ::regexec(&compiled_, name.c_str(), 0, nullptr, 0) == 0;
}

Case::Case(Bench& bench, Result& result)
    : bench_(bench),
      result_(result),
      arena_(bench.compute().new_arena()),
      context_(bench.compute().context(*arena_)),
      training_(bench.compute().training_context(*arena_, bench.products())) {
  if (!kernels::bf16_products(training_.cpu)) context_.cpu.products = bench.products();
}

bool Case::quick() const {
  return bench_.options().quick;
}

std::vector<float> Case::values(std::int64_t n, std::uint64_t seed) {
  std::vector<float> x(static_cast<std::size_t>(n));
  std::uint64_t state = seed * 0x9E3779B97F4A7C15u + 1;  // Knuth's multiplicative generator (MMIX)
  for (float& v : x) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    v = static_cast<float>(state >> 40) * 0x1p-23f - 1.0f;
  }
  return x;
}

Tensor Case::zeros(std::int64_t n) {
  const Tensor t = context_.empty({n});
  dispatch(context_, [&](const auto& backend) { kernels::fill(backend, t.f32(), n, 0.0f); });
  return t;
}

int Case::sets(std::size_t bytes_of_one) const {
  return static_cast<int>(std::clamp<std::size_t>(
      bench_.meter().rotation() / std::max<std::size_t>(bytes_of_one, 1) + 1, 2, 64));
}

void Case::compare(const std::string& what, double value, double reference, double scale,
                   double tolerance) const {
  if (!(std::abs(value - reference) <= tolerance * std::max(std::abs(scale), 1e-30)))
    fail(ExitStatus::failed, "{}: {} is {:.9g}, the slow reference is {:.9g}", result_.name, what,
         value, reference);
}

// A sample consists of enough runs to take a millisecond, so that the resolution of the clock is
// negligible.
double Case::shortest(Function body, void* context, std::int64_t& runs) {
  constexpr double min_seconds = 1e-3;
  Clock& clock = bench_.clock();
  body(context);
  std::int64_t repeats = 1;
  double best = 1e30;
  const double begin = now(), budget = quick() ? 0 : bench_.options().min_time;
  for (int samples = 0; samples < (quick() ? 1 : 3) || now() - begin < budget;) {
    clock.start();
    for (std::int64_t i = 0; i < repeats; ++i) body(context);
    const double seconds = clock.stop();
    runs += repeats;
    if (seconds < min_seconds && !quick()) {
      repeats *= 2;
      continue;
    }
    best = std::min(best, seconds / static_cast<double>(repeats));
    ++samples;
  }
  return best;
}

double Case::time_erased(Function body, void* context) {
  std::vector<double> times;
  for (int i = 0; i < bench_.options().repetitions; ++i)
    times.push_back(shortest(body, context, result_.runs));
  std::sort(times.begin(), times.end());
  const std::size_t n = times.size();
  result_.repetitions = static_cast<int>(n);
  result_.seconds = times.front();
  result_.median = n % 2 == 1 ? times[n / 2] : (times[n / 2 - 1] + times[n / 2]) / 2;
  const double mean = std::accumulate(times.begin(), times.end(), 0.0) / static_cast<double>(n);
  double squares = 0;
  for (const double t : times) squares += (t - mean) * (t - mean);
  result_.deviation = n > 1 ? std::sqrt(squares / static_cast<double>(n - 1)) : 0;
  return result_.seconds;
}

Bench::Bench(const BenchmarkSpec& options, Compute& compute, const kernels::ProductMethod* products,
             const Blas& blas, Reports& reports)
    : options_(options),
      compute_(compute),
      products_(products),
      blas_(blas),
      reports_(reports),
      clock_(Clock::of(compute)),
      meter_(compute, *clock_, options.quick),
      filter_(options.filter) {}

bool Bench::wants(const std::string& table, const std::string& name) const {
  return filter_.fits(table + "/" + name);
}

// With --list, only the names of the rows are printed.
bool Bench::lists(const std::string& table, const std::string& name) {
  if (!options_.list) return false;
  ++rows_;
  print(table + "/" + name + "\n");
  return true;
}

Result Bench::begin(const std::string& table, const std::string& name) {
  Result result;
  result.table = table;
  result.name = name;
  result.bounds = meter_.measure();
  return result;
}

// The bounds are measured before and after the row. The larger values count, since other load can
// only lower them.
void Bench::end(Result& result) {
  const Bounds after = meter_.measure();
  result.bounds.flops = std::max(result.bounds.flops, after.flops);
  result.bounds.copied = std::max(result.bounds.copied, after.copied);
  result.bounds.read = std::max(result.bounds.read, after.read);
  ++rows_;
  if (!result.error.empty()) ++failed_;
  reports_.row(result);
}

}  // namespace nmt::app::bench
