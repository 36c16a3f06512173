#include "tensor/safetensors.h"

#include "tests/fuzz/target.h"

#include <stdexcept>

// A safetensors file; reads every byte of every tensor that the reader accepts.
void nmt::fuzz::safetensors(std::string_view bytes) {
  read([&] {
    const nmt::safetensors::Contents contents(bytes, "fuzz.safetensors");
    unsigned sum = 0;
    for (const auto& tensor : contents.tensors()) {
      const std::byte* data = tensor.data;
      for (std::size_t i = 0; i < tensor.bytes(); ++i) sum += static_cast<unsigned>(data[i]);
      if (contents.find(tensor.name) == nullptr)
        throw std::logic_error("a tensor cannot be found by its name");
    }
    if (sum == 0xFFFFFFFFu)
      throw std::logic_error("unreachable: prevents the sum from being optimized away");
  });
}

NMT_FUZZ_TARGET(safetensors)
