// An emulation of cuDNN's recurrent layers after NVIDIA's documentation (cuDNN API reference,
// cudnn_adv library): descriptors and weights here, the computation in cudnn_layer.cpp. It is
// strict: values that the documentation leaves undefined are NaN, only cudnnGetRNNWeightParams
// tells the offsets of weights, and every pointer must be into device memory of sufficient size.
// Layers have one direction and two biases, as cuda/libraries/cudnn.cpp requests them. Part of the
// emulator (cudnn_library.cpp), and of a library named libcudnn.so.9 (tests/standins).

#include "cudnn_state.h"

namespace {

using namespace nmt::emulator::cudnn;

template <class T>
cudnnStatus_t create(T** object) {
  *object = new T;
  return CUDNN_STATUS_SUCCESS;
}
template <class T>
cudnnStatus_t destroy(T* object) {
  delete object;
  return CUDNN_STATUS_SUCCESS;
}

}  // namespace

cudnnStatus_t cudnnCreate(cudnnHandle_t* handle) {
  return create(handle);
}
cudnnStatus_t cudnnDestroy(cudnnHandle_t handle) {
  return destroy(handle);
}
cudnnStatus_t cudnnSetStream(cudnnHandle_t handle, cudaStream_t stream) {
  handle->stream = stream;
  return CUDNN_STATUS_SUCCESS;
}

const char* cudnnGetErrorString(cudnnStatus_t status) {
  switch (status) {
    case CUDNN_STATUS_SUCCESS: return "CUDNN_STATUS_SUCCESS";
    case CUDNN_STATUS_NOT_INITIALIZED: return "CUDNN_STATUS_NOT_INITIALIZED";
    case CUDNN_STATUS_BAD_PARAM: return "CUDNN_STATUS_BAD_PARAM";
    case CUDNN_STATUS_NOT_SUPPORTED: return "CUDNN_STATUS_NOT_SUPPORTED";
    case CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED:
      return "CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED";
  }
  return "unknown status";
}

