#include "data/corpus.h"

#include "core/error.h"
#include "core/number_text.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>

#include <fmt/format.h>

namespace nmt {

namespace {

// Of v0_2_fingerprint().
constexpr std::size_t kSampleBytes = std::size_t{1} << 12;
constexpr std::size_t kSamples = 1024;

/// FNV-1a (Fowler, Noll, Vo) over 8-byte words, with the high half folded in.
std::uint64_t mix(std::uint64_t hash, std::string_view bytes) {
  for (std::size_t at = 0; at < bytes.size(); at += 8) {
    std::uint64_t word = 0;
    std::memcpy(&word, bytes.data() + at, std::min<std::size_t>(8, bytes.size() - at));
    hash = (hash ^ word) * 0x100000001B3u;
    hash ^= hash >> 32;
  }
  return hash;
}

std::uint64_t start(std::string_view bytes) {
  return (0xCBF29CE484222325u ^ bytes.size()) * 0x100000001B3u;
}

/// The first line (from 0) of the longer file that probably has no partner. A block missing from
/// one file shifts all following lines: before it, lines match those at the same index; after it,
/// those `shift` further on. Returns the switching point with the lowest cost, where the cost is
/// the difference of the logarithms of the line lengths (lengths of translations are proportional:
/// Gale and Church 1993).
std::int64_t first_suspect(const TextFile& longer, const TextFile& shorter) {
  const std::int64_t shift = longer.lines() - shorter.lines();
  const auto cost = [&](std::int64_t i, std::int64_t j) {
    return std::abs(std::log(static_cast<double>(longer.raw(i).size() + 4)) -
                    std::log(static_cast<double>(shorter.raw(j).size() + 4)));
  };
  double gain = 0, best = 0;
  std::int64_t place = 0;
  for (std::int64_t j = 0; j < shorter.lines(); ++j) {
    gain += cost(j + shift, j) - cost(j, j);
    if (gain > best) {
      best = gain;
      place = j + 1;
    }
  }
  return place;
}

}  // namespace

TextFile::TextFile(const std::string& path) : file_(path) {
  file_.advise_sequential();
  const std::string_view bytes = file_.bytes();
  require_utf8(bytes, path);
  const auto each_line = [&](auto&& found) {
    for (std::size_t at = 0; at < bytes.size();) {
      found(at);
      const void* end = std::memchr(bytes.data() + at, '\n', bytes.size() - at);
      at = end ? static_cast<std::size_t>(static_cast<const char*>(end) - bytes.data()) + 1
               : bytes.size();
    }
  };
  std::size_t count = 0;  // counted first, so that the index is allocated exactly
  each_line([&](std::size_t) { ++count; });
  begins_.reserve(count);
  each_line([&](std::size_t at) { begins_.push_back(at); });
  file_.advise_random();
}

bool TextFile::ended(std::size_t i) const {
  return i + 1 < begins_.size() || file_.bytes().ends_with('\n');
}

std::size_t TextFile::end(std::size_t i) const {
  return (i + 1 < begins_.size() ? begins_[i + 1] : file_.bytes().size()) - (ended(i) ? 1 : 0);
}

std::string_view TextFile::raw(std::int64_t i) const {
  NMT_CHECK(i >= 0 && i < lines(), "{}: line {} of {}", path(), i + 1, lines());
  const auto at = static_cast<std::size_t>(i);
  return file_.bytes().substr(begins_[at], end(at) - begins_[at]);
}

std::string_view TextFile::line(std::int64_t i, std::string& storage, LineNotes* notes) const {
  return clean_line(raw(i), ended(static_cast<std::size_t>(i)), i + 1, storage, notes);
}

std::int64_t TextFile::context_begin(std::int64_t i, int sentences) const {
  std::string storage;
  std::int64_t begin = i;
  while (begin > 0 && i - begin < sentences && !is_blank(line(begin - 1, storage))) --begin;
  return begin;
}

LineNotes TextFile::notes() const {
  LineNotes found;
  std::string storage;
  for (std::int64_t i = 0; i < lines(); ++i) line(i, storage, &found);
  return found;
}

std::uint64_t TextFile::fingerprint() const {
  if (fingerprint_) return *fingerprint_;
  const std::string_view bytes = file_.bytes();
  file_.advise_sequential();
  fingerprint_ = mix(start(bytes), bytes);
  file_.advise_random();
  return *fingerprint_;
}

std::uint64_t TextFile::v0_2_fingerprint() const {
  if (v0_2_fingerprint_) return *v0_2_fingerprint_;
  const std::string_view bytes = file_.bytes();
  if (bytes.size() <= kSamples * kSampleBytes) return fingerprint();
  std::uint64_t hash = start(bytes);
  for (std::size_t i = 0; i < kSamples; ++i) {
    const std::size_t room = bytes.size() - kSampleBytes;
    hash = mix(hash,
               bytes.substr(room / (kSamples - 1) * i + room % (kSamples - 1) * i / (kSamples - 1),
                            kSampleBytes));
  }
  v0_2_fingerprint_ = hash;
  return hash;
}

TextIdentity TextFile::identity() const {
  return {fmt::format("{:016x}", fingerprint()), fmt::format("{:016x}", v0_2_fingerprint())};
}

ParallelCorpus::ParallelCorpus(const std::string& source_path, const std::string& target_path)
    : source_(source_path), target_(target_path) {
  for (const TextFile* file : {&source_, &target_}) {
    if (file->lines() == 0)
      fail(ExitStatus::data, "{}: is empty; expected one sentence per line", file->path());
  }
  if (source_.lines() != target_.lines()) {
    const bool source_longer = source_.lines() > target_.lines();
    const TextFile& longer = source_longer ? source_ : target_;
    fail(ExitStatus::data,
         "{} has {}, but {} has {}: expected equal numbers; judging by line lengths, line {} of {} "
         "is the first without a partner",
         source_.path(), counted(source_.lines(), "line"), target_.path(), grouped(target_.lines()),
         first_suspect(longer, source_longer ? target_ : source_) + 1, longer.path());
  }
}

TextIdentity ParallelCorpus::identity() const {
  const TextIdentity source = source_.identity(), target = target_.identity();
  return {source.current + target.current, source.v0_2 + target.v0_2};
}

}  // namespace nmt
