#include "core/threads/thread_pool.h"
#include "kernels/attention/quantized_memory.h"
#include "kernels/attention/quantized_self_attention.h"
#include "tests/kernels/random_floats.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <vector>

#include <gtest/gtest.h>

namespace nmt::kernels {
namespace {

using Doubles = std::vector<double>;

// Symmetric linear quantization in double: x ~ step q.
struct Quantized {
  explicit Quantized(const Doubles& x) {
    float most = 0;
    for (const double each : x) most = std::max(most, static_cast<float>(std::abs(each)));
    const float factor = 127.0f / most;
    for (const double each : x) q.push_back(std::nearbyint(each * factor));
    step = most / 127.0f;
  }
  Doubles q;
  double step = 0;
};

double dot(const Doubles& a, const Doubles& b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

struct Head {
  std::vector<Doubles> keys, values;  // a vector per position
};

Doubles softmax(Doubles scores) {
  const double most = *std::max_element(scores.begin(), scores.end());
  double sum = 0;
  for (double& each : scores) sum += each = std::exp(each - most);
  for (double& each : scores) each /= sum;
  return scores;
}

struct Attended {
  Doubles weights, context;
};

// One query in double; `quantize`: with the steps of int8 products.
Attended attend(const Doubles& query, const Head& head, bool quantize) {
  const double scale = 1 / std::sqrt(static_cast<double>(query.size()));
  Attended out;
  for (const Doubles& key : head.keys) {
    const Quantized q(query), k(key);
    out.weights.push_back(scale * (quantize ? q.step * k.step * dot(q.q, k.q) : dot(query, key)));
  }
  out.weights = softmax(out.weights);
  for (std::size_t i = 0; i < head.values[0].size(); ++i) {
    Doubles channel;
    for (const Doubles& value : head.values) channel.push_back(value[i]);
    const Quantized w(out.weights), v(channel);
    out.context.push_back(quantize ? w.step * v.step * dot(w.q, v.q) : dot(out.weights, channel));
  }
  return out;
}

Doubles part(const Floats& x, std::int64_t begin, std::int64_t count) {
  return {x.begin() + begin, x.begin() + begin + count};
}

double distance(const Doubles& a, const float* b) {
  double most = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const double d = std::abs(a[i] - static_cast<double>(b[i]));
    if (!(d <= most)) most = d;  // also NaN
  }
  return most;
}

class QuantizedAttention : public testing::Test {
 protected:
  // Sentences of these lengths padded to `steps`, with random keys, values and one query each.
  void prepare(std::int64_t steps, std::vector<std::int32_t> of, std::int64_t heads,
               std::int64_t space, std::int64_t width) {
    lengths = std::move(of);
    a = {};
    a.kind = AttentionKind::dot;
    a.steps = steps;
    a.sentences = std::ssize(lengths);
    a.heads = heads;
    a.space = heads * space;
    a.width = heads * width;
    a.lengths = lengths.data();
    keys = random_floats(steps * a.sentences * a.space, 1);
    values = random_floats(steps * a.sentences * a.width, 2, 0.3f);
    for (float& each : keys) each *= 3;  // weights that differ
    query = random_floats(a.sentences * a.space, 3);
  }
  void run() {
    a.keys = keys.data();
    a.memory = values.data();
    a.quantized_stride = quantized_memory_bytes(a.steps, a.space, a.width, a.heads);
    packed.assign(static_cast<std::size_t>(a.quantized_stride * a.sentences / 64), {});
    quantize_memory(cpu_, a, a.quantized_stride, packed.data()->bytes);
    a.keys = a.memory = nullptr;
    a.quantized = packed.data()->bytes;
    weights.assign(static_cast<std::size_t>(a.sentences * a.heads * a.steps), -1.0f);
    context.assign(static_cast<std::size_t>(a.sentences * a.width), -1.0f);
    attention_forward(cpu_, a, 1, a.sentences, nullptr, query.data(), weights.data(),
                      context.data());
  }
  Head head(std::int64_t b, std::int64_t i) const {
    const std::int64_t space = a.space / a.heads, width = a.width / a.heads;
    Head head;
    for (std::int64_t s = 0; s < lengths[static_cast<std::size_t>(b)]; ++s) {
      head.keys.push_back(part(keys, (s * a.sentences + b) * a.space + i * space, space));
      head.values.push_back(part(values, (s * a.sentences + b) * a.width + i * width, width));
    }
    return head;
  }
  const float* weights_of(std::int64_t b, std::int64_t i) const {
    return weights.data() + (b * a.heads + i) * a.steps;
  }
  const float* context_of(std::int64_t b, std::int64_t i) const {
    return context.data() + b * a.width + i * (a.width / a.heads);
  }
  Doubles query_of(std::int64_t b, std::int64_t i) const {
    return part(query, b * a.space + i * (a.space / a.heads), a.space / a.heads);
  }

