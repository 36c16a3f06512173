// The steps between two synchronizations of a search as one graph.

#include "core/error.h"
#include "kernels/pointwise.h"
#include "search/beam/device_search.h"
#include "search/beam/ensemble_scorer.h"
#include "tensor/copy.h"
#include "tests/device/search_models.h"

#include <functional>
#include <limits>
#include <span>
#include <utility>

namespace nmt::test {
namespace {

using Sources = std::vector<Ids>;

// Models whose hypotheses end at their largest length only.
struct EndlessModels : Models {
  EndlessModels(const std::string& text, int count = 1, Precision precision = Precision::float32)
      : Models(DeviceKind::cuda, text, count, precision) {
    std::vector<float> bias(static_cast<std::size_t>(target_size));
    bias[static_cast<std::size_t>(eos)] = -1e4f;
    for (auto& model : models)
      upload(machine.context, std::span<const float>(bias),
             model->parameters().find("decoder.output_bias")->value);
    freeze();
  }
  std::int64_t launched_graphs() const {
    const GraphCounts counts = machine.device->graph_counts();
    return counts.replayed + counts.recorded + counts.updated;
  }
};

SearchOptions options_of_length(Models& models, int tokens) {
  SearchOptions options = options_for(models, 3);
  options.max_length_factor = 0;
  options.max_length_offset = tokens - 1;  // and </s>
  return options;
}

// What the result says, without rounding.
void expect_identical(const std::vector<SentenceResult>& a, const std::vector<SentenceResult>& b,
                      const std::string& what) {
  ASSERT_EQ(a.size(), b.size());
  for (std::size_t s = 0; s < a.size(); ++s) {
    ASSERT_EQ(a[s].hypotheses.size(), b[s].hypotheses.size()) << what << ", sentence " << s;
    for (std::size_t h = 0; h < a[s].hypotheses.size(); ++h) {
      EXPECT_EQ(a[s].hypotheses[h].ids, b[s].hypotheses[h].ids) << what << ", sentence " << s;
      EXPECT_EQ(a[s].hypotheses[h].log_probs, b[s].hypotheses[h].log_probs) << what;
      EXPECT_EQ(a[s].hypotheses[h].score, b[s].hypotheses[h].score) << what;
    }
  }
}

// The graphs of 16 tokens: those of a search without those of one that is 16 tokens shorter, after
// searches that have captured them.
std::int64_t graphs_of_16_tokens(EndlessModels& models, StepScorer& scorer) {
  const Sources sources = random_sentences(3, 3, source_size, 4);
  const auto count = [&](int tokens) {
    const std::int64_t before = models.launched_graphs();
    beam_search(scorer, sources, options_of_length(models, tokens));
    return models.launched_graphs() - before;
  };
  for (int i = 0; i < 3; ++i) count(40), count(24);
  const std::int64_t longer = count(40);
  return longer - count(24);
}

class SearchGraphs : public ModelOnDevice {};

TEST_P(SearchGraphs, EightTokensAreOneGraph) {
  EndlessModels models(GetParam());
  EXPECT_EQ(graphs_of_16_tokens(models, *models.scorers[0]), 2);
}

// Sentences of different lengths leave the batch, so the layout of the rows changes, and the
// lengths end within periods. Every search is compared: those that capture and those that replay.
// The address sanitizer watches memory; later searches use it as the first ones do.
#if defined(__SANITIZE_ADDRESS__)
constexpr bool all_searches[] = {true};
constexpr int repetitions = 2;
#else
constexpr bool all_searches[] = {true, false};  // n_best
constexpr int repetitions = 4;
#endif

TEST_P(SearchGraphs, GraphsChangeNoBitOfLongSearches) {
  Sources sources = random_sentences(3, 5, source_size, 4);
  sources[1].assign(14, 5);
  sources[3].assign(25, 7);
  EndlessModels endless(GetParam());
  Models ending(DeviceKind::cuda, GetParam());
  ending.freeze();
  for (Models* models : std::initializer_list<Models*>{&endless, &ending}) {
    SearchOptions options = options_for(*models, 3);
    options.max_length_offset = 7;
    for (const bool n_best : all_searches) {
      options.n_best = n_best;
      models->machine.device->set_graphs(false);
      const auto plain = beam_search(*models->scorers[0], sources, options);
      models->machine.device->set_graphs(true);
      for (int i = 0; i < repetitions; ++i)
        expect_identical(beam_search(*models->scorers[0], sources, options), plain,
                         "search " + std::to_string(i));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Models, SearchGraphs,
                         testing::Values("rnnsearch gru", "deep olrn norm aware deeper",
                                         "seq2seq lstm none", "gnmt ran first-layer",
                                         "deep gru groups", "rnnsearch elstm1", "deep elstm2",
                                         "block ssru self-attention dot"),
                         name_of_row);

class SearchPeriods : public NeedsCuda {};

TEST_F(SearchPeriods, AreOneGraphInBfloat16) {
  EndlessModels models("deep olrn norm aware eights deeper", 1, Precision::bfloat16);
  EXPECT_EQ(graphs_of_16_tokens(models, *models.scorers[0]), 2);
}

// Two models on one device, one of which reads its position.
TEST_F(SearchPeriods, OfAnEnsembleAreOneGraph) {
  EndlessModels models("rnnsearch gru", 2);
  EnsembleScorer ensemble(
      models.machine.context.cpu,
      {{models.scorers[0].get(), nullptr, 1}, {models.scorers[1].get(), nullptr, 2}},
      Combination::probabilities, 100);
  EXPECT_EQ(graphs_of_16_tokens(models, ensemble), 2);
  const Sources sources = random_sentences(6, 4, source_size, 9);
  const SearchOptions options = options_of_length(models, 45);
  models.machine.device->set_graphs(false);
  const auto plain = beam_search(ensemble, sources, options);
  models.machine.device->set_graphs(true);
  for (int i = 0; i < 4; ++i)
    expect_identical(beam_search(ensemble, sources, options), plain, std::to_string(i));
}

// The calls of cuDNN cannot be captured, so each step has a graph: its selection.
TEST_F(SearchPeriods, ThatCannotBeCapturedHaveGraphsOfSteps) {
  const std::string text = "seq2seq lstm none cudnn";
  std::string why;
  CudaDevice device;
  if (!kernels::Cudnn::open(device.handle(), why)) GTEST_SKIP() << "no cuDNN to test: " << why;
  EndlessModels models(text);
  EXPECT_EQ(graphs_of_16_tokens(models, *models.scorers[0]), 16);
}

// A scorer with something else in its steps: `before` a step, or changes of its scores.
class Disturbed : public StepScorer {
 public:
  explicit Disturbed(StepScorer& of) : of_(of) {}
  using StepScorer::begin;
  int vocabulary() const override { return of_.vocabulary(); }
  std::unique_ptr<Decoding> begin(std::span<const Ids> sources, bool want_attention) override {
    return std::make_unique<Steps>(*this, of_.begin(sources, want_attention));
  }
  std::function<void(int step)> before = [](int) {};
  std::function<void(int step, const NextTokens&)> after = [](int, const NextTokens&) {};
  int steps = 0;          // that were made; of which some did not run on the device
  std::int64_t rows = 0;  // of the last one

 private:
  struct Steps : Decoding {
    Steps(Disturbed& owner_, std::unique_ptr<Decoding> of_) : owner(owner_), of(std::move(of_)) {}
    DecodingStep advance(std::span<const std::int32_t> parents,
                         std::span<const std::int32_t> tokens) override {
      return of->advance(parents, tokens);
    }
    const Context* device() const override { return of->device(); }
    DecodingStep advance_on_device(const RowsOnDevice& rows) override {
      ++owner.steps;
      owner.rows = rows.parents.elements();
      owner.before(step++);
      return of->advance_on_device(rows);
    }
    NextTokens score(int first, int count) override { return changed(of->score(first, count)); }
    NextTokens score_logits(int first, int count) override {
      return changed(of->score_logits(first, count));
    }
    NextTokens changed(const NextTokens& scores) {
      owner.after(step - 1, scores);
      return scores;
    }
    bool mark(std::vector<std::int64_t>& key) override {
      marked = step;
      return of->mark(key);
    }
    void return_to_mark() override {
      step = marked;
      of->return_to_mark();
    }
    Disturbed& owner;
    std::unique_ptr<Decoding> of;
    int step = 0, marked = 0;
  };
  StepScorer& of_;
};

class DisturbedSearch : public NeedsCuda {
 protected:
  void SetUp() override {
    NeedsCuda::SetUp();
    if (IsSkipped()) return;
    models = std::make_unique<EndlessModels>(text());
    scorer = std::make_unique<Disturbed>(*models->scorers[0]);
    models->machine.device->set_graphs(false);
    expected = search();
    models->machine.device->set_graphs(true);
  }
  std::vector<SentenceResult> search() {
    return beam_search(*scorer, sources, options_of_length(*models, 48));
  }
  CudaDevice& device() { return *models->machine.device; }
  virtual const char* text() const { return "deep olrn norm aware"; }

  const Sources sources = random_sentences(3, 3, source_size, 6);
  std::unique_ptr<EndlessModels> models;
  std::unique_ptr<Disturbed> scorer;
  std::vector<SentenceResult> expected;
};

// When the host makes the calls of a period, it has not waited for the steps before it yet. Steps
// 0 to 7 are launched one by one, and the host has waited for those before step 16.
TEST_F(DisturbedSearch, APeriodIsPreparedBeforeTheHostWaits) {
  for (int i = 0; i < 3; ++i) {
    const std::int64_t before = device().waits();
    std::int64_t waited = -1;
    scorer->before = [&](int step) {
      if (step == 24) waited = device().waits() - before;
    };
    search();
    EXPECT_EQ(waited, 2) << i;
    EXPECT_EQ(device().waits() - before, 48 / 8) << i;
  }
}

// Memory moves in a step in the middle of a period, whether it runs, is captured or compared. The
// steps are then made once more, from where they began.
TEST_F(DisturbedSearch, GraphsChangeNoBitWhereMemoryMoves) {
  const std::unique_ptr<MemorySource> source = device().memory_source();
  for (const int disturbed : {11, 16, 23, 28, 37}) {
    scorer->before = [&](int step) {
      if (step == disturbed) source->release(source->allocate(64));
    };
    for (int i = 0; i < 2; ++i) {
      scorer->steps = 0;
      expect_identical(search(), expected, "step " + std::to_string(disturbed));
      EXPECT_GE(scorer->steps, i == 0 ? 48 : 49) << disturbed;
    }
  }
}

// The position is a kernel argument, so steps that are made once more must start from the same one.
class DisturbedPositions : public DisturbedSearch {
  const char* text() const override { return "rnnsearch elstm1"; }
};

TEST_F(DisturbedPositions, GraphsChangeNoBitWhereMemoryMoves) {
  const std::unique_ptr<MemorySource> source = device().memory_source();
  scorer->before = [&](int step) {
    if (step == 11) source->release(source->allocate(64));
  };
  for (int i = 0; i < 3; ++i) expect_identical(search(), expected, std::to_string(i));
}

// The first sentence ends after 9 steps. The host sees that before step 16, which moves the rows.
TEST_F(DisturbedSearch, RowsLeaveBetweenPeriods) {
  const Sources two{Ids(1, 4), Ids(40, 5)};
  SearchOptions options = options_for(*models, 3);
  options.max_length_offset = 7;
  std::vector<std::int64_t> rows;
  scorer->before = [&](int step) {
    rows.resize(static_cast<std::size_t>(step));
    rows.push_back(scorer->rows);
  };
  std::vector<std::int64_t> wanted{2};
  wanted.insert(wanted.end(), 16, 6);
  wanted.insert(wanted.end(), 31, 3);
  for (int i = 0; i < 3; ++i) {
    rows.clear();
    beam_search(*scorer, two, options);
    EXPECT_EQ(rows, wanted) << i;
  }
}

// A call more in some steps of some searches: found at the end of the comparison, or in its middle.
TEST_F(DisturbedSearch, GraphsChangeNoBitWhereCallsDiffer) {
  const Tensor scratch = models->machine.context.empty({4});
  for (const int disturbed : {-1, 15, 20, -1, 31, 39, 8, -1}) {
    scorer->before = [&](int step) {
      if (step == disturbed) clear<float>(models->machine.context, scratch);
    };
    for (int i = 0; i < 2; ++i)
      expect_identical(search(), expected, "step " + std::to_string(disturbed));
  }
  EXPECT_GT(device().graph_counts().misfits, 4);
  EXPECT_GT(device().graph_counts().replayed, 8);
}

// The error names the token, although the host sees it up to seven tokens later.
TEST_F(DisturbedSearch, ScoresThatAreNotFiniteEndTheSearch) {
  const auto message = [&](int bad) -> std::string {
    scorer->after = [&](int step, const NextTokens& scores) {
      if (step == bad)
        kernels::fill(device().handle(), const_cast<float*>(scores.logits), scores.vocabulary,
                      std::numeric_limits<float>::quiet_NaN());
    };
    try {
      search();
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  };
  for (const int bad : {12, 15, 29}) {
    device().set_graphs(false);
    const std::string plain = message(bad);
    EXPECT_NE(plain, "");
    device().set_graphs(true);
    for (int i = 0; i < 3; ++i) EXPECT_EQ(message(bad), plain) << bad;
  }
  scorer->after = [](int, const NextTokens&) {};
  expect_identical(search(), expected, "afterwards");
}

// Memory runs out in a period, whether it runs, is captured or compared; the next search is as
// before.
TEST_F(DisturbedSearch, MemoryThatRunsOutEndsTheSearch) {
  for (const int disturbed : {13, 22, 30}) {
    scorer->before = [&](int step) {
      if (step == disturbed) throw OutOfMemory("planted");
    };
    for (int i = 0; i < 2; ++i) EXPECT_THROW(search(), OutOfMemory) << disturbed;
    scorer->before = [](int) {};
    expect_identical(search(), expected, "after " + std::to_string(disturbed));
  }
  EXPECT_GT(device().graph_counts().replayed, 8);
}

}  // namespace
}  // namespace nmt::test
