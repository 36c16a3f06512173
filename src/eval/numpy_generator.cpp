#include "eval/numpy_generator.h"

#include <array>
#include <bit>

namespace nmt {
namespace {

// SeedSequence: the constants of randutils.hpp (O'Neill 2015) that numpy uses.
constexpr std::uint32_t init_a = 0x43b0d7e5, mult_a = 0x931e8875, init_b = 0x8b51f9dd,
                        mult_b = 0x58f38ded;
constexpr std::uint32_t mix_left = 0xca01f9dd, mix_right = 0x4973f715;
constexpr std::size_t pool_size = 4;

std::uint32_t fold(std::uint32_t x) {
  return x ^ x >> 16;
}
std::uint32_t hash(std::uint32_t value, std::uint32_t& constant, std::uint32_t multiplier) {
  value ^= constant;
  constant *= multiplier;
  return fold(value * constant);
}

std::array<std::uint64_t, 4> seed_sequence(std::uint64_t seed) {
  std::array<std::uint32_t, pool_size> pool{static_cast<std::uint32_t>(seed),
                                            static_cast<std::uint32_t>(seed >> 32)};
  std::uint32_t constant = init_a;
  for (std::uint32_t& word : pool) word = hash(word, constant, mult_a);
  for (std::size_t from = 0; from < pool_size; ++from)
    for (std::size_t to = 0; to < pool_size; ++to)
      if (from != to)
        pool[to] = fold(mix_left * pool[to] - mix_right * hash(pool[from], constant, mult_a));
  constant = init_b;
  std::array<std::uint64_t, 4> state{};
  for (std::size_t i = 0; i < 2 * state.size(); ++i)
    state[i / 2] |= std::uint64_t{hash(pool[i % pool_size], constant, mult_b)} << (i % 2 * 32);
  return state;
}

}  // namespace

NumpyGenerator::NumpyGenerator(std::uint64_t seed) {
  const auto words = seed_sequence(seed);
  const Word start = static_cast<Word>(words[0]) << 64 | words[1];
  increment_ = (static_cast<Word>(words[2]) << 64 | words[3]) << 1 | 1;
  step();
  state_ += start;
  step();
}

void NumpyGenerator::step() {
  constexpr Word multiplier =
      static_cast<Word>(2549297995355413924ULL) << 64 | 4865540595714422341ULL;
  state_ = state_ * multiplier + increment_;
}

std::uint64_t NumpyGenerator::next64() {
  step();
  const auto high = static_cast<std::uint64_t>(state_ >> 64),
             low = static_cast<std::uint64_t>(state_);
  return std::rotr(high ^ low, static_cast<int>(high >> 58));
}

std::uint32_t NumpyGenerator::next32() {
  has_half_ = !has_half_;
  if (!has_half_) return half_;
  const std::uint64_t word = next64();
  half_ = static_cast<std::uint32_t>(word >> 32);
  return static_cast<std::uint32_t>(word);
}

// Lemire 2019, "Fast random integer generation in an interval", algorithm 5, as numpy's
// buffered_bounded_lemire_uint32.
std::uint32_t NumpyGenerator::below(std::uint32_t bound) {
  if (bound == 1) return 0;
  std::uint64_t product = std::uint64_t{next32()} * bound;
  if (static_cast<std::uint32_t>(product) < bound) {
    const std::uint32_t threshold = (0xffffffffU - (bound - 1)) % bound;
    while (static_cast<std::uint32_t>(product) < threshold)
      product = std::uint64_t{next32()} * bound;
  }
  return static_cast<std::uint32_t>(product >> 32);
}

bool NumpyGenerator::bit() {
  if (bits_left_ == 0) {
    bits_ = next32();
    bits_left_ = 32;
  } else {
    bits_ >>= 1;
  }
  --bits_left_;
  return bits_ & 1;
}

}  // namespace nmt
