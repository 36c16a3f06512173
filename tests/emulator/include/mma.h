#pragma once

// nvcuda::wmma for products of bfloat16, 16 x 16 x 16, for the emulator. Which element of a
// fragment a lane holds is arbitrary and differs between the operands, as a kernel may not know it.
// New fragments are NaN. Every lane accesses memory for its own elements, so that accesses are
// checked as those of other code. It detects operations that not all lanes of a warp make together
// or with the same address, and addresses and strides that the hardware does not take.

#include "cuda_bf16.h"
#include "cuda_runtime.h"

namespace nvcuda::wmma {

struct matrix_a {};
struct matrix_b {};
struct accumulator {};
struct row_major {};
struct col_major {};
enum layout_t { mem_row_major, mem_col_major };

template <class Use, int m, int n, int k, class T, class Layout = void>
struct fragment;
template <class Use, class Layout>
struct fragment<Use, 16, 16, 16, __nv_bfloat16, Layout> {
  static constexpr int num_elements = nmt::emulator::fragment_elements;
  fragment() {
    for (__nv_bfloat16& value : x) value.bits = 0xFFFF;
  }
  __nv_bfloat16 x[num_elements];
};
template <>
struct fragment<accumulator, 16, 16, 16, float, void> {
  static constexpr int num_elements = nmt::emulator::fragment_elements;
  fragment() {
    for (float& value : x) value = __builtin_nanf("");
  }
  float x[num_elements];
};

template <class Use>
inline constexpr auto use_of = nmt::emulator::FragmentUse::accumulator;
template <>
inline constexpr auto use_of<matrix_a> = nmt::emulator::FragmentUse::a;
template <>
inline constexpr auto use_of<matrix_b> = nmt::emulator::FragmentUse::b;

// access(element of the fragment, offset in memory) for the elements of the calling lane.
template <class Use, class T, class Access>
void each_element(const T* address, unsigned stride, bool by_rows, std::source_location at,
                  Access access) {
  nmt::emulator::matrix_operation({.kind = nmt::emulator::MatrixOperation::memory,
                                   .address = address,
                                   .stride = stride,
                                   .size = sizeof(T)},
                                  at);
  const int lane = static_cast<int>(threadIdx.x % 32);
  for (int e = 0; e < nmt::emulator::fragment_elements; ++e) {
    const auto place = nmt::emulator::fragment_place(use_of<Use>, lane, e);
    access(e, by_rows ? place.row * stride + place.column : place.column * stride + place.row);
  }
}

template <class Use, class Layout>
void load_matrix_sync(fragment<Use, 16, 16, 16, __nv_bfloat16, Layout>& to,
                      const __nv_bfloat16* from, unsigned stride,
                      std::source_location at = std::source_location::current()) {
  each_element<Use>(from, stride, std::is_same_v<Layout, row_major>, at,
                    [&](int e, std::size_t offset) { to.x[e] = from[offset]; });
}
inline void load_matrix_sync(fragment<accumulator, 16, 16, 16, float>& to, const float* from,
                             unsigned stride, layout_t layout,
                             std::source_location at = std::source_location::current()) {
  each_element<accumulator>(from, stride, layout == mem_row_major, at,
                            [&](int e, std::size_t offset) { to.x[e] = from[offset]; });
}
inline void store_matrix_sync(float* to, const fragment<accumulator, 16, 16, 16, float>& from,
                              unsigned stride, layout_t layout,
                              std::source_location at = std::source_location::current()) {
  each_element<accumulator>(to, stride, layout == mem_row_major, at,
                            [&](int e, std::size_t offset) { to[offset] = from.x[e]; });
}
template <class Fragment, class T>
void fill_fragment(Fragment& fragment, T value) {
  for (auto& x : fragment.x) x = value;
}
template <class A, class B>
void mma_sync(fragment<accumulator, 16, 16, 16, float>& d,
              const fragment<matrix_a, 16, 16, 16, __nv_bfloat16, A>& a,
              const fragment<matrix_b, 16, 16, 16, __nv_bfloat16, B>& b,
              const fragment<accumulator, 16, 16, 16, float>& c,
              std::source_location at = std::source_location::current()) {
  nmt::emulator::matrix_operation({.kind = nmt::emulator::MatrixOperation::multiply,
                                   .a = &a.x[0].bits,
                                   .b = &b.x[0].bits,
                                   .c = c.x,
                                   .d = d.x},
                                  at);
}

}  // namespace nvcuda::wmma
