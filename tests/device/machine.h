#pragma once

// A place to compute, the CPU or the CUDA device, with all that models need; and small models and
// batches for both.

#include "config/specs.h"
#include "core/thread_pool.h"
#include "data/batch.h"
#include "kernels/recurrent/cudnn.h"
#include "tensor/context.h"
#include "tensor/cuda_device.h"

#include <cctype>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace nmt::test {

/// Memory of a device, of which only so many bytes may be taken.
class LimitedMemory : public MemorySource {
 public:
  LimitedMemory(std::unique_ptr<MemorySource> source, const std::size_t& most)
      : source_(std::move(source)), most_(most) {}
  char* allocate(std::size_t bytes) override {
    if (used_ + bytes > most_) return nullptr;
    char* const data = source_->allocate(bytes);
    if (data) taken_.emplace_back(data, bytes), used_ += bytes;
    return data;
  }
  void release(char* data) noexcept override {
    for (auto& [address, bytes] : taken_)
      if (address == data) used_ -= bytes, address = nullptr;
    source_->release(data);
  }
  [[noreturn]] void refuse(std::size_t bytes) override {
    source_->refuse(bytes);
    throw std::bad_alloc();
  }

 private:
  std::unique_ptr<MemorySource> source_;
  const std::size_t& most_;
  std::size_t used_ = 0;
  std::vector<std::pair<char*, std::size_t>> taken_;
};

/// Whether a model's text (below) wants its layers run by cuDNN.
inline bool wants_cudnn(const std::string& text) {
  return text.ends_with(" cudnn");
}

struct Machine {
  explicit Machine(DeviceKind kind, const std::string& text = "",
                   Precision precision = Precision::float32) {
    if (kind == DeviceKind::cuda) device = std::make_unique<CudaDevice>(0, precision);
    std::string why;
    if (device && wants_cudnn(text))
      NMT_CHECK(kernels::open_cudnn(device->handle(), why), "{}", why);
    arena = device ? std::make_unique<Arena>(
                         4096, std::make_unique<LimitedMemory>(device->memory_source(), most))
                   : std::make_unique<Arena>();
    context.arena = arena.get();
    context.cpu.pool = &pool;
    context.device.kind = kind;
    if (device) context.cuda = device->handle();
  }
  std::size_t most = std::size_t{1} << 30;  ///< bytes of device memory, at most
  ThreadPool pool{1};
  std::unique_ptr<CudaDevice> device;
  std::unique_ptr<Arena> arena;
  Context context;
};

/// Tests that need a CUDA device, or the emulator.
class DeviceTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string why;
    if (CudaDevice::count(why) == 0) GTEST_SKIP() << "no CUDA device to test: " << why;
  }
};

/// The same for a model's text.
class ModelOnDevice : public DeviceTest, public testing::WithParamInterface<const char*> {
 protected:
  void SetUp() override {
    DeviceTest::SetUp();
    std::string why;
    if (IsSkipped() || !wants_cudnn(GetParam())) return;
    CudaDevice device;
    if (!kernels::open_cudnn(device.handle(), why)) GTEST_SKIP() << "no cuDNN to test: " << why;
  }
};

constexpr int source_size = 23, target_size = 19;
constexpr std::int32_t unk = 0, bos = 1, eos = 2;

/// Sentences of 1 to `longest` symbols.
std::vector<Ids> random_sentences(std::uint64_t seed, int n, int vocabulary, int longest);
/// Sources, each with its symbols in the reverse order as its target: something to learn.
Batch learnable_batch(std::uint64_t seed, int n, int longest);
/// A model of odd widths: "type unit [options]", options among after (gru's reset), bias, groups,
/// norm, tied, variational, aware, first-layer, dot, none; and cudnn at the end.
ModelSpec small_model(const std::string& text);

/// A test's name of a model's text.
inline std::string name_of_row(const testing::TestParamInfo<const char*>& row) {
  std::string name = row.param;
  for (char& c : name)
    if (!std::isalnum(static_cast<unsigned char>(c))) c = '_';
  return name;
}

}  // namespace nmt::test
