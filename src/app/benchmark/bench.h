#pragma once

#include "app/benchmark/benchmark_spec.h"
#include "app/benchmark/blas.h"
#include "app/benchmark/bounds.h"
#include "app/benchmark/report.h"
#include "core/error.h"
#include "kernels/products/product_method.h"
#include "tensor/copy.h"
#include "tensor/cuda_timer.h"

#include <cmath>
#include <span>
#include <string>
#include <vector>

#include <regex.h>

namespace nmt::app::bench {

class Bench;

/// A benchmark row in progress: buffers, comparison with a slow reference, timing.
class Case {
 public:
  Case(Bench& bench, Result& result);

  const Context& context() const { return context_; }
  /// The context of training passes: with --precision bfloat16 their products round inputs.
  const Context& training() const { return training_; }
  /// The context of training with own GEMM only.
  Context with_own_products() const {
    Context own = training_;
    if (!kernels::rounds_inputs(own.cpu)) own.cpu.products = nullptr;
    return own;
  }
  bool quick() const;
  Bench& bench() { return bench_; }

  /// Random floats in [-1,1), determined by the seed, on the host; and as a tensor on the device.
  static std::vector<float> values(std::int64_t n, std::uint64_t seed);
  Tensor random(std::int64_t n, std::uint64_t seed) {
    return upload(context_, values(n, seed), {n});
  }
  Tensor zeros(std::int64_t n);
  std::vector<float> read(const Tensor& t) const { return download<float>(context_, t); }

  /// Number of buffer sets of this size to rotate so that none is still in the cache.
  int sets(std::size_t bytes_of_one) const;

  /// Work of one run.
  void work(double flops, double bytes, Traffic traffic = Traffic::copied) {
    result_.work = {flops, bytes, traffic};
  }
  void extra(const std::string& name, double value) { result_.extras.emplace_back(name, value); }
  /// Fails the row if a value differs from the reference by more than `tolerance` times `scale`
  /// (for example the largest value).
  void compare(const std::string& what, double value, double reference, double scale,
               double tolerance) const;

  /// Times the body as the options say; returns the seconds per run.
  template <class Body>
  double time(Body&& body) {
    return time_erased(call<Body>, address(body));
  }
  /// On CUDA, the time of a repeatable body when its kernels are launched one by one, without
  /// graphs.
  template <class Body>
  void time_without_graphs(Body&& body) {
    CudaDevice* const device = context_.cuda.device;
    if (!device) return;
    device->set_graphs(false);
    extra("ms without graphs", 1e3 * aside(body));
    device->set_graphs(true);
  }
  /// On CUDA, the time of a repeatable body when recurrences with products run persistently.
  template <class Body>
  void time_persistently(Body&& body) {
    CudaDevice* const device = context_.cuda.device;
    if (!device) return;
    const PersistentUse before = device->persistent();
    device->set_persistent(PersistentUse::on);
    extra("ms persistent", 1e3 * aside(body));
    device->set_persistent(before);
  }
  /// On CUDA, one run without graphs whose launches a profiler sees (ProfiledRange).
  template <class Body>
  void show_profiler(Body&& body) {
    CudaDevice* const device = context_.cuda.device;
    if (!device) return;
    device->set_graphs(false);
    {
      const ProfiledRange range(*device);
      body();
    }
    device->set_graphs(true);
  }
  /// The shortest time of a body that has no separate row, such as a competitor or a part.
  template <class Body>
  double aside(Body&& body) {
    std::int64_t runs = 0;
    return shortest(call<Body>, address(body), runs);
  }

 private:
  using Function = void (*)(void*);
  template <class Body>
  static void call(void* body) {
    (*static_cast<std::remove_reference_t<Body>*>(body))();
  }
  template <class Body>
  static void* address(const Body& body) {
    return const_cast<void*>(static_cast<const void*>(&body));
  }
  double time_erased(Function body, void* context);
  double shortest(Function body, void* context, std::int64_t& runs);

  Bench& bench_;
  Result& result_;
  std::unique_ptr<Arena> arena_;
  Context context_, training_;
};

/// An extended regular expression (POSIX: g++ 12 cannot compile <regex> with sanitizers and
/// warnings as errors). Empty: matches all. Errors (usage): not an expression.
class Pattern {
 public:
  explicit Pattern(const std::string& text);
  ~Pattern();
  Pattern(const Pattern&) = delete;
  Pattern& operator=(const Pattern&) = delete;
  bool fits(const std::string& name) const;

 private:
  bool any_;
  regex_t compiled_{};
};

/// The benchmark program: selects rows, runs them on a device, and reports them.
class Bench {
 public:
  /// `products`: the GEMM library for training, or null. `blas`: a library to compare with.
  Bench(const BenchmarkSpec& options, Compute& compute, const kernels::ProductMethod* products,
        const Blas& blas, Reports& reports);

  const BenchmarkSpec& options() const { return options_; }
  Compute& compute() { return compute_; }
  Clock& clock() { return *clock_; }
  BoundsMeter& meter() { return meter_; }
  const kernels::ProductMethod* products() const { return products_; }
  const Blas& blas() const { return blas_; }

  bool wants(const std::string& table, const std::string& name) const;
  /// Runs a row if the filter matches `table/name`: body(Case&) allocates buffers, compares, and
  /// times. A failed row has the reason, and the program then exits with status 1.
  template <class Body>
  void row(const std::string& table, const std::string& name, Body&& body) {
    if (!wants(table, name) || lists(table, name)) return;
    Result result = begin(table, name);
    try {
      Case a_case(*this, result);
      body(a_case);
    } catch (const Error& error) {
      result.error = error.what();
    }
    end(result);
  }
  /// Adds a row measured elsewhere, such as a part of a step.
  void add(Result result) { end(result); }
  int rows() const { return rows_; }
  int failed() const { return failed_; }

 private:
  bool lists(const std::string& table, const std::string& name);
  Result begin(const std::string& table, const std::string& name);
  void end(Result& result);

  BenchmarkSpec options_;
  Compute& compute_;
  const kernels::ProductMethod* products_;
  const Blas& blas_;
  Reports& reports_;
  std::unique_ptr<Clock> clock_;
  BoundsMeter meter_;
  Pattern filter_;
  int rows_ = 0, failed_ = 0;
};

}  // namespace nmt::app::bench
