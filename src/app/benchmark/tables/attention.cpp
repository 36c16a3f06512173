#include "kernels/attention.h"

#include "app/benchmark/tables/reference.h"
#include "app/benchmark/tables/tables.h"

#include <numeric>

#include <fmt/format.h>

namespace nmt::app::bench {
namespace {

struct Size {
  std::int64_t source, target, batch, space, width, heads;
};

class AttentionCase {
 public:
  AttentionCase(Case& a_case, bool additive, const Size& size, bool backward)
      : case_(a_case), size_(size), backward_(backward) {
    const Context& context = case_.context();
    query_host_ = Case::values(size.target * size.batch * size.space, 1);
    keys_host_ = Case::values(size.source * size.batch * size.space, 2);
    memory_host_ = Case::values(size.source * size.batch * size.width, 3);
    v_host_ = Case::values(size.space, 4);
    dcontext_host_ = Case::values(size.target * size.batch * size.width, 5);
    query_ = upload(context, query_host_, {size.target * size.batch * size.space});
    keys_ = upload(context, keys_host_, {size.source * size.batch * size.space});
    memory_ = upload(context, memory_host_, {size.source * size.batch * size.width});
    v_ = upload(context, v_host_, {size.space});
    for (std::int64_t b = 0; b < size.batch; ++b)
      lengths_host_.push_back(static_cast<std::int32_t>(size.source - b % 3));
    lengths_ = upload(context, lengths_host_, {size.batch});
    weights_ = context.empty({size.target * size.batch * size.heads * size.source});
    out_ = context.empty({size.target * size.batch * size.width});
    a_.kind = additive ? kernels::AttentionKind::additive : kernels::AttentionKind::dot;
    a_.steps = size.source;
    a_.sentences = size.batch;
    a_.space = size.space;
    a_.width = size.width;
    a_.heads = size.heads;
    a_.keys = keys_.f32();
    if (additive && context.backend->exponential_keys) {
      exp_keys_ = context.empty(keys_.shape());
      kernels::attention_exp_keys(context.cpu, keys_.elements(), keys_.f32(), exp_keys_.f32());
      a_.exp_keys = exp_keys_.f32();
    }
    a_.memory = memory_.f32();
    a_.lengths = lengths_.data<std::int32_t>();
    a_.v = additive ? v_.f32() : nullptr;
    forward();
    if (!backward) return;
    dcontext_ = upload(context, dcontext_host_, {size.target * size.batch * size.width});
    g_.dcontext = dcontext_.f32();
    g_.dquery = (dquery_ = case_.zeros(query_.elements())).f32();
    g_.dkeys = (dkeys_ = case_.zeros(keys_.elements())).f32();
    g_.dmemory = (dmemory_ = case_.zeros(memory_.elements())).f32();
    if (additive) g_.dv = (dv_ = case_.zeros(size.space)).f32();
    dispatch(context, [&](const auto& backend) {
      scratch_ = context.empty(
          {std::max<std::int64_t>(1, kernels::attention_scratch(backend, a_, size.target))});
    });
    g_.scratch = scratch_.f32();
  }

  void run() {
    if (!backward_) return forward();
    dispatch(case_.context(), [&](const auto& backend) {
      kernels::attention_backward(backend, a_, size_.target, query_.f32(), weights_.f32(), g_);
    });
  }

  // Multiply-adds of scores and contexts; back: of dquery, dkeys, dmemory and the weights. tanh is
  // not counted. Returns the number of scores.
  double count() {
    const double places =
        static_cast<double>(size_.target) *
        static_cast<double>(std::accumulate(lengths_host_.begin(), lengths_host_.end(), 0LL));
    const double forward = 2 * places * static_cast<double>(size_.space + size_.width);
    const double back =
        2 * places * static_cast<double>((a_.v ? 3 : 2) * size_.space + 2 * size_.width);
    const double rows = static_cast<double>(size_.batch * (size_.source + size_.target) *
                                            (size_.space + size_.width));
    case_.work(backward_ ? back : forward, 4 * rows * (backward_ ? 2 : 1));
    return places * static_cast<double>(size_.heads);
  }

  void check() {
    run();
    const std::int64_t b = size_.batch / 2;
    SentenceAttention s = sentence_of(b);
    if (!backward_) {
      const Doubles expected = run_attention(s);
      const std::vector<float> out = case_.read(out_);
      for (std::size_t i = 0; i < expected.size(); ++i)
        case_.compare(fmt::format("context[{}]", i), out[place_of(b, i, size_.width)], expected[i],
                      1, 2e-5);
      return;
    }
    compare_derivative("the query", b, s, s.query, dquery_, size_.space);
    compare_derivative("the keys", b, s, s.keys, dkeys_, size_.space);
    compare_derivative("the memory", b, s, s.memory, dmemory_, size_.width);
  }

