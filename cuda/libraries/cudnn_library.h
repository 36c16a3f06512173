#pragma once

#include "core/dynamic_library.h"
#include "cuda/runtime/check.h"

#include <string>

#include <cudnn.h>

namespace nmt::cuda {

#define NMT_CUDNN_FUNCTIONS(function)      \
  function(cudnnCreate);                   \
  function(cudnnDestroy);                  \
  function(cudnnSetStream);                \
  function(cudnnGetErrorString);           \
  function(cudnnCreateTensorDescriptor);   \
  function(cudnnDestroyTensorDescriptor);  \
  function(cudnnSetTensorNdDescriptor);    \
  function(cudnnGetTensorNdDescriptor);    \
  function(cudnnCreateDropoutDescriptor);  \
  function(cudnnDestroyDropoutDescriptor); \
  function(cudnnSetDropoutDescriptor);     \
  function(cudnnCreateRNNDescriptor);      \
  function(cudnnDestroyRNNDescriptor);     \
  function(cudnnSetRNNDescriptor_v8);      \
  function(cudnnCreateRNNDataDescriptor);  \
  function(cudnnDestroyRNNDataDescriptor); \
  function(cudnnSetRNNDataDescriptor);     \
  function(cudnnGetRNNWeightSpaceSize);    \
  function(cudnnGetRNNTempSpaceSizes);     \
  function(cudnnGetRNNWeightParams);       \
  function(cudnnRNNForward);               \
  function(cudnnRNNBackwardData_v8);       \
  function(cudnnRNNBackwardWeights_v8)

/// The functions of cuDNN that we call: those of the library, opened at first use
/// (cudnn_library.cpp), or of the emulator (tests/emulator/cudnn.cpp).
struct CudnnLibrary {
  NMT_CUDNN_FUNCTIONS(NMT_FUNCTION_MEMBER);

  /// Null, and the reason in `why`, where cuDNN cannot be opened.
  static const CudnnLibrary* open(std::string& why);
  /// The functions, after a successful open().
  static const CudnnLibrary& get();
};

/// On a full device, the call that makes a handle may report that the library is not initialized.
inline void check(cudnnStatus_t status, const char* call) {
  if (status == CUDNN_STATUS_SUCCESS) return;
  const std::string name = call_name(call);
  const std::string message =
      fmt::format("{}: {}", name, CudnnLibrary::get().cudnnGetErrorString(status));
  if (status == CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED ||
      (status == CUDNN_STATUS_NOT_INITIALIZED && name == "cudnnCreate"))
    throw OutOfMemory(message);
  fail_call(message);
}

}  // namespace nmt::cuda
