#pragma once

#include "kernels/handles.h"
#include "kernels/products/product_kind.h"

#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace nmt::app {

/// The class of this processor if the choice of products has been measured for it ("AMD Zen 4"),
/// else "".
std::string measured_class();

/// The words among the flags of /proc/cpuinfo on which the speed of products depends. Virtual
/// machines of one processor differ in them.
std::string product_features(const std::string& flags);

/// Whether `candidate` takes less time than `present` by more than the factor: 1.03 asks for a
/// present time of more than 1.03 times the candidate's. Both run once and return their time, in
/// any unit. They are called in alternation, and the median of the ratios of eleven pairs decides,
/// so neither a few disturbed calls nor a clock rate that drifts changes the answer.
bool is_faster(const std::function<double()>& candidate, const std::function<double()>& present,
               double factor);

/// Measures for which kinds of products the library of `cpu` is more than 3 % faster than the own
/// tiles, in about a second.
kernels::LibraryKinds measure_products(const Cpu& cpu);

/// The `count` answers stored in the file under the key. If there are none, or the file is damaged,
/// `measure` is called and its result stored; a process that asks at the same time waits for it.
/// None if the file cannot be written: the choice could then differ between two runs, and with it
/// the bits of a training.
std::optional<std::vector<bool>> stored_choice(const std::string& path, const std::string& key,
                                               std::size_t count,
                                               const std::function<std::vector<bool>()>& measure);

/// Makes the library of `cpu` compute the kinds of products for which it is faster here: by a
/// built-in table for processors of a measured class with the library that was measured, else by
/// stored_choice() in $XDG_CACHE_HOME/nmt/products.json (~/.cache/nmt/products.json), or none where
/// that cannot be written. Returns the origin of the choice for the log.
std::string choose_products(const Cpu& cpu);

/// Whether a product with inputs in bfloat16 is at least 1.2 times as fast as own tiles in float32
/// on this processor, by a measurement of one product that is stored as those of choose_products().
/// Where it cannot be stored, the processor decides, so that a resumed training chooses the same:
/// whether there are kernels::fast_bf16_products(). Without bfloat16 instructions false. AVX-512
/// BF16 alone does not tell: VDPBF16PS has twice the speed of FMA on AMD Zen 4 and half of it on
/// Intel Emerald Rapids (docs/benchmarks/processors.md).
bool bfloat16_is_faster(const Cpu& cpu);
/// The same of products with three numbers in bfloat16 for each input
/// (kernels::ProductMethod::bfloat16x3()). Without AMX false; true where it cannot be stored.
bool bfloat16x3_is_faster(const Cpu& cpu);

}  // namespace nmt::app