 private:
  void forward() {
    dispatch(case_.context(), [&](const auto& backend) {
      kernels::attention_forward(backend, a_, size_.target, size_.batch, nullptr, query_.f32(),
                                 weights_.f32(), out_.f32());
    });
  }

  std::size_t place_of(std::int64_t b, std::size_t i, std::int64_t width) const {
    const std::int64_t t = static_cast<std::int64_t>(i) / width;
    return static_cast<std::size_t>((t * size_.batch + b) * width +
                                    static_cast<std::int64_t>(i) % width);
  }
  Doubles part(const std::vector<float>& all, std::int64_t b, std::int64_t steps,
               std::int64_t width) const {
    Doubles out(static_cast<std::size_t>(steps * width));
    for (std::size_t i = 0; i < out.size(); ++i) out[i] = all[place_of(b, i, width)];
    return out;
  }

  SentenceAttention sentence_of(std::int64_t b) const {
    SentenceAttention s;
    s.additive = a_.v != nullptr;
    s.steps = lengths_host_[static_cast<std::size_t>(b)];
    s.queries = size_.target;
    s.space = size_.space;
    s.width = size_.width;
    s.heads = size_.heads;
    s.query = part(query_host_, b, size_.target, size_.space);
    s.keys = part(keys_host_, b, s.steps, size_.space);
    s.memory = part(memory_host_, b, s.steps, size_.width);
    s.v = {v_host_.begin(), v_host_.end()};
    return s;
  }

  // Compares the derivative along a direction of one of the sentence's inputs.
  void compare_derivative(const char* name, std::int64_t b, SentenceAttention& s, Doubles& input,
                          const Tensor& gradient, std::int64_t width) {
    const std::vector<float> host = case_.read(gradient),
                             direction = Case::values(static_cast<std::int64_t>(input.size()), 6);
    double derivative = 0, scale = 0;
    for (std::size_t i = 0; i < input.size(); ++i) {
      const double at = host[place_of(b, i, width)] * static_cast<double>(direction[i]);
      derivative += at;
      scale += std::abs(at);
    }
    constexpr double epsilon = 1e-5;
    const Doubles before = input;
    const auto objective = [&](double step) {
      for (std::size_t i = 0; i < input.size(); ++i)
        input[i] = before[i] + step * static_cast<double>(direction[i]);
      const Doubles out = run_attention(s);
      double sum = 0;
      for (std::size_t i = 0; i < out.size(); ++i)
        sum += dcontext_host_[place_of(b, i, size_.width)] * out[i];
      return sum;
    };
    const double expected = (objective(epsilon) - objective(-epsilon)) / (2 * epsilon);
    input = before;
    case_.compare(fmt::format("the derivative by {}", name), derivative, expected, scale, 1e-4);
  }

  Case& case_;
  Size size_;
  bool backward_;
  std::vector<float> query_host_, keys_host_, memory_host_, v_host_, dcontext_host_;
  std::vector<std::int32_t> lengths_host_;
  Tensor query_, keys_, exp_keys_, memory_, v_, lengths_, weights_, out_, dcontext_, dquery_,
      dkeys_, dmemory_, dv_, scratch_;
  kernels::Attention a_;
  kernels::AttentionGradient g_;
};

}  // namespace

void attention(Bench& bench) {
  // multi30k; wmt14-en-de-atr; wmt14-en-de-lrn; sentences of 500 tokens.
  std::vector<Size> sizes{{16, 16, 128, 256, 256, 1},
                          {25, 25, 80, 2000, 2000, 1},
                          {32, 32, 64, 1024, 1024, 8},
                          {500, 500, 4, 256, 256, 1}};
  if (bench.options().quick) sizes = {{5, 4, 3, 8, 12, 2}};
  for (const Size& s : sizes)
    for (const bool additive : {true, false})
      for (const bool backward : {false, true})
        bench.row("attention",
                  fmt::format("{} {} S {} T {} B {} A {} M {} heads {}",
                              additive ? "additive" : "dot", backward ? "backward" : "forward",
                              s.source, s.target, s.batch, s.space, s.width, s.heads),
                  [&](Case& c) {
                    AttentionCase attention(c, additive, s, backward);
                    attention.check();
                    const double scores = attention.count(),
                                 seconds = c.time([&] { attention.run(); });
                    c.extra("million scores/s", 1e-6 * scores / seconds);
                  });
}

}  // namespace nmt::app::bench
