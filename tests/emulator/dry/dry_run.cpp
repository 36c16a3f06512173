#include "dry/dry_run.h"

#include "core/error.h"
#include "dry/symbols.h"
#include "running.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>
#include <vector>

namespace nmt::emulator {
namespace {

constexpr std::uintptr_t sector = 32;  // bytes

// The sectors that a block has accessed.
struct Sectors {
  std::unordered_set<std::uintptr_t> read, written;
  void note(std::uintptr_t number, bool writes) {
    if (writes)
      written.insert(number);
    else if (!written.contains(number))
      read.insert(number);
  }
};

struct Counts {
  bool computes = false;
  DryDevice device;
  std::map<const void*, Work> kernels;
  std::map<std::string, Work> others;
  // The current launch.
  const void* kernel = nullptr;
  std::uint32_t blocks = 0;
  std::vector<Sectors> sampled;
  std::size_t running = 0;  // of `sampled`
};
Counts* counts = nullptr;

// Bytes of the sectors that the whole launch accesses: those of several sampled blocks are taken to
// be shared by all blocks, those of one block to be its own.
double extrapolate(const std::vector<Sectors>& sampled, std::uint32_t blocks,
                   std::unordered_set<std::uintptr_t> Sectors::*kind) {
  std::unordered_map<std::uintptr_t, int> uses;
  for (const Sectors& block : sampled)
    for (const std::uintptr_t number : block.*kind) ++uses[number];
  const auto own = static_cast<double>(
      std::ranges::count_if(uses, [](const auto& use) { return use.second == 1; }));
  const double shared = static_cast<double>(uses.size()) - own,
               factor = static_cast<double>(blocks) / static_cast<double>(sampled.size());
  return static_cast<double>(sector) * (shared + own * factor);
}

}  // namespace

DryRun::DryRun(bool computes, const DryDevice& device) {
  NMT_CHECK(!counts, "emulator: there is a dry run already");
#if !defined(NMT_EMULATOR_HOOKS)
  NMT_FAIL(
      "emulator: a dry run needs the hooks of memory accesses, which this build does not have");
#endif
  counts = new Counts;
  counts->computes = computes;
  counts->device = device;
}
DryRun::~DryRun() {
  delete counts;
  counts = nullptr;
}

void DryRun::clear() {
  counts->kernels.clear();
  counts->others.clear();
}

std::map<std::string, Work> DryRun::work() const {
  std::map<std::string, Work> all = counts->others;
  for (const auto& [kernel, work] : counts->kernels) {
    Work& of_name = all[kernel_name(kernel)];
    of_name.calls += work.calls;
    of_name.read += work.read;
    of_name.written += work.written;
  }
  return all;
}

bool is_dry() {
  return counts != nullptr;
}
bool is_sampled() {
  return counts && !counts->computes;
}
const DryDevice& dry_device() {
  return counts->device;
}

void count(const std::string& name, const Work& work) {
  Work& sum = counts->others[name];
  sum.calls += work.calls;
  sum.read += work.read;
  sum.written += work.written;
  sum.flops += work.flops;
}

void begin_dry_launch(const void* kernel, std::uint32_t blocks) {
  counts->kernel = kernel;
  counts->blocks = blocks;
  counts->sampled.clear();
}
void begin_dry_block() {
  counts->sampled.emplace_back();
}
void select_dry_block(std::size_t sample) {
  counts->running = sample;
}

void note_traffic(const void* address, std::size_t bytes, bool writes) {
  const auto first = reinterpret_cast<std::uintptr_t>(address);
  for (std::uintptr_t number = first / sector; number <= (first + bytes - 1) / sector; ++number)
    counts->sampled[counts->running].note(number, writes);
}

void end_dry_launch() {
  Work& work = counts->kernels[counts->kernel];
  ++work.calls;
  work.read += extrapolate(counts->sampled, counts->blocks, &Sectors::read);
  work.written += extrapolate(counts->sampled, counts->blocks, &Sectors::written);
}

}  // namespace nmt::emulator