cudnnStatus_t cudnnCreateTensorDescriptor(cudnnTensorDescriptor_t* tensor) {
  return create(tensor);
}
cudnnStatus_t cudnnDestroyTensorDescriptor(cudnnTensorDescriptor_t tensor) {
  return destroy(tensor);
}
cudnnStatus_t cudnnSetTensorNdDescriptor(cudnnTensorDescriptor_t tensor, cudnnDataType_t, int rank,
                                         const int dims[], const int strides[]) {
  if (rank < 3) return CUDNN_STATUS_BAD_PARAM;
  tensor->dims.assign(dims, dims + rank);
  tensor->strides.assign(strides, strides + rank);
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnGetTensorNdDescriptor(const cudnnTensorDescriptor_t tensor, int max_dims,
                                         cudnnDataType_t* type, int* rank, int dims[],
                                         int strides[]) {
  *type = CUDNN_DATA_FLOAT;
  *rank = static_cast<int>(tensor->dims.size());
  for (std::size_t i = 0; i < tensor->dims.size() && i < static_cast<std::size_t>(max_dims); ++i) {
    dims[i] = tensor->dims[i];
    strides[i] = tensor->strides[i];
  }
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnCreateDropoutDescriptor(cudnnDropoutDescriptor_t* dropout) {
  return create(dropout);
}
cudnnStatus_t cudnnDestroyDropoutDescriptor(cudnnDropoutDescriptor_t dropout) {
  return destroy(dropout);
}
cudnnStatus_t cudnnSetDropoutDescriptor(cudnnDropoutDescriptor_t dropout, cudnnHandle_t handle,
                                        float probability, void*, std::size_t, unsigned long long) {
  if (!handle || probability != 0.0f) return CUDNN_STATUS_BAD_PARAM;
  dropout->set = true;
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnCreateRNNDescriptor(cudnnRNNDescriptor_t* rnn) {
  return create(rnn);
}
cudnnStatus_t cudnnDestroyRNNDescriptor(cudnnRNNDescriptor_t rnn) {
  return destroy(rnn);
}
cudnnStatus_t cudnnSetRNNDescriptor_v8(cudnnRNNDescriptor_t rnn, cudnnRNNAlgo_t algorithm,
                                       cudnnRNNMode_t mode, cudnnRNNBiasMode_t bias,
                                       cudnnDirectionMode_t direction,
                                       cudnnRNNInputMode_t input_mode, cudnnDataType_t,
                                       cudnnDataType_t, cudnnMathType_t math, std::int32_t input,
                                       std::int32_t hidden, std::int32_t projection,
                                       std::int32_t layers, cudnnDropoutDescriptor_t dropout,
                                       std::uint32_t flags) {
  if (input < 1 || hidden < 1 || projection != hidden || !dropout || !dropout->set)
    return CUDNN_STATUS_BAD_PARAM;
  if (bias != CUDNN_RNN_DOUBLE_BIAS || direction != CUDNN_UNIDIRECTIONAL ||
      input_mode != CUDNN_LINEAR_INPUT || layers != 1 || math == CUDNN_TENSOR_OP_MATH ||
      flags != CUDNN_RNN_PADDED_IO_ENABLED)
    return CUDNN_STATUS_NOT_SUPPORTED;
  const bool persistent = algorithm == CUDNN_RNN_ALGO_PERSIST_STATIC;
  if (persistent && !describes(static_cast<std::size_t>(hidden))) return CUDNN_STATUS_NOT_SUPPORTED;
  *rnn = {true, mode, static_cast<std::size_t>(input), static_cast<std::size_t>(hidden),
          persistent};
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnCreateRNNDataDescriptor(cudnnRNNDataDescriptor_t* data) {
  return create(data);
}
cudnnStatus_t cudnnDestroyRNNDataDescriptor(cudnnRNNDataDescriptor_t data) {
  return destroy(data);
}
cudnnStatus_t cudnnSetRNNDataDescriptor(cudnnRNNDataDescriptor_t data, cudnnDataType_t,
                                        cudnnRNNDataLayout_t, int steps, int batch, int width,
                                        const int lengths[], void* padding) {
  if (steps < 1 || batch < 1 || width < 1 || !lengths) return CUDNN_STATUS_BAD_PARAM;
  if (padding) return CUDNN_STATUS_NOT_SUPPORTED;
  for (int b = 0; b < batch; ++b)
    if (lengths[b] < 1 || lengths[b] > steps) return CUDNN_STATUS_BAD_PARAM;
  *data = {static_cast<std::size_t>(steps),
           static_cast<std::size_t>(batch),
           static_cast<std::size_t>(width),
           {lengths, lengths + batch}};
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnGetRNNWeightSpaceSize(cudnnHandle_t handle, cudnnRNNDescriptor_t rnn,
                                         std::size_t* bytes) {
  if (!handle || !rnn->set) return CUDNN_STATUS_BAD_PARAM;
  *bytes = Layout(*rnn).floats() * sizeof(float);
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnGetRNNTempSpaceSizes(cudnnHandle_t handle, cudnnRNNDescriptor_t rnn,
                                        cudnnForwardMode_t mode, cudnnRNNDataDescriptor_t x,
                                        std::size_t* work, std::size_t* reserve) {
  if (!handle || !rnn->set || x->width != rnn->input) return CUDNN_STATUS_BAD_PARAM;
  if (rnn->persistent && !has_sizes(rnn->hidden)) return CUDNN_STATUS_NOT_SUPPORTED;
  *work = sizeof(double);
  *reserve = mode == CUDNN_FWD_MODE_TRAINING ? Reserve::doubles(*rnn, *x) * sizeof(double) : 0;
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnGetRNNWeightParams(cudnnHandle_t handle, cudnnRNNDescriptor_t rnn,
                                      std::int32_t layer, std::size_t bytes, const void* weights,
                                      std::int32_t id, cudnnTensorDescriptor_t matrix,
                                      void** matrix_at, cudnnTensorDescriptor_t bias,
                                      void** bias_at) {
  const Layout layout(*rnn);
  if (!handle || layer != 0 || bytes != layout.floats() * sizeof(float) ||
      !readable(weights, layout.floats()) || id < 0 ||
      static_cast<std::size_t>(id) >= 2 * rnn->gates())
    return CUDNN_STATUS_BAD_PARAM;
  const auto gate = static_cast<std::size_t>(id);
  float* const space = static_cast<float*>(const_cast<void*>(weights));
  *matrix_at = space + layout.matrix(gate);
  *bias_at = space + layout.bias(gate);
  const int rows = static_cast<int>(rnn->hidden), columns = static_cast<int>(rnn->width_of(gate));
  *matrix = {{1, rows, columns}, {rows * columns, columns, 1}};
  *bias = {{1, rows, 1}, {rows, 1, 1}};
  return CUDNN_STATUS_SUCCESS;
}
