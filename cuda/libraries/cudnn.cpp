#include "kernels/recurrent/cudnn.h"

#include "cuda/libraries/cudnn_library.h"
#include "cuda/libraries/cudnn_order.h"
#include "cuda/runtime/graph.h"
#include "cuda/runtime/state.h"
#include "kernels/pointwise.h"

#include <map>
#include <memory>
#include <tuple>
#include <type_traits>
#include <vector>

namespace nmt {
namespace cuda {
namespace {

template <class T>
using Owned = std::unique_ptr<std::remove_pointer_t<T>, cudnnStatus_t (*)(T)>;

}  // namespace
}  // namespace cuda

namespace kernels {

using namespace nmt::cuda;

/// A handle of cuDNN on the device's stream.
struct Cudnn::State {
  State(const CudnnLibrary& opened, const Cuda& device)
      : cuda(device),
        library(opened),
        handle(nullptr, opened.cudnnDestroy),
        dropout(nullptr, opened.cudnnDestroyDropoutDescriptor) {
    cudnnHandle_t made = nullptr;
    NMT_CUDA_CHECK(library.cudnnCreate(&made));
    handle.reset(made);
    NMT_CUDA_CHECK(library.cudnnSetStream(made, state_of(cuda).stream));
    cudnnDropoutDescriptor_t none = nullptr;
    NMT_CUDA_CHECK(library.cudnnCreateDropoutDescriptor(&none));
    dropout.reset(none);
    NMT_CUDA_CHECK(library.cudnnSetDropoutDescriptor(none, made, 0.0f, nullptr, 0, 0));
  }
  Cuda cuda;
  const CudnnLibrary& library;
  Owned<cudnnHandle_t> handle;
  Owned<cudnnDropoutDescriptor_t> dropout;  ///< none
  /// The algorithm of each layer (unit, input, width): the persistent one until cuDNN refuses it.
  std::map<std::tuple<const Unit*, std::int64_t, std::int64_t>, cudnnRNNAlgo_t> algorithms;
  /// The algorithm that has filled a reserve, from a forward pass until its backward pass. Several
  /// layers share an entry of `algorithms`.
  std::map<const float*, cudnnRNNAlgo_t> filled;
};

namespace {

using Dnn = Cudnn::State;

// cuDNN's form of a unit, and its gate number for each of our planes (linLayerID of
// cudnnGetRNNWeightParams; the recurrent matrices follow in the same order). The equations of
// cudnnRNNMode_t are those of units/lstm.h and, for reset: after, units/gru.h.
//   lstm: ours i, f, o, g; cuDNN's 0 input, 1 forget, 2 new memory, 3 output
//   gru: ours z, r, n; cuDNN's 0 reset, 1 update, 2 new memory
struct CudnnUnit {
  cudnnRNNMode_t mode;
  int gates;
  int gate_of_plane[4];
};

const CudnnUnit& unit_of(const CudnnLayer& layer) {
  static constexpr CudnnUnit lstm{CUDNN_LSTM, 4, {0, 1, 3, 2}}, gru{CUDNN_GRU, 3, {1, 0, 2}};
  const Unit& unit = *layer.unit;
  const CudnnCell cell = cudnn_cell(unit);
  NMT_CHECK(cell != CudnnCell::none, "cuDNN does not support the unit {} {}", unit.name,
            unit.variant);
  return cell == CudnnCell::lstm ? lstm : gru;
}

// cuDNN's persistent algorithm keeps the recurrent weights in registers, where it supports the
// layer; only the calls tell whether it does.
cudnnRNNAlgo_t& algorithm_of(Dnn& dnn, const CudnnLayer& layer) {
  return dnn.algorithms
      .try_emplace({layer.unit, layer.input, layer.width}, CUDNN_RNN_ALGO_PERSIST_STATIC)
      .first->second;
}

// Whether cuDNN reports that a layer is not supported. In cuDNN 9 all reasons have the same
// thousands.
bool is_refusal(cudnnStatus_t status) {
  constexpr int category = 1000;
  return status / category * category == CUDNN_STATUS_NOT_SUPPORTED / category * category;
}

// Whether a call has refused the persistent algorithm; the layer then uses the standard one.
bool refuses_persistent(Dnn& dnn, const CudnnLayer& layer, cudnnStatus_t status) {
  cudnnRNNAlgo_t& algorithm = algorithm_of(dnn, layer);
  if (!is_refusal(status) || algorithm == CUDNN_RNN_ALGO_STANDARD) return false;
  algorithm = CUDNN_RNN_ALGO_STANDARD;
  return true;
}

// `result`: whether cuDNN supports the layer with this algorithm.
Owned<cudnnRNNDescriptor_t> describe(const Dnn& dnn, const CudnnLayer& layer,
                                     cudnnRNNAlgo_t algorithm, cudnnStatus_t& result) {
  const CudnnLibrary& library = CudnnLibrary::get();
  cudnnRNNDescriptor_t rnn = nullptr;
  NMT_CUDA_CHECK(library.cudnnCreateRNNDescriptor(&rnn));
  Owned<cudnnRNNDescriptor_t> owned(rnn, library.cudnnDestroyRNNDescriptor);
  // CUDNN_FMA_MATH keeps float32 from being computed as TF32 on tensor cores.
  const cudnnMathType_t math =
      state_of(dnn.cuda).precision == Precision::tf32 ? CUDNN_DEFAULT_MATH : CUDNN_FMA_MATH;
  const auto input = static_cast<std::int32_t>(layer.input),
             width = static_cast<std::int32_t>(layer.width);
  const cudnnStatus_t status = library.cudnnSetRNNDescriptor_v8(
      rnn, algorithm, unit_of(layer).mode, CUDNN_RNN_DOUBLE_BIAS, CUDNN_UNIDIRECTIONAL,
      CUDNN_LINEAR_INPUT, CUDNN_DATA_FLOAT, CUDNN_DATA_FLOAT, math, input, width, width, 1,
      dnn.dropout.get(), CUDNN_RNN_PADDED_IO_ENABLED);
  result = status;
  return owned;
}

// [T,B,width], padded. The padding's values are unspecified and not read.
Owned<cudnnRNNDataDescriptor_t> describe(const CudnnPass& pass, std::int64_t width) {
  const CudnnLibrary& library = CudnnLibrary::get();
  cudnnRNNDataDescriptor_t data = nullptr;
  NMT_CUDA_CHECK(library.cudnnCreateRNNDataDescriptor(&data));
  Owned<cudnnRNNDataDescriptor_t> owned(data, library.cudnnDestroyRNNDataDescriptor);
  std::vector<std::int32_t> lengths(static_cast<std::size_t>(pass.batch),
                                    static_cast<std::int32_t>(pass.steps));
  if (pass.lengths) lengths.assign(pass.lengths, pass.lengths + pass.batch);
  for (const std::int32_t length : lengths)
    NMT_CHECK(length >= 1 && length <= pass.steps, "a sentence of {} steps in a batch padded to {}",
              length, pass.steps);
  NMT_CUDA_CHECK(library.cudnnSetRNNDataDescriptor(
      data, CUDNN_DATA_FLOAT, CUDNN_RNN_DATA_LAYOUT_SEQ_MAJOR_UNPACKED,
      static_cast<int>(pass.steps), static_cast<int>(pass.batch), static_cast<int>(width),
      lengths.data(), nullptr));
  return owned;
}

Owned<cudnnTensorDescriptor_t> new_tensor_descriptor() {
  const CudnnLibrary& library = CudnnLibrary::get();
  cudnnTensorDescriptor_t tensor = nullptr;
  NMT_CUDA_CHECK(library.cudnnCreateTensorDescriptor(&tensor));
  return {tensor, library.cudnnDestroyTensorDescriptor};
}

// Rounded up to 256 bytes.
std::int64_t floats_of(std::size_t bytes) {
  return static_cast<std::int64_t>((bytes + 255) / 256 * 64);
}
std::size_t bytes_of(std::int64_t floats) {
  return static_cast<std::size_t>(floats) * sizeof(float);
}

// The descriptors and sizes of a pass. Where the persistent algorithm is not supported, `status`
// says so and the sizes are not set.
struct Plan {
  Plan(const Dnn& dnn, const CudnnPass& pass, cudnnRNNAlgo_t algorithm)
      : rnn(describe(dnn, pass.layer, algorithm, status)),
        x(describe(pass, pass.layer.input)),
        y(describe(pass, pass.layer.width)),
        state(new_tensor_descriptor()) {
    const CudnnLibrary& library = CudnnLibrary::get();
    const auto batch = static_cast<int>(pass.batch), width = static_cast<int>(pass.layer.width);
    const int dims[] = {1, batch, width}, strides[] = {batch * width, width, 1};
    NMT_CUDA_CHECK(
        library.cudnnSetTensorNdDescriptor(state.get(), CUDNN_DATA_FLOAT, 3, dims, strides));
    const cudnnHandle_t handle = dnn.handle.get();
    mode = pass.training ? CUDNN_FWD_MODE_TRAINING : CUDNN_FWD_MODE_INFERENCE;
    if (status == CUDNN_STATUS_SUCCESS)
      status = library.cudnnGetRNNWeightSpaceSize(handle, rnn.get(), &weights);
    if (status == CUDNN_STATUS_SUCCESS)
      status = library.cudnnGetRNNTempSpaceSizes(handle, rnn.get(), mode, x.get(), &work, &reserve);
    if (!is_refusal(status) || algorithm == CUDNN_RNN_ALGO_STANDARD)
      cuda::check(status, "the description of a layer for cuDNN");
  }
  cudnnStatus_t status = CUDNN_STATUS_SUCCESS;
  Owned<cudnnRNNDescriptor_t> rnn;
  Owned<cudnnRNNDataDescriptor_t> x, y;
  Owned<cudnnTensorDescriptor_t> state;
  cudnnForwardMode_t mode;
  std::size_t weights = 0, work = 0, reserve = 0;
};

Plan plan_of(Dnn& dnn, const CudnnPass& pass) {
  Plan plan(dnn, pass, algorithm_of(dnn, pass.layer));
  if (!refuses_persistent(dnn, pass.layer, plan.status)) return plan;
  return Plan(dnn, pass, CUDNN_RNN_ALGO_STANDARD);
}

// The parts of the scratch memory: cuDNN's workspace, reversed sentences, gradients in cuDNN's
// layout.
struct Scratch {
  float *work, *x, *y, *dx, *dy, *weights;
  std::int64_t size = 0;