  struct alignas(64) Line {
    std::byte bytes[64];
  };
  Attention a;
  std::vector<std::int32_t> lengths;
  Floats keys, values, query, weights, context;
  test::Guarded<Line> packed;
  ThreadPool pool_{2};
  Cpu cpu_{&pool_};
};

TEST_F(QuantizedAttention, IsThatOfIntegersInDouble) {
  struct Case {
    std::int64_t steps, heads, space, width;
    std::vector<std::int32_t> lengths;
  };
  for (const Case& c :
       {Case{1, 1, 4, 4, {1}}, Case{37, 8, 32, 32, {37, 30, 1, 16, 17}}, Case{5, 3, 7, 11, {5, 4}},
        Case{70, 1, 256, 64, {66, 70}}, Case{40000, 1, 4, 4, {33000, 40000}}}) {
    prepare(c.steps, c.lengths, c.heads, c.space, c.width);
    run();
    double error = 0, size = 0;
    for (std::int64_t b = 0; b < a.sentences; ++b)
      for (std::int64_t i = 0; i < a.heads; ++i) {
        const auto length = static_cast<std::size_t>(lengths[static_cast<std::size_t>(b)]);
        if (length <= 16384) {  // a single matrix of values
          const Attended right = attend(query_of(b, i), head(b, i), true);
          EXPECT_LT(distance(right.weights, weights_of(b, i)), 1e-6) << c.steps << " " << b;
          EXPECT_LT(distance(right.context, context_of(b, i)), 3e-6) << c.steps << " " << b;
        }
        const Attended plain = attend(query_of(b, i), head(b, i), false);
        for (std::size_t j = 0; j < plain.context.size(); ++j) {
          const double difference = plain.context[j] - context_of(b, i)[j];
          error += difference * difference;
          size += plain.context[j] * plain.context[j];
        }
        for (std::int64_t s = std::ssize(plain.weights); s < a.steps; ++s)
          EXPECT_EQ(weights_of(b, i)[s], 0);
      }
    EXPECT_LT(std::sqrt(error / size), 0.02) << c.steps;
  }
}

TEST_F(QuantizedAttention, DoesNotDependOnPaddingOrBatch) {
  prepare(37, {30, 37, 2}, 4, 32, 32);
  run();
  const Floats all = context;
  const Floats batch_keys = keys, batch_values = values, batch_query = query;
  for (std::int64_t b = 0; b < 3; ++b) {
    const std::int64_t n = lengths[static_cast<std::size_t>(b)];
    Floats one_key, one_value;
    for (std::int64_t s = 0; s < n; ++s) {
      const auto at = (s * 3 + b) * 128;
      one_key.insert(one_key.end(), batch_keys.begin() + at, batch_keys.begin() + at + 128);
      one_value.insert(one_value.end(), batch_values.begin() + at, batch_values.begin() + at + 128);
    }
    prepare(n, {static_cast<std::int32_t>(n)}, 4, 32, 32);
    keys = one_key;
    values = one_value;
    query.assign(batch_query.begin() + b * 128, batch_query.begin() + (b + 1) * 128);
    run();
    EXPECT_TRUE(std::equal(context.begin(), context.end(), all.begin() + b * 128)) << b;
    lengths = {30, 37, 2};
  }
}

TEST_F(QuantizedAttention, ShowsValuesThatAreNotFinite) {
  for (const float bad :
       {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
    prepare(9, {9, 9}, 2, 8, 8);
    keys[(4 * 2 + 1) * 16 + 3] = bad;  // position 4 of sentence 1, head 0
    run();
    EXPECT_TRUE(std::isnan(context_of(1, 0)[0]));
    EXPECT_TRUE(std::isfinite(context_of(1, 1)[0]));
    EXPECT_TRUE(std::isfinite(context_of(0, 0)[0]));
    prepare(9, {9, 9}, 2, 8, 8);
    values[(4 * 2 + 1) * 16 + 3] = bad;  // channel 3 of head 0
    run();
    EXPECT_TRUE(std::isnan(context_of(1, 0)[3]));
    EXPECT_TRUE(std::isfinite(context_of(1, 0)[2]));
    EXPECT_TRUE(std::isfinite(context_of(0, 0)[3]));
  }
}

TEST(QuantizedSelfAttention, IsThatOfIntegersInDouble) {
  ThreadPool pool{2};
  const Cpu cpu{&pool};
  // More queries than a block of them; a head of an odd size; padding.
  for (const auto& [steps, heads, size] : {std::array{101, 2, 8}, {30, 8, 32}, {3, 1, 5}}) {
    const std::vector<std::int32_t> lengths{static_cast<std::int32_t>(steps), 2, 1};
    const SelfAttention shape{steps, 3, heads, size, lengths.data()};
    const Floats x = random_floats(steps * 3 * 3 * shape.width(), 5);
    Floats out(static_cast<std::size_t>(steps * 3 * shape.width()), -1.0f);
    quantized_self_attention(cpu, shape, x.data(), out.data());
    for (std::int64_t b = 0; b < 3; ++b)
      for (std::int64_t i = 0; i < heads; ++i) {
        const auto at = [&](std::int64_t t, int plane) {
          return part(x, (((t * 3 + b) * heads + i) * 3 + plane) * size, size);
        };
        const std::int64_t length = lengths[static_cast<std::size_t>(b)];
        Head head;
        for (std::int64_t t = 0; t < length; ++t) {
          head.keys.push_back(at(t, 1));
          head.values.push_back(at(t, 2));
        }
        for (std::int64_t t = 0; t < steps; ++t) {
          const Doubles right = t < length ? attend(at(t, 0), head, true).context
                                           : Doubles(static_cast<std::size_t>(size));
          EXPECT_LT(distance(right, out.data() + (t * 3 + b) * shape.width() + i * size), 3e-6)
              << "size " << size << ", sentence " << b << ", head " << i << ", step " << t;
        }
      }
  }
}

}  // namespace
}  // namespace nmt::kernels
