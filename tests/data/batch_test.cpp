#include "data/batch.h"

#include "core/error.h"

#include <gtest/gtest.h>

namespace nmt {
namespace {

using Floats = std::vector<float>;

TEST(Batch, PadsTimeMajor) {
  const Ids a{10, 11, 12}, b{20}, x{30}, y{40, 41};
  const Batch batch = make_batch({&a, &b}, {&x, &y}, 1, 2);
  EXPECT_EQ(batch.sentences, 2);
  EXPECT_EQ(batch.source_steps, 4);
  EXPECT_EQ(batch.target_steps, 3);
  EXPECT_EQ(batch.source, (Ids{10, 20, 11, 2, 12, 2, 2, 2}));
  EXPECT_EQ(batch.source_mask, (Floats{1, 1, 1, 1, 1, 0, 1, 0}));
  EXPECT_EQ(batch.target_in, (Ids{1, 1, 30, 40, 2, 41}));
  EXPECT_EQ(batch.target_out, (Ids{30, 40, 2, 41, 2, 2}));
  EXPECT_EQ(batch.target_mask, (Floats{1, 1, 1, 1, 0, 1}));
  EXPECT_EQ(batch.source_tokens, 6);
  EXPECT_EQ(batch.target_tokens, 5);
}

TEST(Batch, WithoutTargets) {
  const Ids a{10}, empty;
  const Batch batch = make_batch({&a, &empty}, {}, 1, 2);
  EXPECT_EQ(batch.source, (Ids{10, 2, 2, 2}));
  EXPECT_EQ(batch.source_mask, (Floats{1, 1, 1, 0}));
  EXPECT_EQ(batch.target_steps, 0);
  EXPECT_TRUE(batch.target_in.empty() && batch.target_out.empty() && batch.target_mask.empty());
  EXPECT_EQ(batch.target_tokens, 0);
}

TEST(Batch, SliceIsTheBatchOfItsSentences) {
  const Ids a{10, 11, 12}, b{20}, c{21, 22}, x{30}, y{40, 41}, z;
  const Batch all = make_batch({&a, &b, &c}, {&x, &y, &z}, 1, 2),
              expected = make_batch({&b, &c}, {&y, &z}, 1, 2), part = slice(all, 1, 2);
  EXPECT_EQ(part.sentences, 2);
  EXPECT_EQ(part.source_steps, expected.source_steps);
  EXPECT_EQ(part.target_steps, expected.target_steps);
  EXPECT_EQ(part.source, expected.source);
  EXPECT_EQ(part.source_mask, expected.source_mask);
  EXPECT_EQ(part.target_in, expected.target_in);
  EXPECT_EQ(part.target_out, expected.target_out);
  EXPECT_EQ(part.target_mask, expected.target_mask);
  EXPECT_EQ(part.lines, (std::vector<std::int64_t>{1, 2}));
  EXPECT_EQ(part.source_tokens, 5);
  EXPECT_EQ(part.target_tokens, 4);
  EXPECT_THROW(slice(all, 2, 2), Error);
}

TEST(Batch, Take) {
  const Ids a{10, 11, 12}, b{20}, c{21, 22}, x{30}, y{40, 41}, z{};
  const Batch all = make_batch({&a, &b, &c}, {&x, &y, &z}, 1, 2);
  const Batch first = take(all, {0, 2}), expected = make_batch({&a, &c}, {&x, &z}, 1, 2);
  EXPECT_EQ(first.sentences, 2);
  EXPECT_EQ(first.source, expected.source);
  EXPECT_EQ(first.source_mask, expected.source_mask);
  EXPECT_EQ(first.target_in, expected.target_in);
  EXPECT_EQ(first.target_out, expected.target_out);
  EXPECT_EQ(first.target_mask, expected.target_mask);
  EXPECT_EQ(first.source_tokens, 7);
  EXPECT_EQ(first.target_tokens, 3);
  EXPECT_EQ(first.lines, (std::vector<std::int64_t>{0, 2}));
  EXPECT_EQ(take(all, {1, 2}).source, make_batch({&b}, {&y}, 1, 2).source);
  EXPECT_EQ(take(all, {3, 4}).sentences, 0);
  EXPECT_THROW(take(all, {2, 2}), Error);
}

// The position of a part of a part leads back to the sentences of the full batch.
TEST(Batch, PartsKnowTheirPositions) {
  std::vector<Ids> ids;
  std::vector<const Ids*> pointers;
  for (std::int32_t i = 0; i < 11; ++i) ids.push_back({100 + i});
  for (const Ids& one : ids) pointers.push_back(&one);
  const Batch all = make_batch(pointers, pointers, 1, 2);
  EXPECT_EQ(all.slice, (BatchSlice{0, 1, 11}));
  const Batch second = take(all, {1, 3});  // 1 4 7 10
  for (const Batch& part : {all, second, slice(second, 1, 3), take(slice(second, 1, 3), {1, 2})}) {
    EXPECT_EQ(part.slice.whole, 11);
    for (int b = 0; b < part.sentences; ++b)
      EXPECT_EQ(part.source[static_cast<std::size_t>(b)],
                100 + part.slice.first + b * part.slice.stride);
  }
}

TEST(Batch, Refuses) {
  const Ids a{10};
  EXPECT_THROW(make_batch({}, {}, 1, 2), Error);
  EXPECT_THROW(make_batch({&a, &a}, {&a}, 1, 2), Error);
}

}  // namespace
}  // namespace nmt