  Scratch(const CudnnPass& pass, const Plan& plan) {
    const std::int64_t rows = pass.reverse ? pass.steps * pass.batch : 0;
    const auto part = [&](std::size_t bytes) {
      float* const begin = pass.scratch ? pass.scratch + size : nullptr;
      size += floats_of(bytes);
      return begin;
    };
    work = part(plan.work);
    x = part(bytes_of(rows * pass.layer.input));
    y = part(bytes_of(rows * pass.layer.width));
    dx = part(pass.training ? bytes_of(rows * pass.layer.input) : 0);
    dy = part(pass.training ? bytes_of(rows * pass.layer.width) : 0);
    weights = part(pass.training ? plan.weights : 0);
  }
};

// The matrix [H,in] and the bias [H] of one of cuDNN's gates in packed weights.
struct Gate {
  float* matrix = nullptr;
  float* bias = nullptr;
};

Gate find_gate(const Dnn& dnn, const CudnnLayer& layer, cudnnRNNDescriptor_t rnn, std::size_t bytes,
               const float* weights, int id, std::int64_t in) {
  const CudnnLibrary& library = dnn.library;
  const Owned<cudnnTensorDescriptor_t> matrix = new_tensor_descriptor(),
                                       bias = new_tensor_descriptor();
  void *matrix_data = nullptr, *bias_data = nullptr;
  NMT_CUDA_CHECK(library.cudnnGetRNNWeightParams(dnn.handle.get(), rnn, 0, bytes, weights, id,
                                                 matrix.get(), &matrix_data, bias.get(),
                                                 &bias_data));
  const auto expect = [&](const char* what, cudnnTensorDescriptor_t tensor, const void* data,
                          std::int64_t columns) {
    cudnnDataType_t type;
    int rank = 0, dims[3]{}, strides[3]{};
    NMT_CUDA_CHECK(library.cudnnGetTensorNdDescriptor(tensor, 3, &type, &rank, dims, strides));
    NMT_CHECK(data && rank == 3 && type == CUDNN_DATA_FLOAT && dims[1] == layer.width &&
                  dims[2] == columns,
              "gate {}: {} of cuDNN is [{},{}], expected [{},{}]", id, what, dims[1], dims[2],
              layer.width, columns);
  };
  expect("matrix", matrix.get(), matrix_data, in);
  expect("bias", bias.get(), bias_data, 1);
  return {static_cast<float*>(matrix_data), static_cast<float*>(bias_data)};
}

// body(gate, plane, rows, matrix, bias) for every plane of W and of U.
template <class Body>
void each_gate(const Dnn& dnn, const CudnnLayer& layer, cudnnRNNDescriptor_t rnn, std::size_t bytes,
               const float* packed, const CudnnWeights& weights, Body body) {
  const CudnnUnit& unit = unit_of(layer);
  for (int plane = 0; plane < unit.gates; ++plane) {
    const int id = unit.gate_of_plane[plane];
    body(find_gate(dnn, layer, rnn, bytes, packed, id, layer.input), plane, layer.input,
         weights.input, weights.input_bias);
    body(find_gate(dnn, layer, rnn, bytes, packed, unit.gates + id, layer.width), plane,
         layer.width, weights.recurrent, weights.recurrent_bias);
  }
}

Sentences sentences_of(const CudnnPass& pass) {
  NMT_CHECK(!pass.lengths == !pass.device_lengths,
            "lengths are needed both on the host and on the device");
  return {pass.steps, pass.batch, pass.device_lengths};
}

}  // namespace

Cudnn::Cudnn(std::unique_ptr<State> state) : state_(std::move(state)) {}
Cudnn::~Cudnn() = default;

std::unique_ptr<Cudnn> Cudnn::open(const Cuda& cuda, std::string& why) {
  if (state_of(cuda).precision == Precision::bfloat16) {
    why = "its layers compute in float32 or tf32, not in bfloat16";
    return nullptr;
  }
  const CudnnLibrary* const library = CudnnLibrary::open(why);
  return library ? std::make_unique<Cudnn>(std::make_unique<State>(*library, cuda)) : nullptr;
}

// The sizes also suffice for the standard algorithm, since a later call may refuse the persistent
// one.
CudnnSizes Cudnn::sizes(const CudnnPass& pass) const {
  CudnnSizes sizes{};
  const auto add = [&](const Plan& plan) {
    sizes.weights = std::max(sizes.weights, floats_of(plan.weights));
    sizes.reserve = std::max(sizes.reserve, floats_of(plan.reserve));
    sizes.scratch = std::max(sizes.scratch, Scratch(pass, plan).size);
  };
  add(plan_of(*state_, pass));
  if (algorithm_of(*state_, pass.layer) != CUDNN_RNN_ALGO_STANDARD)
    add(Plan(*state_, pass, CUDNN_RNN_ALGO_STANDARD));
  return sizes;
}

namespace {

struct LayerWeights {
  LayerWeights(const Dnn& dnn, const CudnnLayer& layer, cudnnRNNAlgo_t algorithm)
      : rnn(describe(dnn, layer, algorithm, status)) {
    if (status == CUDNN_STATUS_SUCCESS)
      status = dnn.library.cudnnGetRNNWeightSpaceSize(dnn.handle.get(), rnn.get(), &bytes);
  }
  cudnnStatus_t status = CUDNN_STATUS_SUCCESS;
  Owned<cudnnRNNDescriptor_t> rnn;
  std::size_t bytes = 0;
};

// Whether both algorithms have the same weight layout, so that packed weights serve either.
bool same_layout(const Dnn& dnn, const CudnnLayer& layer, const LayerWeights& a,
                 const LayerWeights& b, const float* packed) {
  if (a.bytes != b.bytes) return false;
  for (int id = 0; id < 2 * unit_of(layer).gates; ++id) {
    const std::int64_t in = id < unit_of(layer).gates ? layer.input : layer.width;
    const Gate first = find_gate(dnn, layer, a.rnn.get(), a.bytes, packed, id, in),
               second = find_gate(dnn, layer, b.rnn.get(), b.bytes, packed, id, in);
    if (first.matrix != second.matrix || first.bias != second.bias) return false;
  }
  return true;
}

}  // namespace

void Cudnn::pack(const CudnnLayer& layer, const CudnnWeights& weights, float* packed) const {
  Dnn& dnn = *state_;
  const Cuda& cuda = dnn.cuda;
  const LayerWeights standard(dnn, layer, CUDNN_RNN_ALGO_STANDARD);
  cuda::check(standard.status, "cudnnGetRNNWeightSpaceSize");
  if (algorithm_of(dnn, layer) != CUDNN_RNN_ALGO_STANDARD) {
    const LayerWeights persistent(dnn, layer, CUDNN_RNN_ALGO_PERSIST_STATIC);
    if (!refuses_persistent(dnn, layer, persistent.status)) {
      cuda::check(persistent.status, "cudnnGetRNNWeightSpaceSize");
      if (!same_layout(dnn, layer, persistent, standard, packed))
        refuses_persistent(dnn, layer, CUDNN_STATUS_NOT_SUPPORTED);
    }
  }
  const Owned<cudnnRNNDescriptor_t>& rnn = standard.rnn;
  const std::size_t bytes = standard.bytes;
  cuda.device->clear(packed, bytes);
  const std::int64_t h = layer.width, planes = unit_of(layer).gates * h;
  each_gate(dnn, layer, rnn.get(), bytes, packed, weights,
            [&](const Gate& gate, std::int64_t plane, std::int64_t rows, const float* matrix,
                const float* bias) {
              copy_transposed(cuda, rows, h, matrix + plane * h, planes, gate.matrix, rows);
              if (bias) cuda.device->copy(gate.bias, bias + plane * h, bytes_of(h));
            });
}

// The calls contain the sentences' lengths, which differ from batch to batch, so a graph of them
// would not be reused.
static void keep_out_of_graphs(const Cuda& cuda) {
  if (GraphCache* const recording = state_of(cuda).recording)
    recording->forbid_capture("a layer of cuDNN");
}

void Cudnn::forward(const CudnnPass& pass) const {
  Dnn& dnn = *state_;
  const Cuda& cuda = dnn.cuda;
  keep_out_of_graphs(cuda);
  const CudnnLibrary& library = dnn.library;
  const Plan plan = plan_of(dnn, pass);
  const Scratch scratch(pass, plan);
  const Sentences sentences = sentences_of(pass);
  if (pass.reverse) turn(cuda, sentences, pass.layer.input, pass.x, nullptr, scratch.x);
  // From version 8.9.1 on the lengths on the device are ignored; those of the descriptor count.
  const cudnnStatus_t status = library.cudnnRNNForward(
      dnn.handle.get(), plan.rnn.get(), plan.mode, nullptr, plan.x.get(),
      pass.reverse ? scratch.x : pass.x, plan.y.get(), pass.reverse ? scratch.y : pass.h,
      plan.state.get(), pass.initial[0], nullptr, plan.state.get(), pass.initial[1], pass.last_cell,
      plan.weights, pass.weights, plan.work, scratch.work, plan.reserve,
      pass.training ? pass.reserve : nullptr);
  if (refuses_persistent(dnn, pass.layer, status)) return forward(pass);
  cuda::check(status, "cudnnRNNForward");
  if (pass.training) dnn.filled[pass.reserve] = algorithm_of(dnn, pass.layer);
  if (pass.reverse)
    turn(cuda, sentences, pass.layer.width, scratch.y, pass.initial[0], pass.h);
  else if (sentences.lengths)
    carry_last(cuda, sentences, pass.layer.width, pass.h);
}

namespace {

// False: cuDNN has refused the persistent algorithm.
bool try_backward(Dnn& dnn, const CudnnPass& pass, const CudnnGradient& gradient) {
  const Cuda& cuda = dnn.cuda;
  const CudnnLibrary& library = dnn.library;
  const Plan plan = plan_of(dnn, pass);
  const Scratch scratch(pass, plan);
  const Sentences sentences = sentences_of(pass);
  const std::int64_t e = pass.layer.input, h = pass.layer.width;
  const float *x = pass.x, *y = pass.h, *dy = gradient.dh;
  if (pass.reverse) {
    turn(cuda, sentences, e, pass.x, nullptr, scratch.x);
    turn(cuda, sentences, h, pass.h, nullptr, scratch.y);
    turn(cuda, sentences, h, gradient.dh, nullptr, scratch.dy);
    x = scratch.x;
    y = scratch.y;
    dy = scratch.dy;
  }
  const cudnnHandle_t handle = dnn.handle.get();
  cudnnStatus_t status = library.cudnnRNNBackwardData_v8(
      handle, plan.rnn.get(), nullptr, plan.y.get(), y, dy, plan.x.get(),
      pass.reverse ? scratch.dx : gradient.dx, plan.state.get(), pass.initial[0], nullptr,
      gradient.dinitial[0], plan.state.get(), pass.initial[1], nullptr, gradient.dinitial[1],
      plan.weights, pass.weights, plan.work, scratch.work, plan.reserve, pass.reserve);
  if (refuses_persistent(dnn, pass.layer, status)) return false;
  cuda::check(status, "cudnnRNNBackwardData_v8");
  cuda.device->clear(scratch.weights, plan.weights);  // the call below adds
  status = library.cudnnRNNBackwardWeights_v8(handle, plan.rnn.get(), CUDNN_WGRAD_MODE_ADD, nullptr,
                                              plan.x.get(), x, plan.state.get(), pass.initial[0],
                                              plan.y.get(), y, plan.weights, scratch.weights,
                                              plan.work, scratch.work, plan.reserve, pass.reserve);
  if (refuses_persistent(dnn, pass.layer, status)) return false;
  cuda::check(status, "cudnnRNNBackwardWeights_v8");
  if (pass.reverse) {
    turn(cuda, sentences, e, scratch.dx, nullptr, gradient.dx);
    if (gradient.dinitial[0]) add_padding(cuda, sentences, h, gradient.dh, gradient.dinitial[0]);
  } else if (sentences.lengths) {
    clear_padding(cuda, sentences, e, gradient.dx);
  }
  const std::int64_t planes = unit_of(pass.layer).gates * h;
  each_gate(
      dnn, pass.layer, plan.rnn.get(), plan.weights, scratch.weights, gradient.weights,
      [&](const Gate& gate, std::int64_t plane, std::int64_t rows, float* matrix, float* bias) {
        add_transposed(cuda, h, rows, gate.matrix, rows, matrix + plane * h, planes);
        if (bias) add_scaled(cuda, h, 1.0f, gate.bias, bias + plane * h);
      });
  return true;
}

}  // namespace

void Cudnn::backward(const CudnnPass& pass, const CudnnGradient& gradient) const {
  keep_out_of_graphs(state_->cuda);
  const Sentences sentences = sentences_of(pass);
  if (!pass.reverse && sentences.lengths)
    gather_padding(state_->cuda, sentences, pass.layer.width, gradient.dh);
  // The reserve of the forward pass is that of one algorithm. Another layer of these sizes may have
  // been refused since.
  const auto filled = state_->filled.find(pass.reserve);
  NMT_CHECK(filled != state_->filled.end(), "a backward pass of cuDNN without its forward pass");
  if (filled->second != algorithm_of(*state_, pass.layer)) forward(pass);
  while (!try_backward(*state_, pass, gradient)) forward(pass);
  state_->filled.erase(pass.reserve);
}

}  // namespace kernels
}  // namespace nmt
