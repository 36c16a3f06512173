#include "tools/compute.h"

#include "nmt/core/log.h"
#include "nmt/kernels/instruction_set.h"
#include "nmt/kernels/product_library.h"

#include <fstream>

#include <fmt/format.h>

namespace nmt::tools {

std::string processor() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with("model name")) continue;
    const std::size_t begin = line.find_first_not_of(" \t", line.find(':') + 1);
    return begin == std::string::npos ? "" : line.substr(begin);
  }
  return "";
}

namespace {

const char* precision_name(Dtype weights) {
  return weights == Dtype::i8 ? "int8" : weights == Dtype::bf16 ? "bfloat16" : "float32";
}

}  // namespace

Dtype weights_of(const std::string& precision) {
  if (precision == "int8") return Dtype::i8;
  if (precision == "bfloat16") return Dtype::bf16;
  NMT_CHECK(precision == "float32", "precision is '{}', known are float32, bfloat16 and int8", precision);
  return Dtype::f32;
}

Compute::Compute(const std::string& device, int threads, Dtype weights) : pool_(threads), weights_(weights) {
  const DeviceChoice choice = parse_device(device, "--device");
  if (choice.kind == DeviceChoice::Kind::cpu) return;
  if (choice.kind == DeviceChoice::Kind::automatic && CudaDevice::count(why_) == 0) return;
  if (weights != Dtype::f32) fail(ExitStatus::usage, "precision: {} is for the CPU, not for --device {}", precision_name(weights), device);
  cuda_ = std::make_unique<CudaDevice>(choice.index);
}

std::unique_ptr<Arena> Compute::new_arena() {
  if (!cuda_) return std::make_unique<Arena>();
  constexpr std::size_t growth = std::size_t{64} << 20;  // asking the driver is slow
  return std::make_unique<Arena>(growth, cuda_->memory_source());
}

Context Compute::context(Arena& arena) {
  Context context;
  context.arena = &arena;
  context.cpu = cpu();
  context.weights = weights_;
  if (cuda_) {
    context.device = {DeviceKind::cuda, cuda_->index()};
    context.cuda = cuda_->handle();
  }
  return context;
}

const kernels::ProductLibrary* Compute::products(const std::string& choice) const {
  if (cuda_) {
    if (choice == "onednn") fail(ExitStatus::usage, "products: onednn is for the CPU, not for cuda:{}", cuda_->index());
    return nullptr;
  }
  if (choice == "own") return nullptr;
  std::string why;
  const kernels::ProductLibrary* const library = kernels::ProductLibrary::open(&why);
  if (!library && choice == "onednn") fail(ExitStatus::usage, "products: onednn cannot be used: {}", why);
  log::info("matrix products: {}", library ? library->name() + " and own tiles, each where it is faster" : "own tiles; " + why);
  return library;
}

std::string Compute::describe(const std::string& program) const {
  const std::string name = cuda_ ? cuda_->name() : processor();
  const std::string place = cuda_ ? fmt::format("cuda:{}", cuda_->index()) : "cpu";
  return fmt::format("{} {} on {}{}, {} thread{}, {}, {}{}", program, NMT_VERSION, place, name.empty() ? "" : " (" + name + ")", pool_.size(),
                     pool_.size() == 1 ? "" : "s", kernels::instruction_set(), precision_name(weights_), why_.empty() ? "" : "; no GPU: " + why_);
}

}  // namespace nmt::tools
