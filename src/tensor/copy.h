#pragma once

#include "tensor/context.h"
#include "tensor/cuda_device.h"

#include <cstring>
#include <span>
#include <vector>

namespace nmt {

// Copies between host memory and a context's device, memcpy on the CPU. They run in the order of
// the device's other work.

inline void copy_in(const Cpu&, void* to, const void* host, std::size_t bytes) {
  if (bytes > 0) std::memcpy(to, host, bytes);
}
inline void copy_in(const Cuda& cuda, void* to, const void* host, std::size_t bytes) {
  cuda.device->to_device(to, host, bytes);
}
inline void copy_out(const Cpu&, void* host, const void* from, std::size_t bytes) {
  if (bytes > 0) std::memcpy(host, from, bytes);
}
inline void copy_out(const Cuda& cuda, void* host, const void* from, std::size_t bytes) {
  cuda.device->from_device(host, from, bytes);
}
inline void copy_within(const Cpu&, void* to, const void* from, std::size_t bytes) {
  if (bytes > 0) std::memcpy(to, from, bytes);
}
inline void copy_within(const Cuda& cuda, void* to, const void* from, std::size_t bytes) {
  cuda.device->copy(to, from, bytes);
}
inline void clear_bytes(const Cpu&, void* data, std::size_t bytes) {
  if (bytes > 0) std::memset(data, 0, bytes);
}
inline void clear_bytes(const Cuda& cuda, void* data, std::size_t bytes) {
  cuda.device->clear(data, bytes);
}

/// Copies `count` floats within the context's device.
inline void copy_floats(const Context& context, std::int64_t count, const float* from, float* to) {
  dispatch(context, [&](const auto& backend) {
    copy_within(backend, to, from, static_cast<std::size_t>(count) * sizeof(float));
  });
}

/// Sets all elements to zero.
template <class T>
void clear(const Context& context, const Tensor& tensor) {
  dispatch(context, [&](const auto& backend) {
    clear_bytes(backend, tensor.data<T>(), static_cast<std::size_t>(tensor.elements()) * sizeof(T));
  });
}

/// Copies host values into a tensor of the context's device. Error: their number is not the
/// tensor's number of elements. The host memory may be reused on return.
template <class T>
void upload(const Context& context, std::span<const T> values, const Tensor& to) {
  NMT_CHECK(static_cast<std::int64_t>(values.size()) == to.elements(), "{} values for a tensor {}",
            values.size(), to.shape().text());
  dispatch(context, [&](const auto& backend) {
    copy_in(backend, to.data<T>(), values.data(), values.size_bytes());
  });
}

/// A new tensor of the context's device with these values.
template <class T>
Tensor upload(const Context& context, const std::vector<T>& values, Shape shape) {
  const Tensor tensor = context.empty(shape, DtypeOf<T>::value);
  upload(context, std::span<const T>(values), tensor);
  return tensor;
}

/// Copies a tensor into one of the same shape in host memory and waits for it.
inline void download(const Context& context, const Tensor& tensor, const Tensor& host) {
  NMT_CHECK(tensor.shape() == host.shape() && host.in_host_memory(),
            "a tensor {} cannot be downloaded into {}", tensor.shape().text(), host.shape().text());
  dispatch(context, [&](const auto& backend) {
    copy_out(backend, host.f32(), tensor.f32(),
             static_cast<std::size_t>(tensor.elements()) * sizeof(float));
  });
}

/// The values of a tensor of the context's device; waits for them.
template <class T>
std::vector<T> download(const Context& context, const Tensor& tensor) {
  std::vector<T> values(static_cast<std::size_t>(tensor.elements()));
  dispatch(context, [&](const auto& backend) {
    copy_out(backend, values.data(), tensor.data<T>(), values.size() * sizeof(T));
  });
  return values;
}

/// A download of a small tensor (CudaDevice::begin_download) during which more work can be queued,
/// even work that overwrites the tensor. One at a time.
template <class T>
class PendingDownload {
 public:
  PendingDownload(const Context& context, const Tensor& tensor)
      : context_(context), values_(static_cast<std::size_t>(tensor.elements())) {
    if (context_.backend->host_memory)
      copy_out(context_.cpu, values_.data(), tensor.data<T>(), bytes());
    else
      context_.cuda.device->begin_download(tensor.data<T>(), bytes());
  }
  /// Waits for the values.
  const std::vector<T>& wait() {
    if (!context_.backend->host_memory)
      context_.cuda.device->finish_download(values_.data(), bytes());
    return values_;
  }

 private:
  std::size_t bytes() const { return values_.size() * sizeof(T); }
  const Context& context_;
  std::vector<T> values_;
};

}  // namespace nmt
