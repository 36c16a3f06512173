#pragma once

// The contents of the emulated cuDNN's descriptors, and the layouts of its weights and its reserve.

#include "running.h"

#include <vector>

#include <cudnn.h>

struct cudnnContext {
  cudaStream_t stream = nullptr;
};
struct cudnnDropoutStruct {
  bool set = false;
};
struct cudnnTensorStruct {
  std::vector<int> dims, strides;
};
struct cudnnRNNStruct {
  bool set = false;
  cudnnRNNMode_t mode;
  std::size_t input, hidden;
  bool persistent = false;
  std::size_t gates() const { return mode == CUDNN_LSTM ? 4 : 3; }
  std::size_t width_of(std::size_t id) const { return id < gates() ? input : hidden; }
};
struct cudnnRNNDataStruct {
  std::size_t steps = 0, batch = 0, width = 0;
  std::vector<int> lengths;
  bool same_sentences(const cudnnRNNDataStruct& other) const {
    return steps == other.steps && batch == other.batch && lengths == other.lengths;
  }
};

namespace nmt::emulator::cudnn {

// What the persistent algorithm does not support, by rules of our own: every call refuses it for
// some layers. Where other_places() says so, the places of its weights differ from the standard's.
inline bool describes(std::size_t hidden) {
  return hidden % 2 == 0;
}
inline bool has_sizes(std::size_t hidden) {
  return hidden % 32 != 16;
}
inline bool other_places(const cudnnRNNStruct& rnn) {
  return rnn.persistent && rnn.hidden % 8 == 4;
}
inline bool refuses_forward(const cudnnRNNStruct& rnn) {
  return rnn.persistent && rnn.hidden % 4 == 2;
}
inline bool refuses_data(const cudnnRNNStruct& rnn) {
  return rnn.persistent && rnn.input % 2 == 1;
}
inline bool refuses_weights(const cudnnRNNStruct& rnn) {
  return rnn.persistent && rnn.input % 4 == 2;
}

constexpr std::size_t gap =
    5;  // floats between the parts of the weights: callers must not assume that there are none

inline bool readable(const void* data, std::size_t floats) {
  return device_region(data).has(data, floats * sizeof(float));
}
inline bool absent_or_readable(const void* data, std::size_t floats) {
  return !data || readable(data, floats);
}

// Gates 0..n-1 read x, n..2n-1 read h'. From the last one to the first, biases before matrices.
struct Layout {
  explicit Layout(const cudnnRNNStruct& rnn) : rnn_(rnn) {}
  std::size_t bias(std::size_t id) const {
    return (last() - id) * (rnn_.hidden + gap) + (other_places(rnn_) ? 1 : 0);
  }
  std::size_t matrix(std::size_t id) const {
    std::size_t at = (last() + 1) * (rnn_.hidden + gap);
    for (std::size_t other = last(); other > id; --other)
      at += rnn_.hidden * rnn_.width_of(other) + gap;
    return at;
  }
  std::size_t floats() const { return matrix(0) + rnn_.hidden * rnn_.input + gap; }

 private:
  std::size_t last() const { return 2 * rnn_.gates() - 1; }
  const cudnnRNNStruct& rnn_;
};

// The reserve of each step: the values of the gates, then the gradients of their sums; lstm's cell,
// gru's recurrent part of the new memory.
constexpr double forward_ran = 11, data_ran = 12, of_persistent = 100;
inline double stage_of(const cudnnRNNStruct& rnn, double stage) {
  return stage + (rnn.persistent ? of_persistent : 0);
}
struct Reserve {
  Reserve(void* memory, const cudnnRNNStruct& rnn, const cudnnRNNDataStruct& x)
      : data(static_cast<double*>(memory)), rnn_(rnn), x_(x) {}
  static std::size_t doubles(const cudnnRNNStruct& rnn, const cudnnRNNDataStruct& x) {
    return 1 + x.steps * x.batch * 10 * rnn.hidden;
  }
  double& stage() { return data[0]; }
  double* row(std::size_t t, std::size_t b, std::size_t part) {
    return data + 1 + ((t * x_.batch + b) * 10 + part) * rnn_.hidden;
  }
  double* gate(std::size_t t, std::size_t b, std::size_t id) { return row(t, b, id); }
  double* kept(std::size_t t, std::size_t b) { return row(t, b, 4); }
  double* dx_sum(std::size_t t, std::size_t b, std::size_t id) { return row(t, b, 5 + id); }
  double* dnew_memory(std::size_t t, std::size_t b) {
    return row(t, b, 9);
  }  // gru: of the recurrent part
  double* data;

 private:
  const cudnnRNNStruct& rnn_;
  const cudnnRNNDataStruct& x_;
};

}  // namespace nmt::emulator::cudnn
