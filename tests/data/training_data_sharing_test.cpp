#include "training_data_case.h"

#include <chrono>
#include <vector>

namespace nmt {
namespace {

TEST_F(TrainingDataTest, SharesAreTheBatches) {
  int context = 0;
  const auto make = [&](const RankSlice& share, Gather gather) {
    return std::make_unique<TrainingData>(*corpus_, *vocabulary_, *vocabulary_, spec_,
                                          std::span<const std::int64_t>(), share, gather, noise_,
                                          context);
  };
  for (const auto& [crop, unit] : {std::pair(false, LengthUnit::pieces),
                                   {true, LengthUnit::pieces},
                                   {true, LengthUnit::words},
                                   {false, LengthUnit::words}}) {
    context = crop ? 2 : 0;
    spec_.max_length_crop = crop;
    spec_.max_length_unit = unit;
    spec_.max_length = crop || unit == LengthUnit::words ? 12 : 64;
    TrainingData alone(*corpus_, *vocabulary_, *vocabulary_, spec_, {}, {}, {}, noise_, context);
    std::vector<Batch> whole;
    std::vector<LoaderState> states{{}};
    std::vector<DropCounts> drops;
    while (alone.epochs() < 2.5) {
      whole.push_back(alone.next());
      states.push_back(alone.state());
      drops.push_back(alone.drops());
    }
    for (const int size : {2, 3, 40})
      Sharing(size).run(make, [&](int rank, TrainingData& shared) {
        for (const std::size_t start : {std::size_t{0}, whole.size() / 3, std::size_t{7}}) {
          shared.restore(states[start]);
          for (std::size_t i = start; i < whole.size(); ++i) {
            if (i % 9 == static_cast<std::size_t>(rank))
              std::this_thread::sleep_for(std::chrono::microseconds(200));
            const Batch batch = shared.next(), expected = take(whole[i], {rank, size});
            EXPECT_TRUE(same(batch, expected)) << size << ' ' << rank << ' ' << i;
            EXPECT_TRUE(batch.sentences == 0 || batch.slice == expected.slice);
            EXPECT_TRUE(batch.sentences == 0 || batch.of_shares == expected.of_shares);
            EXPECT_EQ(shared.state(), states[i + 1]);
            EXPECT_EQ(shared.drops(), drops[i]);
          }
        }
      });
  }
}

TEST_F(TrainingDataTest, EachEncodesItsShareAlone) {
  const auto make = [&](const RankSlice& share, Gather gather) {
    return std::make_unique<TrainingData>(*corpus_, *vocabulary_, *vocabulary_, spec_,
                                          std::span<const std::int64_t>(), share, gather);
  };
  for (const int size : {1, 2, 5}) {
    std::vector<std::int64_t> encoded(static_cast<std::size_t>(size));
    Sharing(size).run(make, [&](int rank, TrainingData& shared) {
      while (shared.epochs() < 20) shared.next();
      encoded[static_cast<std::size_t>(rank)] = shared.encoded();
    });
    // At most an epoch and a few windows ahead.
    for (const std::int64_t pairs : encoded) {
      EXPECT_GE(pairs, 20 * 400 / size);
      EXPECT_LE(pairs, 23 * 400 / size);
    }
  }
  EXPECT_THROW(make({0, 2}, {}), Error);
}

}  // namespace
}  // namespace nmt
