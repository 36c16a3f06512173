#pragma once

#include "app/benchmark/benchmark_spec.h"
#include "app/benchmark/blas.h"
#include "app/benchmark/bounds.h"
#include "app/benchmark/clock.h"
#include "app/benchmark/result.h"
#include "app/compute/compute.h"
#include "kernels/products/product_method.h"

namespace nmt::app::bench {

/// The header of a report: date, program, machine and the bounds measured on it.
Facts facts(Compute& compute, const kernels::ProductMethod* products, const Clock& clock,
            const Blas& blas, const Bounds& bounds, const BenchmarkSpec& spec);

}  // namespace nmt::app::bench
