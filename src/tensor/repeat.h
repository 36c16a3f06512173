#pragma once

#include "tensor/context.h"
#include "tensor/cuda_device.h"

#include <functional>
#include <initializer_list>
#include <span>
#include <utility>

namespace nmt {

/// Runs work that may recur through CudaDevice::repeat() where the backend replays work; directly
/// elsewhere and where the context has a profile.
inline void repeat(const Context& context, std::span<const std::int64_t> key,
                   const std::function<void()>& work) {
  if (!context.backend->replays || context.profile) return work();
  context.cuda.device->repeat(key, work);
}
inline void repeat(const Context& context, std::initializer_list<std::int64_t> key,
                   const std::function<void()>& work) {
  repeat(context, std::span(key.begin(), key.size()), work);
}

/// Runs work that no graph may contain through CudaDevice::between_graphs() where the backend
/// replays work; directly elsewhere. It may wait for the device. If it throws, what comes after it
/// does not run, and repeat() throws the same.
inline void between_graphs(const Context& context, std::initializer_list<std::int64_t> identity,
                           std::function<void()> work) {
  if (!context.backend->replays) return work();
  context.cuda.device->between_graphs({identity.begin(), identity.size()}, std::move(work));
}

}  // namespace nmt
