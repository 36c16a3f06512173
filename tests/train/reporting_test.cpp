#include "core/nlohmann.h"
#include "train/heartbeat.h"
#include "train/reporter.h"
#include "train/signals.h"
#include "train/stop_request.h"

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <thread>

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>

namespace nmt::train {
namespace {

TEST(Reporter, WritesNumbersForPeople) {
  EXPECT_EQ(grouped(0), "0");
  EXPECT_EQ(grouped(100), "100");
  EXPECT_EQ(grouped(1234567), "1,234,567");
  EXPECT_EQ(grouped(-123456), "-123,456");
  EXPECT_EQ(duration_text(59.4), "59 s");
  EXPECT_EQ(duration_text(751), "12:31");
  EXPECT_EQ(duration_text(3723), "1:02:03");
}

TEST(Reporter, SaysTheSameToPeopleAndPrograms) {
  const std::string path = testing::TempDir() + "nmt_reporter_test.jsonl";
  std::filesystem::remove(path);
  testing::internal::CaptureStderr();
  {
    Reporter reporter(path);
    Figures f;
    f.progress = {1200, 2.25, 345678};
    f.seconds_left = 3723;
    f.loss = 2.5;
    f.perplexity = 7.389;
    f.rate = 0.001;
    f.norm = 1.25;
    f.source_speed = 4321;
    f.target_speed = 5432;
    reporter.display(f);
    reporter.validation(f.progress, {{"bleu", 31.25, true}, {"perplexity", 7.5, false}}, true, 0,
                        10, 3.5);
    f.source_speed = 0;
    reporter.display(f);
    reporter.event("skipped", f.progress, "because", true);
  }
  EXPECT_EQ(testing::internal::GetCapturedStderr(),
            "epoch 3 (25 %) | update 1,200 | 1:02:03 left | 4321 src + 5432 trg tokens/s | loss "
            "2.5000 | ppl 7.39 | lr 0.001 | norm 1.250\n"
            "validation at update 1,200 | bleu 31.25 | perplexity 7.5000 | best so far | 4 s\n"
            "epoch 3 (25 %) | update 1,200 | 1:02:03 left | 5432 tokens/s | loss 2.5000 | ppl 7.39 "
            "| lr 0.001 | norm 1.250\n"
            "warning: because\n");
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  auto json = nlohmann::json::parse(line);
  EXPECT_EQ(json["event"], "display");
  EXPECT_EQ(json["updates"], 1200);
  EXPECT_EQ(json["gradient_norm"], 1.25);
  EXPECT_EQ(json["seconds_left"], 3723);
  std::getline(file, line);
  json = nlohmann::json::parse(line);
  EXPECT_EQ(json["bleu"], 31.25);
  EXPECT_EQ(json["best"], true);
  std::getline(file, line);
  std::getline(file, line);
  EXPECT_EQ(nlohmann::json::parse(line)["text"], "because");
  std::filesystem::remove(path);
}

TEST(Reporter, SaysWhatAValidationIs) {
  testing::internal::CaptureStderr();
  Reporter reporter("");
  const auto validate = [&reporter](bool best, std::int64_t stalled, std::int64_t patience) {
    reporter.validation({}, {{"bleu", 1, true}}, best, stalled, patience, 1);
  };
  validate(true, 0, 10);
  validate(false, 2, 10);
  validate(false, 2, 0);
  validate(false, 0, 10);
  std::istringstream told(testing::internal::GetCapturedStderr());
  std::string line;
  for (const char* const verdict :
       {"| best so far |", "| no progress 2 of 10 |", "| no progress 2 |", "| not the best |"}) {
    std::getline(told, line);
    EXPECT_NE(line.find(verdict), std::string::npos) << line;
  }
}

// A killed process leaves figures after its last checkpoint, and perhaps half a line.
TEST(Reporter, TakesBackWhatWillBeComputedAgain) {
  const std::string path = testing::TempDir() + "nmt_reporter_rewind_test.jsonl";
  std::filesystem::remove(path);
  testing::internal::CaptureStderr();
  Figures f;
  std::int64_t checkpoint = 0;
  {
    Reporter reporter(path);
    f.progress.updates = 10;
    reporter.display(f);
    checkpoint = reporter.position();
    EXPECT_EQ(checkpoint, static_cast<std::int64_t>(std::filesystem::file_size(path)));
    reporter.saved(f.progress, "save-freq", 0.5);
    f.progress.updates = 20;
    reporter.display(f);
    reporter.validation(f.progress, {{"bleu", 1, true}}, true, 0, 10, 3.5);
    reporter.event("skipped", f.progress, "because", true);
    reporter.event("average", f.progress, "begins");
  }
  std::ofstream(path, std::ios::app) << R"({"event":"display","upda)";
  {
    Reporter reporter(path);
    reporter.rewind(-1);  // not known: only the half line goes
    EXPECT_EQ(reporter.position(), static_cast<std::int64_t>(std::filesystem::file_size(path)));
    reporter.rewind(checkpoint);
    reporter.display(f);
    reporter.rewind(1 << 30);  // beyond the end: another's file
  }
  testing::internal::GetCapturedStderr();
  std::ifstream file(path);
  std::vector<std::string> events;
  for (std::string line; std::getline(file, line);) {
    const auto json = nlohmann::json::parse(line);
    events.push_back(json["event"].get<std::string>() + std::to_string(json["updates"].get<int>()));
  }
  EXPECT_EQ(events, (std::vector<std::string>{"display10", "save10", "display20"}));
  std::filesystem::remove(path);
}

TEST(Reporter, AFileThatCannotBeWrittenHasNoPosition) {
  testing::internal::CaptureStderr();
  Reporter none(""), missing(testing::TempDir() + "no such folder/train.jsonl");
  EXPECT_EQ(none.position(), -1);
  EXPECT_EQ(missing.position(), -1);
  const std::string path = testing::TempDir() + "nmt_reporter_full_test.jsonl";
  std::filesystem::remove(path);
  {
    Reporter reporter(path);
    const Figures f;
    reporter.record(
        "run", f.progress,
        {{"text", std::string(10000, 'x')}});  // the limit holds for standard error in its file too
    rlimit before{};
    ::getrlimit(RLIMIT_FSIZE, &before);
    rlimit limit = before;
    const auto whole = static_cast<std::int64_t>(std::filesystem::file_size(path));
    limit.rlim_cur = static_cast<rlim_t>(whole) + 10;  // room for a part of a line
    ::setrlimit(RLIMIT_FSIZE, &limit);
    ::signal(SIGXFSZ, SIG_IGN);
    reporter.display(f);
    ::setrlimit(RLIMIT_FSIZE, &before);
    EXPECT_EQ(reporter.position(), whole);
  }
  const std::string told = testing::internal::GetCapturedStderr();
  EXPECT_NE(told.find("cannot be written (File too large)"), std::string::npos) << told;
  EXPECT_EQ(told.find("(Success)"), std::string::npos) << told;
  std::filesystem::remove(path);
}

TEST(Heartbeat, BreaksASilenceAndOnlyThat) {
  testing::internal::CaptureStderr();
  {
    Heartbeat heartbeat("reading", 0.05);
    std::this_thread::sleep_for(std::chrono::milliseconds(300));
  }
  EXPECT_NE(testing::internal::GetCapturedStderr().find("... reading: 0 s\n"), std::string::npos);
  testing::internal::CaptureStderr();
  {
    Heartbeat heartbeat("reading");
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  }
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
}

TEST(Reporter, TellsItsListener) {
  std::int64_t displayed = 0;
  std::string best;
  testing::internal::CaptureStderr();
  Reporter reporter("", {[&](const Figures& figures) { displayed = figures.progress.updates; },
                         [&](const Progress&, const ValidationResult& result, bool is_best) {
                           best = result.front().name + (is_best ? " best" : "");
                         }});
  Figures figures;
  figures.progress.updates = 7;
  reporter.display(figures);
  reporter.validation(figures.progress, {{"bleu", 1.5, true}}, true, 0, 10, 1.0);
  testing::internal::GetCapturedStderr();
  EXPECT_EQ(displayed, 7);
  EXPECT_EQ(best, "bleu best");
}

TEST(StopRequest, ACallersRequestIsAnInterrupt) {
  bool asked = false;
  const StopRequest stop([&] { return asked; });
  Signals signals;
  EXPECT_EQ(stop.pending(), ExitStatus::ok);
  asked = true;
  EXPECT_EQ(stop.pending(), ExitStatus::interrupted);
  EXPECT_STREQ(stop.reason(ExitStatus::interrupted), "stop request");
  ::raise(SIGTERM);
  EXPECT_EQ(stop.pending(), ExitStatus::terminated);
  EXPECT_STREQ(stop.reason(ExitStatus::terminated), "SIGTERM");
  EXPECT_EQ(StopRequest().pending(), ExitStatus::terminated);
}

TEST(Signals, TheFirstIsNotedTheSecondInterruptLeaves) {
  {
    Signals signals;
    EXPECT_EQ(Signals::pending(), ExitStatus::ok);
    ::raise(SIGTERM);
    EXPECT_EQ(Signals::pending(), ExitStatus::terminated);
  }
  const auto twice = [] {
    Signals signals;
    ::raise(SIGINT);
    if (Signals::pending() != ExitStatus::interrupted) std::_Exit(1);
    ::raise(SIGINT);
    std::_Exit(2);
  };
  EXPECT_EXIT(twice(), testing::ExitedWithCode(130), "");
}

}  // namespace
}  // namespace nmt::train
