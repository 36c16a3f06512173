#pragma once

// Counts launches and memory traffic. At sizes that the emulator could not compute, kernels run
// twelve of their blocks, and the rest is extrapolated; products and large copies are only counted.
// Small models can be computed instead. New device memory is reserved without being backed, and
// reads as zeros. Needs the hooks of memory/memory_check.cpp: not with AddressSanitizer.

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>

namespace nmt::emulator {

/// What the calls of one name have cost.
struct Work {
  std::int64_t calls = 0;
  double read = 0, written = 0;  ///< bytes of device memory, in sectors of 32 bytes. A call counts
                                 ///< a sector once, and no reads of sectors that it has written.
  double flops = 0;              ///< of products
};

/// The device of a dry run: an H100 by default.
struct DryDevice {
  int multiprocessors = 132;
  std::size_t memory = std::size_t{80} << 30;
};

/// While it exists, the emulator counts. Exists before the device and at most once.
class DryRun {
 public:
  /// `computes`: everything runs, so that results are right.
  explicit DryRun(bool computes = false, const DryDevice& device = DryDevice{});
  ~DryRun();
  DryRun(const DryRun&) = delete;
  DryRun& operator=(const DryRun&) = delete;
  /// Sets all counts to zero.
  void clear();
  /// By kernel; "product", "copy" and "zeros" for the calls that are not kernels.
  std::map<std::string, Work> work() const;
};

// ---- called by the emulator ----

/// Whether a DryRun exists.
bool is_dry();
/// Whether one exists that does not compute.
bool is_sampled();
const DryDevice& dry_device();
/// Copies of more bytes are counted only.
constexpr std::size_t max_dry_copy = std::size_t{1} << 20;

void count(const std::string& name, const Work& work);
/// Around the sampled blocks of a launch of `kernel`: `blocks` is their number in the whole launch.
void begin_dry_launch(const void* kernel, std::uint32_t blocks);
void begin_dry_block();
/// The sampled block, numbered as they began, that runs next: those of a cooperative launch run in
/// turn.
void select_dry_block(std::size_t sample);
void note_traffic(const void* address, std::size_t bytes, bool writes);
void end_dry_launch();

}  // namespace nmt::emulator
