#include "serve/batcher.h"

#include "serve/marked_spans.h"

#include <atomic>
#include <future>
#include <map>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

namespace nmt::serve {
namespace {

using namespace std::chrono_literals;

/// Marks each sentence with its model: model 3 makes "a" to "a3". It can be held, and fails on the
/// sentence "bad".
class FakeEngine : public Engine {
 public:
  std::vector<Hypotheses> translate(int model, Want want, std::span<const std::string> sentences,
                                    std::span<const std::span<const std::string>> before) override {
    std::unique_lock lock(mutex);
    ++calls;
    sizes.push_back(sentences.size());
    for (std::size_t i = 0; i < sentences.size(); ++i)
      contexts[sentences[i]].assign(before[i].begin(), before[i].end());
    changed.notify_all();
    changed.wait(lock, [&] { return !held; });
    std::vector<Hypotheses> results;
    for (const std::string& sentence : sentences) {
      if (sentence == "bad") throw std::runtime_error("bad sentence");
      order.push_back(sentence);
      Hypotheses& hypotheses = results.emplace_back();
      hypotheses.push_back(sentence + std::to_string(model));
      if (want != Want::best) hypotheses.push_back(sentence + "'");
    }
    return results;
  }
  bool is_ready(int model) override { return model != loading; }
  void listen(std::function<void()> given) override { listener = std::move(given); }
  void hold() {
    const std::lock_guard lock(mutex);
    held = true;
  }
  void release() {
    const std::lock_guard lock(mutex);
    held = false;
    changed.notify_all();
  }
  void wait_for_calls(int count) {
    std::unique_lock lock(mutex);
    changed.wait(lock, [&] { return calls >= count; });
  }

