#include "train/optimization/schedule.h"

#include "core/error.h"

#include <cmath>

#include <gtest/gtest.h>

namespace nmt::train {
namespace {

TrainSpec constant(double rate) {
  TrainSpec spec;
  spec.learn_rate = rate;
  spec.schedule = RateSchedule::constant;
  return spec;
}

double at_update(const TrainSpec& spec, std::int64_t update, const Stalls& stalls = {}) {
  return Schedule(spec).rate({update, 0, 0}, stalls);
}

TEST(Period, ReadsMarianNotation) {
  EXPECT_EQ(parse_period("100Ku", "x").count, 100000);
  EXPECT_EQ(parse_period("100Ku", "x").unit, Period::Unit::updates);
  EXPECT_EQ(parse_period("10e", "x").unit, Period::Unit::epochs);
  EXPECT_EQ(parse_period("1.5Gt", "x").count, 1.5e9);
  for (const char* text : {"0.00001e", "20000000Gt", "10u", "0.1e"}) {
    const Period period = parse_period(text, "x"), again = parse_period(period.text(), "x");
    EXPECT_EQ(again.count, period.count) << period.text();
    EXPECT_EQ(again.unit, period.unit) << period.text();
  }
  EXPECT_EQ(parse_period("1.5Gt", "x").unit, Period::Unit::labels);
  EXPECT_EQ(parse_period("500", "x").unit, Period::Unit::updates);
  EXPECT_FALSE(parse_period("", "x"));
  EXPECT_FALSE(parse_period("0e", "x"));
  EXPECT_EQ(parse_periods("10e,2Mu", "x").size(), 2u);
  for (const char* bad : {"x", "10x", "-3u", "10 u", "u", "Ku", "1e5", "10ee", "nan", "inf"})
    EXPECT_THROW(parse_period(bad, "after"), Error) << bad;
}

TEST(InverseSquareRoot, ZeroIsNoDecay) {
  TrainSpec spec;
  spec.learn_rate = 0.1;
  spec.schedule = RateSchedule::inv_sqrt;
  spec.lr_warmup = "2u";
  spec.lr_decay_inv_sqrt = "0";
  EXPECT_DOUBLE_EQ(Schedule(spec).rate({1, 0, 0}, {}), 0.05);
  EXPECT_DOUBLE_EQ(Schedule(spec).rate({8, 0, 0}, {}), 0.1);
  spec.lr_decay_inv_sqrt = "";
  EXPECT_DOUBLE_EQ(Schedule(spec).rate({8, 0, 0}, {}), 0.05);
}

TEST(Period, APlusCountsFromWhereItStands) {
  const Progress done{.updates = 250, .epochs = 2.5, .labels = 4000};
  const auto absolute = [&](const char* text) { return absolute_periods(text, done, "after"); };
  EXPECT_EQ(absolute(""), "");
  EXPECT_EQ(absolute("10e,1Ku"), "10e,1Ku");
  const std::vector<Period> periods = parse_periods(absolute("+1Ku,+1e,6Kt,+2Kt"), "after");
  ASSERT_EQ(periods.size(), 4u);
  EXPECT_EQ(periods[0].count, 1250);
  EXPECT_EQ(periods[1].count, 3.5);
  EXPECT_EQ(periods[2].count, 6000);
  EXPECT_EQ(periods[3].count, 6000);
  EXPECT_EQ(periods[3].unit, Period::Unit::labels);
  for (const char* wrong : {"+", "++5u", "+x", "5+u"})
    EXPECT_THROW(parse_periods(absolute(wrong), "after"), Error) << wrong;
}

TEST(Period, DueWhenAMultipleIsCrossed) {
  const Period every_100{100, Period::Unit::updates}, every_1000_labels{1000, Period::Unit::labels},
      epoch{1, Period::Unit::epochs};
  EXPECT_FALSE(is_due(every_100, {98, 0, 0}, {99, 0, 0}));
  EXPECT_TRUE(is_due(every_100, {99, 0, 0}, {100, 0, 0}));
  EXPECT_FALSE(is_due(every_100, {100, 0, 0}, {101, 0, 0}));
  EXPECT_TRUE(is_due(every_1000_labels, {1, 0, 990}, {2, 0, 1400}));
  EXPECT_TRUE(is_due(epoch, {7, 0.98, 0}, {8, 1.0, 0}));
  EXPECT_FALSE(is_due(epoch, {8, 1.0, 0}, {9, 1.01, 0}));
  EXPECT_FALSE(is_due(Period{}, {0, 0, 0}, {1, 0, 0}));
  EXPECT_TRUE(is_reached(epoch, {8, 1.0, 0}));
  EXPECT_FALSE(is_reached(epoch, {7, 0.99, 0}));
}

// 0.1 + 0.2 rounds to more than 0.3.
TEST(Period, ASumOfFractionsIsReached) {
  const std::string text = absolute_periods("+0.1e", {.updates = 20, .epochs = 0.2}, "after");
  const Period end = parse_period(text, "after");
  EXPECT_GT(end.count, 0.3);
  EXPECT_FALSE(is_reached(end, {29, 0.29, 0}));
  EXPECT_TRUE(is_reached(end, {30, 0.3, 0}));
}

// 0.3 / 0.1 and 0.7 / 0.1 round to less than 3 and 7.
TEST(Period, EveryMultipleOfAFractionOfAnEpochIsDueOnce) {
  const Period tenth{0.1, Period::Unit::epochs};
  for (const int updates : {10, 30, 70, 1000}) {  // of an epoch
    const auto at = [&](int update) {
      return Progress{update, static_cast<double>(update) / updates, 0};
    };
    for (int update = 1; update <= 3 * updates; ++update)
      EXPECT_EQ(is_due(tenth, at(update - 1), at(update)), update % (updates / 10) == 0)
          << update << " of " << updates;
  }
}

TEST(Schedule, WarmsUpLinearlyThenInverseSquareRoot) {
  TrainSpec spec = constant(0.5);
  spec.schedule = RateSchedule::inv_sqrt;
  spec.lr_warmup = "400u";
  EXPECT_DOUBLE_EQ(at_update(spec, 1), 0.00125);
  EXPECT_DOUBLE_EQ(at_update(spec, 200), 0.25);
  EXPECT_DOUBLE_EQ(at_update(spec, 400), 0.5);
  EXPECT_DOUBLE_EQ(at_update(spec, 1600), 0.25);   // sqrt(400/1600) = 1/2
  EXPECT_DOUBLE_EQ(at_update(spec, 40000), 0.05);  // sqrt(400/40000) = 1/10
  spec.lr_decay_inv_sqrt = "1600u";
  EXPECT_DOUBLE_EQ(at_update(spec, 1600), 0.5);
  EXPECT_DOUBLE_EQ(at_update(spec, 6400), 0.25);
}

TEST(Schedule, WarmUpInOtherUnits) {
  TrainSpec spec = constant(1.0);
  spec.lr_warmup = "10Kt";
  EXPECT_DOUBLE_EQ(Schedule(spec).rate({3, 0.1, 2500}, {}), 0.25);
  spec.lr_warmup = "2e";
  EXPECT_DOUBLE_EQ(Schedule(spec).rate({3, 0.5, 2500}, {}), 0.25);
}

TEST(Schedule, Rnmt) {
  TrainSpec spec = constant(0.0001);
  spec.schedule = RateSchedule::rnmt;  // n 4, p 500, s 600000, e 1200000
  spec.lr_warmup = "100u";             // has no say here
  EXPECT_DOUBLE_EQ(at_update(spec, 0), 0.0001);
  EXPECT_DOUBLE_EQ(at_update(spec, 500), 0.000175);  // 1 + 500*3/2000
  EXPECT_DOUBLE_EQ(at_update(spec, 2000), 0.0004);   // 1 + 2000*3/2000 = n
  EXPECT_DOUBLE_EQ(at_update(spec, 100000), 0.0004);
  EXPECT_DOUBLE_EQ(at_update(spec, 150000), 0.0004);                   // nt = s
  EXPECT_NEAR(at_update(spec, 225000), 0.0001414213562373095, 1e-18);  // 4 * 8^(-1/2) = sqrt 2
  EXPECT_NEAR(at_update(spec, 300000), 0.00005, 1e-18);                // nt = e: 4 / 8
}

// The recipe of the LRN paper. Expected: with n 4, the rate at update t is
// 4e-4 * 8^((600000 - 4t) / 600000) once 4t is past 600000, and no less than the 5e-5 of Chen et
// al.
TEST(Schedule, RnmtHoldsItsFloor) {
  TrainSpec spec = constant(0.0001);
  spec.schedule = RateSchedule::rnmt;
  EXPECT_NEAR(at_update(spec, 600000), 4e-4 / 512, 1e-18);       // 8^-3
  EXPECT_NEAR(at_update(spec, 1200000), 4e-4 / 2097152, 1e-22);  // 8^-7
  spec.lr_floor = 0.00005;
  EXPECT_DOUBLE_EQ(at_update(spec, 600000), 0.00005);
  EXPECT_DOUBLE_EQ(at_update(spec, 1200000), 0.00005);
  EXPECT_NEAR(at_update(spec, 225000), 0.0001414213562373095, 1e-18);
  EXPECT_DOUBLE_EQ(at_update(spec, 0), 0.0001);
  EXPECT_DOUBLE_EQ(Schedule(spec).rate({600000, 0, 0}, {0, -1, 1}), 0.000025);  // after a recovery
}

TEST(Schedule, TheFloorLiesBelowTheWarmUp) {
  TrainSpec spec = constant(1.0);
  spec.schedule = RateSchedule::inv_sqrt;
  spec.lr_warmup = "100u";
  spec.lr_floor = 0.25;
  EXPECT_DOUBLE_EQ(at_update(spec, 10), 0.1);
  EXPECT_DOUBLE_EQ(at_update(spec, 400), 0.5);
  EXPECT_DOUBLE_EQ(at_update(spec, 40000), 0.25);
  spec.lr_floor = 1.5;
  EXPECT_THROW(Schedule{spec}, Error);
}

// Expected: over the last quarter a straight line from the rate of the schedule to 0.
TEST(Schedule, CoolsDownToZeroOverTheLastShare) {
  TrainSpec spec = constant(0.8);
  spec.lr_cooldown = 0.25;
  const Schedule schedule(spec);
  EXPECT_DOUBLE_EQ(schedule.rate({100, 0, 0}, {}, 0.0), 0.8);
  EXPECT_DOUBLE_EQ(schedule.rate({100, 0, 0}, {}, 0.75), 0.8);
  EXPECT_DOUBLE_EQ(schedule.rate({100, 0, 0}, {}, 0.875), 0.4);
  EXPECT_DOUBLE_EQ(schedule.rate({100, 0, 0}, {}, 1.0), 0.0);
  spec.schedule = RateSchedule::inv_sqrt;
  spec.lr_warmup = "100u";
  spec.lr_floor = 0.2;
  EXPECT_DOUBLE_EQ(Schedule(spec).rate({400, 0, 0}, {}, 0.875), 0.2);
  EXPECT_DOUBLE_EQ(Schedule(spec).rate({40000, 0, 0}, {}, 0.95), 0.2 * 0.2);  // below the floor
  spec.lr_cooldown = 1.5;
  EXPECT_THROW(Schedule{spec}, Error);
}

// Marian counts epochs from 1, and after each counts on and then decays if the number is at least
// the start.
TEST(Schedule, HalvesPerEpochAsMarianDoes) {
  for (const int start : {1, 2, 3, 4, 9}) {
    TrainSpec spec = constant(0.8);
    spec.lr_decay = 0.5;
    spec.lr_decay_strategy = DecayStrategy::epoch;
    spec.lr_decay_start = {start};
    const Schedule schedule(spec);
    double rate = 0.8;
    for (int epoch = 1; epoch < 12;) {
      for (const double share :
           {0.001, 0.5, 1.0})  // the last update of an epoch ends at a whole number
        EXPECT_DOUBLE_EQ(schedule.rate({1, epoch - 1 + share, 0}, {}), rate)
            << "start " << start << " epoch " << epoch;
      if (++epoch >= start) rate *= 0.5;
    }
  }
}

TEST(Schedule, HalvesOnStalls) {
  TrainSpec spec = constant(0.8);
  spec.lr_decay = 0.5;
  spec.lr_decay_start = {10, 2};
  const Schedule schedule(spec);
  EXPECT_FALSE(schedule.stall_counts(0));
  EXPECT_FALSE(schedule.stall_counts(1));
  EXPECT_TRUE(schedule.stall_counts(2));
  EXPECT_TRUE(schedule.stall_counts(4));
  EXPECT_DOUBLE_EQ(schedule.rate({1, 30, 0}, {}), 0.8);
  EXPECT_DOUBLE_EQ(schedule.rate({1, 30, 0}, {2, 7.5, 0}), 0.2);
  EXPECT_DOUBLE_EQ(schedule.rate({1, 30, 0}, {2, 7.5, 1}),
                   0.1);  // and once back to an older checkpoint
}

TEST(Schedule, StallsCountOnlyForADecayThatReadsThem) {
  TrainSpec spec = constant(0.8);
  spec.lr_decay_start = {10, 1};
  for (const DecayStrategy strategy :
       {DecayStrategy::epoch, DecayStrategy::stalled, DecayStrategy::epoch_stalled}) {
    spec.lr_decay_strategy = strategy;
    spec.lr_decay = 0;
    EXPECT_FALSE(Schedule(spec).stall_counts(1)) << name_of(strategy);
    spec.lr_decay = 0.5;
    EXPECT_EQ(Schedule(spec).stall_counts(1), strategy != DecayStrategy::epoch)
        << name_of(strategy);
  }
}

TEST(Schedule, HalvesPerEpochAfterTheFirstStall) {
  TrainSpec spec = constant(1.6);
  spec.lr_decay = 0.5;
  spec.lr_decay_strategy = DecayStrategy::epoch_stalled;
  spec.lr_decay_start = {10, 1};
  const Schedule schedule(spec);
  EXPECT_DOUBLE_EQ(schedule.rate({1, 9, 0}, {}), 1.6);
  EXPECT_DOUBLE_EQ(schedule.rate({1, 9.1, 0}, {}), 0.8);
  EXPECT_DOUBLE_EQ(schedule.rate({1, 4.0, 0}, {1, 3.5, 0}), 1.6);
  EXPECT_DOUBLE_EQ(schedule.rate({1, 4.1, 0}, {1, 3.5, 0}), 0.8);
  EXPECT_DOUBLE_EQ(schedule.rate({1, 4.1, 0}, {1, 4.0, 0}),
                   0.8);  // a validation at the very end of epoch 4
  EXPECT_DOUBLE_EQ(schedule.rate({1, 5.2, 0}, {2, 3.5, 0}), 0.4);
}

TEST(Schedule, RefusesWhatItDoesNotKnow) {
  TrainSpec spec = constant(0.1);
  spec = constant(0.0);
  EXPECT_THROW(Schedule{spec}, Error);
  spec = constant(0.1);
  spec.lr_decay = 1.5;
  EXPECT_THROW(Schedule{spec}, Error);
  spec = constant(0.1);
  spec.schedule = RateSchedule::rnmt;
  spec.rnmt_schedule = {4, 500, 600, 600};
  EXPECT_THROW(Schedule{spec}, Error);
}

}  // namespace
}  // namespace nmt::train
