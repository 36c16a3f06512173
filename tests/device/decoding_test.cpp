// Search, scoring, ensembles and probes on the CUDA device against the CPU.

#include "model/decoding/model_scorer.h"
#include "model/model.h"
#include "search/beam/beam_search.h"
#include "search/beam/ensemble_scorer.h"
#include "search/beam/force_decode.h"
#include "search/beam/top_k.h"
#include "tensor/repeat.h"
#include "tests/device/search_models.h"

#include <algorithm>
#include <cmath>
#include <span>
#include <string_view>

namespace nmt::test {
namespace {

void expect_same(const std::vector<SentenceResult>& cpu, const std::vector<SentenceResult>& cuda) {
  ASSERT_EQ(cpu.size(), cuda.size());
  for (std::size_t i = 0; i < cpu.size(); ++i) {
    ASSERT_EQ(cpu[i].hypotheses.size(), cuda[i].hypotheses.size()) << i;
    for (std::size_t h = 0; h < cpu[i].hypotheses.size(); ++h) {
      const Hypothesis &a = cpu[i].hypotheses[h], &b = cuda[i].hypotheses[h];
      EXPECT_EQ(a.ids, b.ids) << "sentence " << i << " hypothesis " << h;
      EXPECT_NEAR(a.score, b.score, 1e-4 * (1 + std::abs(a.score)));
      ASSERT_EQ(a.attention.size(), b.attention.size());
      for (std::size_t j = 0; j < a.attention.size(); ++j)
        EXPECT_NEAR(a.attention[j], b.attention[j], 1e-5);
    }
  }
}

class PositionsOnDevice : public NeedsCuda {};
class DecodingOnDevice : public ModelOnDevice {};

TEST_P(DecodingOnDevice, SearchAndForcedScoresAgreeWithTheCpu) {
  Models cpu(DeviceKind::cpu, GetParam()), cuda(DeviceKind::cuda, GetParam());
  const auto sources = random_sentences(3, 4, source_size, 4),
             targets = random_sentences(4, 4, target_size, 4);
  const bool attends = small_model(GetParam()).attention != AttentionType::none;
  for (Models* m : {&cpu, &cuda}) m->freeze();
  for (const int beam : {1, 3}) {
    SearchOptions on_cpu = options_for(cpu, beam), on_cuda = options_for(cuda, beam);
    on_cpu.want_attention = on_cuda.want_attention = attends && beam > 1;
    expect_same(beam_search(*cpu.scorers[0], sources, on_cpu),
                beam_search(*cuda.scorers[0], sources, on_cuda));
  }
  const auto a = force_decode(*cpu.scorers[0], sources, targets, false, bos, eos),
             b = force_decode(*cuda.scorers[0], sources, targets, false, bos, eos);
  for (std::size_t i = 0; i < a.size(); ++i)
    EXPECT_NEAR(a[i].log_prob, b[i].log_prob, 1e-4 * std::abs(a[i].log_prob));
}

// Longer than the interval at which the host looks, with sentences of different lengths.
TEST_P(DecodingOnDevice, ChoosesOnTheDeviceAsTheHostDoes) {
  Models cpu(DeviceKind::cpu, GetParam()), cuda(DeviceKind::cuda, GetParam());
  for (Models* m : {&cpu, &cuda}) m->freeze();
  const auto sources = random_sentences(6, 5, source_size, 6);
  const bool attends = small_model(GetParam()).attention != AttentionType::none;
  for (const bool n_best : {false, true}) {
    SearchOptions on_cpu = options_for(cpu, 3), on_cuda = options_for(cuda, 3);
    for (SearchOptions* options : {&on_cpu, &on_cuda}) {
      options->max_length_factor = 3;
      options->n_best = n_best;
    }
    const auto chosen = beam_search(*cuda.scorers[0], sources, on_cuda);
    expect_same(beam_search(*cpu.scorers[0], sources, on_cpu), chosen);
    if (!attends || n_best) continue;
    on_cuda.want_attention = true;  // the host then selects the hypotheses
    auto on_host = beam_search(*cuda.scorers[0], sources, on_cuda);
    for (SentenceResult& result : on_host)
      for (Hypothesis& hypothesis : result.hypotheses) hypothesis.attention.clear();
    expect_same(on_host, chosen);
  }
}

TEST_P(DecodingOnDevice, ASearchWaitsOnceInEightTokens) {
  Models cuda(DeviceKind::cuda, GetParam());
  cuda.freeze();
  const CudaDevice& device = *cuda.machine.device;
  const auto sources = random_sentences(3, 3, source_size, 4);
  SearchOptions options = options_for(cuda, 2);
  options.max_length_factor = 5;
  options.max_length_offset = 4;
  std::int64_t before = device.waits();
  const auto results = beam_search(*cuda.scorers[0], sources, options);
  std::int64_t tokens = 0;  // of the longest output, with </s>
  for (const SentenceResult& result : results)
    for (const Hypothesis& hypothesis : result.hypotheses)
      tokens = std::max(tokens, std::ssize(hypothesis.ids) + 1);
  EXPECT_LE(device.waits() - before, tokens / 8 + 2);
  const auto decoding = cuda.scorers[0]->begin(sources, false);
  before = device.waits();
  const std::vector<std::int32_t> parents{0, 1, 2}, begins{bos, bos, bos};
  decoding->advance(parents, begins);
  EXPECT_EQ(device.waits(), before);
}

TEST_P(DecodingOnDevice, ASteadySearchTakesNoMemory) {
  Models cuda(DeviceKind::cuda, GetParam());
  cuda.freeze();
  const auto sources = random_sentences(3, 3, source_size, 4);
  const SearchOptions options = options_for(cuda, 3);
  beam_search(*cuda.scorers[0], sources, options);
  const std::int64_t before = cuda.machine.arena->statistics().system_allocations;
  for (int i = 0; i < 2; ++i) beam_search(*cuda.scorers[0], sources, options);
  EXPECT_EQ(cuda.machine.arena->statistics().system_allocations, before);
}

// Steps with the same number of rows are the same work on the same memory, except the first of
// them.
TEST_P(DecodingOnDevice, StepsAreReplayed) {
  Models cuda(DeviceKind::cuda, GetParam());
  cuda.freeze();
  const auto sources = random_sentences(3, 3, source_size, 4);
  SearchOptions options = options_for(cuda, 2);
  options.max_length_factor = 6;
  options.max_length_offset = 8;
  CudaDevice& device = *cuda.machine.device;
  const auto replayed = beam_search(*cuda.scorers[0], sources, options);
  const GraphCounts first = device.graph_counts();
  const auto again = beam_search(*cuda.scorers[0], sources, options);
  const GraphCounts second = device.graph_counts();
  device.set_graphs(false);
  const auto plain = beam_search(*cuda.scorers[0], sources, options);
  expect_same(plain, replayed);
  expect_same(plain, again);
  if (std::string_view(GetParam())
          .ends_with("cudnn")) {  // its calls are not captured: only the selection is a graph
    EXPECT_GT(first.replayed, 8);
    return;
  }
  EXPECT_EQ(first.misfits, 0);
  EXPECT_GE(first.replayed, 8);
  EXPECT_GT(second.replayed, first.replayed + 8);
  EXPECT_LT(first.changed, 8 * first.replayed);  // of eight steps
}

// A unit that reads its position gets a different one in every replayed step.
TEST_F(PositionsOnDevice, ReachReplayedSteps) {
  Models cpu(DeviceKind::cpu, "rnnsearch elstm1"), cuda(DeviceKind::cuda, "rnnsearch elstm1");
  std::vector<SentenceResult> results[2];
  for (Models* m : {&cpu, &cuda}) {
    m->freeze();
    SearchOptions options = options_for(*m, 2);
    options.max_length_offset = 12;
    results[m == &cuda] =
        beam_search(*m->scorers[0], random_sentences(3, 2, source_size, 4), options);
  }
  expect_same(results[0], results[1]);
  EXPECT_GT(cuda.machine.device->graph_counts().replayed, 8);
}

// Features that read attention download it at every token.
TEST_P(DecodingOnDevice, AStepWithAttentionWaitsTwice) {
  if (small_model(GetParam()).attention == AttentionType::none) return;
  Models cuda(DeviceKind::cuda, GetParam());
  cuda.freeze();
  const CudaDevice& device = *cuda.machine.device;
  const auto sources = random_sentences(3, 3, source_size, 4);
  SearchOptions options = options_for(cuda, 2);
  options.want_attention = true;
  const std::int64_t before = device.waits();
  beam_search(*cuda.scorers[0], sources, options);
  std::int64_t steps = 0;  // at most the longest output's, with </s>
  for (const auto& source : sources) steps = std::max<std::int64_t>(steps, std::ssize(source) + 3);
  EXPECT_LE(device.waits() - before, 2 * steps);
}

TEST_P(DecodingOnDevice, AnEnsembleAgreesWithTheCpu) {
  Models cpu(DeviceKind::cpu, GetParam(), 2), cuda(DeviceKind::cuda, GetParam(), 2);
  const auto sources = random_sentences(5, 3, source_size, 4);
  for (const Combination combination :
       {Combination::log_probabilities, Combination::probabilities}) {
    std::vector<SentenceResult> results[2];
    for (Models* m : {&cpu, &cuda}) {
      if (m->scorers.empty()) m->freeze();
      EnsembleScorer ensemble(
          m->machine.context.cpu,
          {{m->scorers[0].get(), nullptr, 1}, {m->scorers[1].get(), nullptr, 2}}, combination, 10);
      results[m == &cuda] = beam_search(ensemble, sources, options_for(*m, 2));
    }
    expect_same(results[0], results[1]);
  }
}

TEST_P(DecodingOnDevice, ProbesAgreeWithTheCpu) {
  Models cpu(DeviceKind::cpu, GetParam()), cuda(DeviceKind::cuda, GetParam());
  const Batch batch = learnable_batch(2, 1, 5);
  if (wants_cudnn(GetParam())) {
    EXPECT_THROW(cuda.models[0]->probe(batch), Error);  // cuDNN does not expose gates
    return;
  }
  const Probe a = cpu.models[0]->probe(batch), b = cuda.models[0]->probe(batch);
  const auto same = [](const Tensor& x, const Tensor& y) {
    ASSERT_EQ(static_cast<bool>(x), static_cast<bool>(y));
    if (!x) return;
    ASSERT_EQ(x.shape(), y.shape());
    for (std::int64_t i = 0; i < x.elements(); ++i) ASSERT_NEAR(x.f32()[i], y.f32()[i], 1e-5);
  };
  same(a.attention, b.attention);
  ASSERT_EQ(a.units.size(), b.units.size());
  for (std::size_t i = 0; i < a.units.size(); ++i) {
    same(a.units[i].input, b.units[i].input);
    same(a.units[i].forget, b.units[i].forget);
  }
}

TEST_P(DecodingOnDevice, GraphsChangeNoBit) {
  Models plain(DeviceKind::cuda, GetParam()), graphs(DeviceKind::cuda, GetParam());
  plain.machine.device->set_graphs(false);
  const auto sources = random_sentences(3, 3, source_size, 6);
  for (Models* m : {&plain, &graphs}) m->freeze();
  for (int i = 0; i < 3; ++i) {
    const auto a = beam_search(*plain.scorers[0], sources, options_for(plain, 2)),
               b = beam_search(*graphs.scorers[0], sources, options_for(graphs, 2));
    ASSERT_EQ(a.size(), b.size());
    for (std::size_t s = 0; s < a.size(); ++s) {
      ASSERT_EQ(a[s].hypotheses.size(), b[s].hypotheses.size());
      for (std::size_t h = 0; h < a[s].hypotheses.size(); ++h) {
        EXPECT_EQ(a[s].hypotheses[h].ids, b[s].hypotheses[h].ids);
        EXPECT_EQ(a[s].hypotheses[h].log_probs, b[s].hypotheses[h].log_probs);
      }
    }
  }
  const GraphCounts counts = graphs.machine.device->graph_counts();
  EXPECT_GT(counts.replayed, counts.recorded);
  EXPECT_EQ(plain.machine.device->graph_counts().recorded, 0);
}

INSTANTIATE_TEST_SUITE_P(Models, DecodingOnDevice,
                         testing::Values("rnnsearch gru", "deep olrn norm tied", "deep gru groups",
                                         "deep lrn aware dot", "seq2seq lstm none",
                                         "gnmt ran first-layer", "gnmt lstm persistent",
                                         "seq2seq lstm none cudnn", "block ssru self-attention dot",
                                         "deep olrn norm aware deeper",
                                         "deep gru norm aware deeper",
                                         "deep gru after first-layer bias cudnn"),
                         name_of_row);

// Kernels write copies for products, and products share them.
class DecodingInBfloat16 : public ModelOnDevice {};

TEST_P(DecodingInBfloat16, ScoresStayNearFloat32AndGraphsChangeNoBit) {
  Models exact(DeviceKind::cuda, GetParam()),
      rounded(DeviceKind::cuda, GetParam(), 1, Precision::bfloat16);
  for (Models* m : {&exact, &rounded}) m->freeze();
  const auto sources = random_sentences(3, 4, source_size, 6),
             targets = random_sentences(4, 4, target_size, 6);
  const auto a = force_decode(*exact.scorers[0], sources, targets, false, bos, eos),
             b = force_decode(*rounded.scorers[0], sources, targets, false, bos, eos);
  for (std::size_t i = 0; i < a.size(); ++i) {
    EXPECT_NEAR(b[i].log_prob, a[i].log_prob, 0x1p-6 * std::abs(a[i].log_prob)) << i;
    EXPECT_NE(b[i].log_prob, a[i].log_prob) << i;
  }
  SearchOptions options = options_for(rounded, 3);
  options.max_length_factor = 3;
  const auto first = beam_search(*rounded.scorers[0], sources, options);
  beam_search(*rounded.scorers[0], sources, options);
  const std::int64_t memory = rounded.machine.arena->statistics().system_allocations;
  const auto replayed = beam_search(*rounded.scorers[0], sources, options);
  EXPECT_EQ(rounded.machine.arena->statistics().system_allocations, memory);
  EXPECT_GT(rounded.machine.device->graph_counts().replayed, 8);
  rounded.machine.device->set_graphs(false);
  const auto plain = beam_search(*rounded.scorers[0], sources, options);
  for (std::size_t s = 0; s < plain.size(); ++s)
    for (std::size_t h = 0; h < plain[s].hypotheses.size(); ++h)
      for (const auto* other : {&first, &replayed}) {
        ASSERT_EQ((*other)[s].hypotheses[h].ids, plain[s].hypotheses[h].ids);
        EXPECT_EQ((*other)[s].hypotheses[h].log_probs, plain[s].hypotheses[h].log_probs);
      }
}

INSTANTIATE_TEST_SUITE_P(Models, DecodingInBfloat16,
                         testing::Values("deep olrn norm aware eights",
                                         "deep olrn norm aware eights deeper",
                                         "deep olrn norm tied eights", "deep olrn norm aware",
                                         "deep gru aware eights", "rnnsearch gru after eights",
                                         "rnnsearch lstm heads dot eights",
                                         "deep sru first-layer eights", "deep gru groups"),
                         name_of_row);

// The directions of an encoder are branches of a graph, which the emulator runs in any order: what
// both read is rounded before.
class EncodingInBfloat16 : public ModelOnDevice {};

TEST_P(EncodingInBfloat16, BranchesReadACopyFromBefore) {
  Models m(DeviceKind::cuda, GetParam(), 1, Precision::bfloat16);
  m.freeze();
  const auto sources = random_sentences(5, 3, source_size, 6);
  std::unique_ptr<Decoding> decoding;
  const auto begin = [&] { decoding = m.scorers[0]->begin(sources, false); };
  const std::vector<std::int32_t> parents{0, 1, 2}, first(3, bos), tokens{4, 5, 6};
  const auto scores = [&] {
    const DecodingStep step = decoding->advance(parents, first);
    return TokenScores(*decoding, step, target_size, tokens).read();
  };
  begin();
  const std::vector<float> plain = scores();
  for (int i = 0; i < 3; ++i) {
    repeat(m.machine.context, {1}, begin);
    EXPECT_EQ(scores(), plain) << i;
  }
}

INSTANTIATE_TEST_SUITE_P(Models, EncodingInBfloat16,
                         testing::Values("rnnsearch gru", "deep olrn norm eights"), name_of_row);

}  // namespace
}  // namespace nmt::test