  std::mutex mutex;
  std::condition_variable changed;
  std::atomic<int> loading{-1};  // a model
  std::function<void()> listener;
  bool held = false;
  int calls = 0;
  std::vector<std::size_t> sizes;
  std::vector<std::string> order;
  std::map<std::string, std::vector<std::string>> contexts;  // by sentence
};

struct Answer {
  JobStatus status;
  std::vector<Hypotheses> results;
  std::string message;
};

struct Sent {
  bool taken;
  std::future<Answer> answer;
};

Sent send(Batcher& batcher, std::vector<std::string> sentences, std::vector<int> route = {1},
          Clock::duration time = 1h, Want want = Want::best,
          std::shared_ptr<const std::atomic<bool>> canceled = nullptr) {
  auto promise = std::make_shared<std::promise<Answer>>();
  BatchJob job;
  job.route = std::move(route);
  job.want = want;
  job.sentences = std::move(sentences);
  job.deadline = Clock::now() + time;
  job.canceled = std::move(canceled);
  job.finish = [promise](JobStatus status, std::vector<Hypotheses> results, std::string message) {
    promise->set_value({status, std::move(results), std::move(message)});
  };
  std::future<Answer> answer = promise->get_future();
  return {batcher.submit(std::move(job)), std::move(answer)};
}

constexpr BatcherOptions options{4, 10, 20ms, 1};

TEST(Batcher, AnswersInTheOrderOfTheSentences) {
  FakeEngine engine;
  Batcher batcher(engine, options);
  Answer answer = send(batcher, {"a", "b", "c", "d", "e", "f"}).answer.get();
  EXPECT_EQ(answer.status, JobStatus::done);
  EXPECT_EQ(answer.results,
            (std::vector<Hypotheses>{{"a1"}, {"b1"}, {"c1"}, {"d1"}, {"e1"}, {"f1"}}));
  answer = send(batcher, {"x"}, {1}, 1h, Want::list).answer.get();
  EXPECT_EQ(answer.results, (std::vector<Hypotheses>{{"x1", "x'"}}));
  EXPECT_EQ(batcher.statistics().sentences, 7u);
  EXPECT_EQ(batcher.statistics().waiting, 0u);
}

// Also where the sentences are in several batches; a later model reads the translations.
TEST(Batcher, SentencesHaveThoseBeforeInTheirDocument) {
  FakeEngine engine;
  Batcher batcher(engine, {2, 10, 20ms, 1});
  BatchJob job;
  job.route = {1, 2};
  job.sentences = {"a", "b", "c", "d", "e"};
  job.documents = {0, 0, 0, 3, 3};
  job.deadline = Clock::now() + 1h;
  std::promise<void> done;
  job.finish = [&](JobStatus, std::vector<Hypotheses>, const std::string&) { done.set_value(); };
  ASSERT_TRUE(batcher.submit(std::move(job)));
  done.get_future().wait();
  using Texts = std::vector<std::string>;
  EXPECT_EQ(engine.contexts, (std::map<std::string, Texts>{{"a", {}},
                                                           {"b", {"a"}},
                                                           {"c", {"a", "b"}},
                                                           {"d", {}},
                                                           {"e", {"d"}},
                                                           {"a1", {}},
                                                           {"b1", {"a1"}},
                                                           {"c1", {"a1", "b1"}},
                                                           {"d1", {}},
                                                           {"e1", {"d1"}}}));
  send(batcher, {"x", "y"}).answer.get();
  EXPECT_EQ(engine.contexts.at("y"), Texts{"x"});
}

TEST(Batcher, RouteGoesThroughSeveralModels) {
  FakeEngine engine;
  Batcher batcher(engine, options);
  const Answer answer = send(batcher, {"a", "b"}, {1, 2}, 1h, Want::list).answer.get();
  EXPECT_EQ(answer.results, (std::vector<Hypotheses>{{"a12", "a1'"}, {"b12", "b1'"}}));
}

// Each model drops the markers, so the second one needs them again.
TEST(Batcher, MarkedSpansReachTheSecondModel) {
  class MarkedEngine : public FakeEngine {
   public:
    bool keeps_marked() const override { return true; }
    std::vector<Hypotheses> translate(
        int model, Want want, std::span<const std::string> sentences,
        std::span<const std::span<const std::string>> before) override {
      std::vector<Hypotheses> results = FakeEngine::translate(model, want, sentences, before);
      for (Hypotheses& each : results)
        each.front().text = without_markers(each.front().text, marked_spans(each.front().text));
      return results;
    }
  };
  MarkedEngine engine;
  Batcher batcher(engine, options);
  const std::vector<std::string> sentences{"see <keep>Zx</keep>, Zx", "a"};
  const Answer answer = send(batcher, sentences, {1, 2}).answer.get();
  EXPECT_EQ(answer.results, (std::vector<Hypotheses>{{"see Zx, Zx12"}, {"a12"}}));
  EXPECT_EQ(engine.order, (std::vector<std::string>{"see <keep>Zx</keep>, Zx", "a",
                                                    "see <keep>Zx</keep>, Zx1", "a1"}));
}

TEST(Batcher, SentencesOfSeveralJobsShareABatch) {
  FakeEngine engine;
  Batcher batcher(engine, options);
  engine.hold();
  Sent first = send(batcher, {"a"});
  engine.wait_for_calls(1);
  std::vector<Sent> rest;
  for (const char* text : {"b", "c", "d"}) rest.push_back(send(batcher, {text}));
  engine.release();
  for (Sent& sent : rest) EXPECT_EQ(sent.answer.get().status, JobStatus::done);
  EXPECT_EQ(engine.sizes, (std::vector<std::size_t>{1, 3}));
}

TEST(Batcher, LongJobDoesNotBlockShortOnes) {
  FakeEngine engine;
  Batcher batcher(engine, options);
  engine.hold();
  Sent first = send(batcher, {"a"});
  engine.wait_for_calls(1);
  Sent longer = send(batcher, {"l1", "l2", "l3", "l4", "l5", "l6"});
  Sent shorter = send(batcher, {"s"});
  engine.release();
  longer.answer.get();
  EXPECT_EQ(shorter.answer.get().results.front().front(), "s1");
  EXPECT_EQ(engine.order, (std::vector<std::string>{"a", "l1", "l2", "s", "l3", "l4", "l5", "l6"}));
}

TEST(Batcher, ModelsTakeTurns) {
  FakeEngine engine;
  Batcher batcher(engine, options);
  engine.hold();
  Sent first = send(batcher, {"a"}, {1});
  engine.wait_for_calls(1);
  Sent longer = send(batcher, {"l1", "l2", "l3", "l4", "l5"}, {1});
  Sent other = send(batcher, {"o"}, {2});
  engine.release();
  longer.answer.get();
  EXPECT_EQ(other.answer.get().results.front().front(), "o2");
  EXPECT_EQ(engine.order, (std::vector<std::string>{"a", "o", "l1", "l2", "l3", "l4", "l5"}));
}

TEST(Batcher, QueueIsBounded) {
  FakeEngine engine;
  Batcher batcher(engine, options);
  engine.hold();
  Sent first = send(batcher, {"a"});
  EXPECT_TRUE(first.taken);
  EXPECT_TRUE(send(batcher, std::vector<std::string>(9, "b")).taken);
  EXPECT_FALSE(send(batcher, {"c"}).taken);
  EXPECT_GE(batcher.retry_after(), 1);
  engine.release();
  first.answer.get();
}

TEST(Batcher, JobsExpireAndAreCanceled) {
  FakeEngine engine;
  Batcher batcher(engine, options);
  engine.hold();
  Sent first = send(batcher, {"a"});
  engine.wait_for_calls(1);
  auto flag = std::make_shared<std::atomic<bool>>(false);
  Sent late = send(batcher, {"b"}, {1}, 1ms);
  Sent gone = send(batcher, {"c"}, {1}, 1h, Want::best, flag);
  *flag = true;
  EXPECT_EQ(late.answer.get().status, JobStatus::expired);  // while the engine is busy
  engine.release();
  EXPECT_EQ(gone.answer.get().status, JobStatus::canceled);
  EXPECT_EQ(first.answer.get().status, JobStatus::done);
  EXPECT_EQ(engine.order, std::vector<std::string>{"a"});
  EXPECT_EQ(batcher.statistics().waiting, 0u);
}

TEST(Batcher, OnlyTheJobWithABadSentenceFails) {
  FakeEngine engine;
  Batcher batcher(engine, options);
  engine.hold();
  Sent first = send(batcher, {"a"});
  engine.wait_for_calls(1);
  Sent good = send(batcher, {"b"});
  Sent bad = send(batcher, {"bad"});
  engine.release();
  EXPECT_EQ(good.answer.get().status, JobStatus::done);
  const Answer answer = bad.answer.get();
  EXPECT_EQ(answer.status, JobStatus::failed);
  EXPECT_EQ(answer.message, "bad sentence");
}

TEST(Batcher, StopFinishesWhatWasTaken) {
  FakeEngine engine;
  Batcher batcher(engine, options);
  std::vector<Sent> sent;
  for (int i = 0; i < 10; ++i) sent.push_back(send(batcher, {"a"}));
  batcher.stop();
  for (Sent& each : sent) EXPECT_EQ(each.answer.get().status, JobStatus::done);
  EXPECT_FALSE(send(batcher, {"b"}).taken);
}

TEST(Batcher, AbandonedJobsAreCanceled) {
  FakeEngine engine;
  Batcher batcher(engine, options);
  engine.hold();
  Sent first = send(batcher, {"a"});
  engine.wait_for_calls(1);
  std::vector<Sent> rest;
  for (int i = 0; i < 5; ++i) rest.push_back(send(batcher, {"b"}));
  batcher.abandon();
  engine.release();
  batcher.stop();
  for (Sent& each : rest) EXPECT_EQ(each.answer.get().status, JobStatus::canceled);
  EXPECT_EQ(engine.order, std::vector<std::string>{"a"});
}

TEST(Batcher, ManyThreadsSubmit) {
  FakeEngine engine;
  Batcher batcher(engine, {64, 100000, 1ms, 3});
  std::atomic<int> good{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t)
    threads.emplace_back([&, t] {
      for (int i = 0; i < 50; ++i) {
        const std::string text = std::to_string(1000 * t + i);
        const Answer answer = send(batcher, {text, text + "x"}, {t % 2}).answer.get();
        good += answer.results.at(1).front() == text + "x" + std::to_string(t % 2);
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(good, 400);
  EXPECT_EQ(batcher.statistics().done, 400u);
}

TEST(Batcher, ThreadsTranslateAtATimeAndShareWhatWaits) {
  FakeEngine engine;
  Batcher batcher(engine, {64, 1000, 20ms, 2});
  engine.hold();
  Sent sent = send(batcher, std::vector<std::string>(40, "a"));
  engine.wait_for_calls(2);  // both are held
  {
    const std::lock_guard lock(engine.mutex);
    EXPECT_EQ(engine.sizes, (std::vector<std::size_t>{20, 20}));
  }
  engine.release();
  EXPECT_EQ(sent.answer.get().results, std::vector<Hypotheses>(40, {"a1"}));
}

// 4 ms per sentence and a latency target of 160 ms: at most 20 sentences are quick, fewer where
// sleeping takes longer.
TEST(Batcher, BatchesAreQuickUnlessManySentencesWait) {
  class SlowEngine : public FakeEngine {
   public:
    std::vector<Hypotheses> translate(
        int model, Want want, std::span<const std::string> sentences,
        std::span<const std::span<const std::string>> before) override {
      std::this_thread::sleep_for(4ms * sentences.size());
      return FakeEngine::translate(model, want, sentences, before);
    }
  };
  SlowEngine engine;
  Batcher batcher(engine, {64, 1000, 160ms, 1});
  const auto sizes = [&](std::size_t count) {
    engine.sizes.clear();
    send(batcher, std::vector<std::string>(count, "a")).answer.get();
    return engine.sizes;
  };
  sizes(20);  // measures the time
  const std::vector<std::size_t> few = sizes(24), many = sizes(60);
  EXPECT_LE(few.front(), 20u);
  EXPECT_EQ(many.front(), 60u);
}

TEST(Batcher, AModelThatIsLoadedDoesNotBlockOthers) {
  FakeEngine engine;
  engine.loading = 2;
  Batcher batcher(engine, options);
  Sent slow = send(batcher, {"s"}, {2});
  Sent other = send(batcher, {"o"}, {1});
  EXPECT_EQ(other.answer.get().results.front().front(), "o1");
  EXPECT_EQ(slow.answer.wait_for(0s), std::future_status::timeout);
  Sent late = send(batcher, {"l"}, {2}, 5ms);
  EXPECT_EQ(late.answer.get().status, JobStatus::expired);
  engine.loading = -1;
  engine.listener();
  EXPECT_EQ(slow.answer.get().results.front().front(), "s2");
}

TEST(Batcher, AFailedBatchEndsAJobWhoseOtherBatchIsInWork) {
  FakeEngine engine;
  Batcher batcher(engine, {8, 1000, 20ms, 2});
  engine.hold();
  std::vector<std::string> sentences(16, "a");
  sentences[3] = "bad";
  Sent sent = send(batcher, sentences);
  engine.wait_for_calls(2);
  engine.release();
  EXPECT_EQ(sent.answer.get().status, JobStatus::failed);
  EXPECT_EQ(send(batcher, {"b"}).answer.get().status, JobStatus::done);
  EXPECT_EQ(batcher.statistics().waiting, 0u);
}

}  // namespace
}  // namespace nmt::serve
