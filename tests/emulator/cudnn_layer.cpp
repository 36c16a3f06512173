// cuDNN's layers in double after the equations of NVIDIA's documentation (cudnnRNNMode_t,
// cudnnRNNForward and its backward functions; gate numbers: cudnnGetRNNWeightParams).

#include "cudnn_state.h"

#include <cmath>
#include <limits>
#include <vector>

namespace {

using namespace nmt::emulator::cudnn;
using nmt::emulator::OpenDeviceMemory;

constexpr float undefined = std::numeric_limits<float>::quiet_NaN();

double sigmoid(double x) {
  return 1 / (1 + std::exp(-x));
}
double slope(double y) {
  return y * (1 - y);
}
double tanh_slope(double y) {
  return 1 - y * y;
}

struct Weights {
  const float* space;
  const cudnnRNNStruct& rnn;
  Layout layout{rnn};
  // Row j of W or R times a vector, and its bias.
  template <class T>
  double sum(std::size_t id, std::size_t j, const T* x) const {
    const float* const row = space + layout.matrix(id) + j * rnn.width_of(id);
    double total = space[layout.bias(id) + j];
    for (std::size_t i = 0; i < rnn.width_of(id); ++i)
      total += double{row[i]} * static_cast<double>(x[i]);
    return total;
  }
  // out += W^T d
  template <class T>
  void add_back(std::size_t id, const double* d, T* out) const {
    const float* const matrix = space + layout.matrix(id);
    for (std::size_t j = 0; j < rnn.hidden; ++j)
      for (std::size_t i = 0; i < rnn.width_of(id); ++i)
        out[i] += matrix[j * rnn.width_of(id) + i] * d[j];
  }
};

bool fits(const cudnnTensorStruct* shape, const cudnnRNNStruct& rnn, const cudnnRNNDataStruct& x) {
  const int b = static_cast<int>(x.batch), h = static_cast<int>(rnn.hidden);
  return shape && shape->dims == std::vector<int>{1, b, h} &&
         shape->strides == std::vector<int>{b * h, h, 1};
}

bool usable(const cudnnRNNStruct* rnn, const std::int32_t* device_lengths,
            const cudnnRNNDataStruct* x, const cudnnRNNDataStruct* y) {
  return rnn && rnn->set && !device_lengths && x && y && x->same_sentences(*y) &&
         x->width == rnn->input && y->width == rnn->hidden;
}

}  // namespace

