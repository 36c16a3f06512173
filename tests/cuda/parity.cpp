#include "tests/cuda/parity.h"

#include <cmath>
#include <cstring>
#include <limits>

#include <gtest/gtest.h>

namespace nmt::test {
namespace {

double difference(double a, double b, double scale) {
  if (std::isnan(a) || std::isnan(b))
    return std::isnan(a) && std::isnan(b) ? 0.0 : std::numeric_limits<double>::infinity();
  if (a == b) return 0.0;
  if (std::isinf(a) || std::isinf(b)) return std::numeric_limits<double>::infinity();
  return std::abs(a - b) / (std::abs(a) + scale);
}

template <class T>
double root_mean_square(const std::vector<T>& x) {
  double sum = 0;
  std::size_t n = 0;
  for (T v : x)
    if (std::isfinite(v)) sum += double{v} * v, ++n;
  return n == 0 ? 0.0 : std::sqrt(sum / static_cast<double>(n));
}

// "" or the place where two arrays differ most.
template <class T>
std::string compare_values(const std::string& name, const Guarded<char>& host,
                           const std::vector<char>& device, double tolerance) {
  std::vector<T> cpu(host.size() / sizeof(T)), cuda(cpu.size());
  std::memcpy(cpu.data(), host.data(), host.size());
  std::memcpy(cuda.data(), device.data(), device.size());
  const double scale = root_mean_square(cpu);
  std::size_t worst = 0;
  double max_difference = 0;
  for (std::size_t i = 0; i < cpu.size(); ++i)
    if (const double d = difference(cpu[i], cuda[i], scale); d > max_difference) {
      max_difference = d;
      worst = i;
    }
  if (max_difference <= tolerance) return "";
  return fmt::format(
      "{}: element {} of {} is {} on the CPU and {} on CUDA: a relative error of {:.2g}, {:.2g} is "
      "allowed",
      name, worst, cpu.size(), cpu[worst], cuda[worst], max_difference, tolerance);
}

}  // namespace

Buffer::Buffer(CudaDevice& device, MemorySource& source, std::string name,
               const std::vector<char>& contents, Kind kind)
    : device_(device),
      source_(source),
      name_(std::move(name)),
      host_(contents.begin(), contents.end()),
      kind_(kind) {
  if (host_.empty()) return;
  data_ = source.allocate(host_.size());
  device.to_device(data_, host_.data(), host_.size());
}

Buffer::~Buffer() {
  if (data_) source_.release(data_);
}

std::string Buffer::difference(double tolerance) {
  if (host_.empty()) return "";
  std::vector<char> bytes(host_.size());
  device_.from_device(bytes.data(), data_, bytes.size());
  if (kind_ == Kind::floats) return compare_values<float>(name_, host_, bytes, tolerance);
  if (kind_ == Kind::doubles) return compare_values<double>(name_, host_, bytes, tolerance);
  for (std::size_t i = 0; i < bytes.size(); ++i)
    if (bytes[i] != host_[i])
      return fmt::format("{}: byte {} is {} on the CPU and {} on CUDA", name_, i, host_[i],
                         bytes[i]);
  return "";
}

Parity::Parity(CudaDevice& device, Runs runs)
    : device_(device), runs_(runs), source_(device.memory_source()) {}
Parity::~Parity() = default;

void Parity::start(std::string text) {
  text_ = std::move(text);
  buffers_.clear();
  scratch_.clear();
}

Buffer& Parity::add(const std::vector<char>& contents, Buffer::Kind kind) {
  buffers_.push_back(std::make_unique<Buffer>(
      device_, *source_, fmt::format("buffer {}", buffers_.size() + 1), contents, kind));
  return *buffers_.back();
}

Both<float> Parity::floats(std::int64_t n, float mean) {
  std::vector<float> x(static_cast<std::size_t>(n));
  for (float& v : x) v = mean + 2 * rng_.uniform() - 1;
  return values(x, true);
}

Both<std::int32_t> Parity::integers(std::int64_t n, std::int32_t below, std::int32_t min) {
  std::vector<std::int32_t> x(static_cast<std::size_t>(n));
  for (std::int32_t& v : x)
    v = min + static_cast<std::int32_t>(rng_.below(static_cast<std::uint64_t>(below - min)));
  return integers(x);
}

Both<std::int32_t> Parity::integers(const std::vector<std::int32_t>& x) {
  return values(x, false);
}

Both<float> Parity::scratch(std::int64_t cpu_floats, std::int64_t cuda_floats) {
  const auto floats =
      static_cast<std::size_t>(std::max<std::int64_t>({cpu_floats, cuda_floats, 1}));
  scratch_.push_back(std::make_unique<Buffer>(device_, *source_, "scratch",
                                              std::vector<char>(floats * sizeof(float), '\xFF'),
                                              Buffer::Kind::floats));
  return Both<float>(*scratch_.back());
}

void Parity::compare(double tolerance) {
  for (const auto& buffer : buffers_) {
    const std::string difference = buffer->difference(tolerance);
    EXPECT_EQ(difference, "") << text_;
  }
}

void Parity::expect_rounded(std::int64_t n, const float* x, const kernels::Bfloat16* rounded) {
  if (runs_ == Runs::cpu_alone) return;
  const auto count = static_cast<std::size_t>(n);
  std::vector<float> values(count);
  std::vector<kernels::Bfloat16> copies(count);
  device_.from_device(values.data(), x, count * sizeof(float));
  device_.from_device(copies.data(), rounded, count * sizeof(kernels::Bfloat16));
  for (std::size_t i = 0; i < count; ++i) {
    const float expected = kernels::from_bf16(kernels::to_bf16(values[i]));
    ASSERT_EQ(kernels::from_bf16(copies[i]), expected) << text_ << ": rounded element " << i;
  }
}

void Parity::same(double cpu, double cuda, double tolerance) {
  if (runs_ == Runs::cpu_alone) return;
  EXPECT_LE(difference(cpu, cuda, 0.0), tolerance)
      << text_ << ": " << cpu << " on the CPU, " << cuda << " on CUDA";
}

}  // namespace nmt::test
