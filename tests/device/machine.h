#pragma once

// The CPU or the CUDA device with everything that models need, and small models and batches.

#include "config/specs.h"
#include "core/threads/thread_pool.h"
#include "data/batch.h"
#include "kernels/recurrent/cudnn.h"
#include "model/model.h"
#include "tensor/context.h"
#include "tests/support/cuda_fixture.h"

#include <cctype>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace nmt::test {

/// Memory of a device with a limit on the bytes in use, which refuses the next so many requests.
class LimitedMemory : public MemorySource {
 public:
  LimitedMemory(std::unique_ptr<MemorySource> source, const std::size_t& max_bytes, int& refusals)
      : source_(std::move(source)), max_bytes_(max_bytes), refusals_(refusals) {}
  char* allocate(std::size_t bytes) override {
    if (used_ + bytes > max_bytes_ || (refusals_ > 0 && refusals_-- > 0)) return nullptr;
    char* const data = source_->allocate(bytes);
    if (data) taken_.emplace_back(data, bytes), used_ += bytes;
    return data;
  }
  void release(char* data) noexcept override {
    for (auto& [address, bytes] : taken_)
      if (address == data) used_ -= bytes, address = nullptr;
    source_->release(data);
  }
  Guard guard() const override { return source_->guard(); }
  [[noreturn]] void refuse(std::size_t bytes) override {
    source_->refuse(bytes);
    throw std::bad_alloc();
  }

 private:
  std::unique_ptr<MemorySource> source_;
  const std::size_t& max_bytes_;
  int& refusals_;
  std::size_t used_ = 0;
  std::vector<std::pair<char*, std::size_t>> taken_;
};

/// Whether a model's description (below) requests cuDNN.
inline bool wants_cudnn(const std::string& text) {
  return text.ends_with(" cudnn");
}

/// Whether it requests persistent recurrences.
inline bool wants_persistent(const std::string& text) {
  return text.ends_with(" persistent");
}

struct Machine {
  explicit Machine(DeviceKind kind, const std::string& text = "",
                   Precision precision = Precision::float32) {
    if (kind == DeviceKind::cuda) device = std::make_unique<CudaDevice>(0, precision);
    std::string why;
    // Several slices of the widths of small_model().
    if (device && wants_persistent(text)) device->set_persistent(PersistentUse::on, 4);
    if (device && wants_cudnn(text)) {
      cudnn = kernels::Cudnn::open(device->handle(), why);
      NMT_CHECK(cudnn, "{}", why);
    }
    arena = device
                ? std::make_unique<Arena>(4096, std::make_unique<LimitedMemory>(
                                                    device->memory_source(), max_bytes, refusals))
                : std::make_unique<Arena>();
    context = make_context(*arena, {&pool}, device.get(), cudnn.get());
  }
  std::size_t max_bytes = std::size_t{1} << 30;  ///< limit on device memory
  int refusals = 0;                              ///< requests of the arena that find no memory
  ThreadPool pool{1};
  std::unique_ptr<CudaDevice> device;
  std::unique_ptr<kernels::Cudnn> cudnn;
  std::unique_ptr<Arena> arena;
  Context context;
};

/// Tests of a described model; those that request cuDNN are skipped without it.
class ModelOnDevice : public NeedsCuda, public testing::WithParamInterface<const char*> {
 protected:
  void SetUp() override {
    NeedsCuda::SetUp();
    std::string why;
    if (IsSkipped() || !wants_cudnn(GetParam())) return;
    CudaDevice device;
    if (!kernels::Cudnn::open(device.handle(), why)) GTEST_SKIP() << "no cuDNN to test: " << why;
  }
};

constexpr int source_size = 23, target_size = 19;
constexpr std::int32_t unk = 0, bos = 1, eos = 2;

/// Sentences of 1 to `longest` symbols.
std::vector<Ids> random_sentences(std::uint64_t seed, int n, int vocabulary, int longest);
/// Sources whose targets are the same symbols in reverse order: a task to learn. Two target symbols
/// in three are linked to their sources.
Batch learnable_batch(std::uint64_t seed, int n, int longest);
/// All weights of a model, in the order of its parameters.
std::vector<float> weights_of(const Context& context, Model& model);
/// A model of odd widths: "type unit [options]", options among after (gru's reset), bias, groups,
/// chrono, norm, tied, variational, aware, first-layer, dot, none, heads, deeper, eights (widths
/// are multiples of eight, so that kernels write copies for products), blocks (groups without
/// rearrangement), guided (alignments read the last head); and cudnn or persistent at the end.
ModelSpec small_model(const std::string& text);

/// The name of a test from a model's description.
inline std::string name_of_row(const testing::TestParamInfo<const char*>& row) {
  std::string name = row.param;
  for (char& c : name)
    if (!std::isalnum(static_cast<unsigned char>(c))) c = '_';
  return name;
}

}  // namespace nmt::test