// cudnnRNNMode_t:
//   lstm, gates i, f, c', o = 0..3: c = f c_ + i c', h = o tanh(c)
//   gru, gates r, i, h' = 0..2: h' = tanh(W x + r (R h_ + bR) + bW), h = (1 - i) h' + i h_
cudnnStatus_t cudnnRNNForward(cudnnHandle_t handle, cudnnRNNDescriptor_t rnn,
                              cudnnForwardMode_t mode, const std::int32_t device_lengths[],
                              cudnnRNNDataDescriptor_t x_data, const void* x,
                              cudnnRNNDataDescriptor_t y_data, void* y,
                              cudnnTensorDescriptor_t h_shape, const void* hx, void* hy,
                              cudnnTensorDescriptor_t c_shape, const void* cx, void* cy,
                              std::size_t weight_bytes, const void* weights, std::size_t,
                              void* work, std::size_t reserve_bytes, void* reserve) {
  if (!handle || !usable(rnn, device_lengths, x_data, y_data) || !fits(h_shape, *rnn, *x_data))
    return CUDNN_STATUS_BAD_PARAM;
  const bool lstm = rnn->mode == CUDNN_LSTM, training = mode == CUDNN_FWD_MODE_TRAINING;
  const std::size_t h = rnn->hidden, rows = x_data->steps * x_data->batch,
                    state = x_data->batch * h;
  const Weights w{static_cast<const float*>(weights), *rnn};
  if (weight_bytes != w.layout.floats() * sizeof(float) || !readable(weights, w.layout.floats()) ||
      !readable(x, rows * rnn->input) || !readable(y, rows * h) || !absent_or_readable(hx, state) ||
      !absent_or_readable(hy, state) || !readable(work, 1))
    return CUDNN_STATUS_BAD_PARAM;
  if (lstm && (!fits(c_shape, *rnn, *x_data) || !absent_or_readable(cx, state) ||
               !absent_or_readable(cy, state)))
    return CUDNN_STATUS_BAD_PARAM;
  if (refuses_forward(*rnn)) return CUDNN_STATUS_NOT_SUPPORTED;
  const std::size_t doubles = Reserve::doubles(*rnn, *x_data);
  if (training && (reserve_bytes < doubles * sizeof(double) || !readable(reserve, 2 * doubles)))
    return CUDNN_STATUS_BAD_PARAM;
  nmt::emulator::finish_stream(handle->stream);  // a layer runs at once
  const OpenDeviceMemory open;
  std::vector<double> storage(training ? 0 : doubles);
  Reserve kept(training ? reserve : storage.data(), *rnn, *x_data);
  kept.stage() = stage_of(*rnn, forward_ran);
  for (std::size_t b = 0; b < x_data->batch; ++b) {
    std::vector<double> state_h(h), state_c(h);
    for (std::size_t j = 0; j < h; ++j) {
      if (hx) state_h[j] = static_cast<const float*>(hx)[b * h + j];
      if (lstm && cx) state_c[j] = static_cast<const float*>(cx)[b * h + j];
    }
    for (std::size_t t = 0; t < x_data->steps; ++t) {
      float* const out = static_cast<float*>(y) + (t * x_data->batch + b) * h;
      if (t >= static_cast<std::size_t>(x_data->lengths[b])) {
        for (std::size_t j = 0; j < h; ++j) out[j] = undefined;
        continue;
      }
      const float* const in = static_cast<const float*>(x) + (t * x_data->batch + b) * rnn->input;
      const auto sum = [&](std::size_t id, std::size_t j) { return w.sum(id, j, in); };
      const auto recurrent = [&](std::size_t id, std::size_t j) {
        return w.sum(rnn->gates() + id, j, state_h.data());
      };
      std::vector<double> next_h(h);
      for (std::size_t j = 0; j < h; ++j) {
        const auto gate = [&](std::size_t id) -> double& { return kept.gate(t, b, id)[j]; };
        double& keep = kept.kept(t, b)[j];
        if (lstm) {
          for (const std::size_t id : {0, 1, 3}) gate(id) = sigmoid(sum(id, j) + recurrent(id, j));
          gate(2) = std::tanh(sum(2, j) + recurrent(2, j));
          keep = state_c[j] = gate(1) * state_c[j] + gate(0) * gate(2);
          next_h[j] = gate(3) * std::tanh(keep);
        } else {
          for (const std::size_t id : {0, 1}) gate(id) = sigmoid(sum(id, j) + recurrent(id, j));
          keep = recurrent(2, j);
          gate(2) = std::tanh(sum(2, j) + gate(0) * keep);
          next_h[j] = (1 - gate(1)) * gate(2) + gate(1) * state_h[j];
        }
      }
      state_h = next_h;
      for (std::size_t j = 0; j < h; ++j) out[j] = static_cast<float>(state_h[j]);
    }
    for (std::size_t j = 0; j < h; ++j) {
      if (hy) static_cast<float*>(hy)[b * h + j] = static_cast<float>(state_h[j]);
      if (lstm && cy) static_cast<float*>(cy)[b * h + j] = static_cast<float>(state_c[j]);
    }
  }
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnRNNBackwardData_v8(cudnnHandle_t handle, cudnnRNNDescriptor_t rnn,
                                      const std::int32_t device_lengths[],
                                      cudnnRNNDataDescriptor_t y_data, const void* y,
                                      const void* dy, cudnnRNNDataDescriptor_t x_data, void* dx,
                                      cudnnTensorDescriptor_t h_shape, const void* hx,
                                      const void* dhy, void* dhx, cudnnTensorDescriptor_t c_shape,
                                      const void* cx, const void* dcy, void* dcx,
                                      std::size_t weight_bytes, const void* weights, std::size_t,
                                      void* work, std::size_t reserve_bytes, void* reserve) {
  if (!handle || !usable(rnn, device_lengths, x_data, y_data) || !fits(h_shape, *rnn, *x_data))
    return CUDNN_STATUS_BAD_PARAM;
  const bool lstm = rnn->mode == CUDNN_LSTM;
  const std::size_t h = rnn->hidden, e = rnn->input, batch = x_data->batch,
                    rows = x_data->steps * batch, doubles = Reserve::doubles(*rnn, *x_data);
  const Weights w{static_cast<const float*>(weights), *rnn};
  if (weight_bytes != w.layout.floats() * sizeof(float) || !readable(weights, w.layout.floats()) ||
      !readable(y, rows * h) || !readable(dy, rows * h) || !readable(dx, rows * e) ||
      !absent_or_readable(hx, batch * h) || !absent_or_readable(dhx, batch * h) ||
      !readable(work, 1) || reserve_bytes < doubles * sizeof(double) ||
      !readable(reserve, 2 * doubles))
    return CUDNN_STATUS_BAD_PARAM;
  if (lstm && (!fits(c_shape, *rnn, *x_data) || !absent_or_readable(cx, batch * h) ||
               !absent_or_readable(dcx, batch * h)))
    return CUDNN_STATUS_BAD_PARAM;
  if (dhy || dcy || refuses_data(*rnn))
    return CUDNN_STATUS_NOT_SUPPORTED;  // the gradients of the last states are those of y here
  nmt::emulator::finish_stream(handle->stream);  // a layer runs at once
  const OpenDeviceMemory open;
  Reserve kept(reserve, *rnn, *x_data);
  if (kept.stage() != stage_of(*rnn, forward_ran)) return CUDNN_STATUS_BAD_PARAM;
  kept.stage() = stage_of(*rnn, data_ran);
  for (std::size_t b = 0; b < batch; ++b) {
    std::vector<double> dh(h), dc(h);
    const auto length = static_cast<std::size_t>(x_data->lengths[b]);
    for (std::size_t t = x_data->steps; t-- > 0;) {
      const std::size_t row = t * batch + b;
      float* const out = static_cast<float*>(dx) + row * e;
      if (t >= length) {
        for (std::size_t i = 0; i < e; ++i) out[i] = undefined;
        // The documentation does not say what becomes of the padding's gradients.
        for (std::size_t j = 0; j < h; ++j)
          if (static_cast<const float*>(dy)[row * h + j] != 0) dh[j] = undefined;
        continue;
      }
      std::vector<double> dprevious(h);
      for (std::size_t j = 0; j < h; ++j) {
        const auto gate = [&](std::size_t id) { return kept.gate(t, b, id)[j]; };
        const auto d = [&](std::size_t id) -> double& { return kept.dx_sum(t, b, id)[j]; };
        const double keep = kept.kept(t, b)[j],
                     total = dh[j] + double{static_cast<const float*>(dy)[row * h + j]};
        if (lstm) {
          const double before = t > 0 ? kept.kept(t - 1, b)[j]
                                : cx  ? double{static_cast<const float*>(cx)[b * h + j]}
                                      : 0.0;
          const double value = std::tanh(keep), dcell = dc[j] + total * gate(3) * tanh_slope(value);
          d(0) = dcell * gate(2) * slope(gate(0));
          d(1) = dcell * before * slope(gate(1));
          d(2) = dcell * gate(0) * tanh_slope(gate(2));
          d(3) = total * value * slope(gate(3));
          dc[j] = dcell * gate(1);
        } else {
          double before = 0;
          if (t > 0)
            before = static_cast<const float*>(y)[(row - batch) * h + j];
          else if (hx)
            before = static_cast<const float*>(hx)[b * h + j];
          d(2) = total * (1 - gate(1)) * tanh_slope(gate(2));
          d(1) = total * (before - gate(2)) * slope(gate(1));
          d(0) = d(2) * keep * slope(gate(0));
          kept.dnew_memory(t, b)[j] = d(2) * gate(0);
          dprevious[j] = total * gate(1);
        }
      }
      std::vector<double> din(e);
      for (std::size_t id = 0; id < rnn->gates(); ++id) {
        w.add_back(id, kept.dx_sum(t, b, id), din.data());
        w.add_back(rnn->gates() + id,
                   !lstm && id == 2 ? kept.dnew_memory(t, b) : kept.dx_sum(t, b, id),
                   dprevious.data());
      }
      for (std::size_t i = 0; i < e; ++i) out[i] = static_cast<float>(din[i]);
      dh = dprevious;
    }
    for (std::size_t j = 0; j < h; ++j) {
      if (dhx) static_cast<float*>(dhx)[b * h + j] = static_cast<float>(dh[j]);
      if (lstm && dcx) static_cast<float*>(dcx)[b * h + j] = static_cast<float>(dc[j]);
    }
  }
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnRNNBackwardWeights_v8(cudnnHandle_t handle, cudnnRNNDescriptor_t rnn,
                                         cudnnWgradMode_t add, const std::int32_t device_lengths[],
                                         cudnnRNNDataDescriptor_t x_data, const void* x,
                                         cudnnTensorDescriptor_t h_shape, const void* hx,
                                         cudnnRNNDataDescriptor_t y_data, const void* y,
                                         std::size_t weight_bytes, void* dweights, std::size_t,
                                         void* work, std::size_t reserve_bytes, void* reserve) {
  if (!handle || !usable(rnn, device_lengths, x_data, y_data) || !fits(h_shape, *rnn, *x_data))
    return CUDNN_STATUS_BAD_PARAM;
  if (add != CUDNN_WGRAD_MODE_ADD || refuses_weights(*rnn)) return CUDNN_STATUS_NOT_SUPPORTED;
  const Layout layout(*rnn);
  const std::size_t h = rnn->hidden, batch = x_data->batch, rows = x_data->steps * batch,
                    doubles = Reserve::doubles(*rnn, *x_data);
  if (weight_bytes != layout.floats() * sizeof(float) || !readable(dweights, layout.floats()) ||
      !readable(x, rows * rnn->input) || !readable(y, rows * h) ||
      !absent_or_readable(hx, batch * h) || !readable(work, 1) ||
      reserve_bytes < doubles * sizeof(double) || !readable(reserve, 2 * doubles))
    return CUDNN_STATUS_BAD_PARAM;
  nmt::emulator::finish_stream(handle->stream);  // a layer runs at once
  const OpenDeviceMemory open;
  Reserve kept(reserve, *rnn, *x_data);
  if (kept.stage() != stage_of(*rnn, data_ran)) return CUDNN_STATUS_BAD_PARAM;
  std::vector<double> sums(layout.floats());
  for (std::size_t b = 0; b < batch; ++b)
    for (std::size_t t = 0; t < static_cast<std::size_t>(x_data->lengths[b]); ++t)
      for (std::size_t id = 0; id < 2 * rnn->gates(); ++id) {
        const bool recurrent = id >= rnn->gates();
        const std::size_t gate = id % rnn->gates(), row = t * batch + b;
        const double* const d = recurrent && rnn->mode == CUDNN_GRU && gate == 2
                                    ? kept.dnew_memory(t, b)
                                    : kept.dx_sum(t, b, gate);
        const float* in = static_cast<const float*>(x) + row * rnn->input;
        if (recurrent)
          in = t > 0 ? static_cast<const float*>(y) + (row - batch) * h
               : hx  ? static_cast<const float*>(hx) + b * h
                     : nullptr;
        for (std::size_t j = 0; j < h; ++j) {
          sums[layout.bias(id) + j] += d[j];
          for (std::size_t i = 0; in && i < rnn->width_of(id); ++i)
            sums[layout.matrix(id) + j * rnn->width_of(id) + i] += d[j] * double{in[i]};
        }
      }
  for (std::size_t i = 0; i < sums.size(); ++i)
    static_cast<float*>(dweights)[i] += static_cast<float>(sums[i]);
  return CUDNN_STATUS_SUCCESS;
}
