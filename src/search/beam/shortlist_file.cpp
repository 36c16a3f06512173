// The stored form of a shortlist: 32-bit little-endian words.
//
//   "NMTSLIST"                            8 bytes
//   CRC-32 of the source and the target vocabulary, their sizes S and V
//   A, N                                  numbers of ids below
//   always                                [A] ids, ascending
//   begin                                 [S + 1] where the translations of each source piece begin
//   targets                               [N] ids
//   CRC-32 of everything before

#include "core/error.h"
#include "core/hash/checksum.h"
#include "search/beam/shortlist.h"

#include <algorithm>
#include <bit>
#include <cstring>

namespace nmt {
namespace {

static_assert(std::endian::native == std::endian::little, "shortlists are stored little-endian");

constexpr std::string_view magic = "NMTSLIST";
constexpr std::size_t word = sizeof(std::uint32_t);

struct Header {
  std::uint32_t source_crc, target_crc, sources, targets, always, translations;
};

Header header_of(const Vocabulary& source, const Vocabulary& target) {
  const bool joint = &source == &target;
  const std::uint32_t crc = crc32(target.bytes());
  return {joint ? crc : crc32(source.bytes()),       crc, static_cast<std::uint32_t>(source.size()),
          static_cast<std::uint32_t>(target.size()), 0,   0};
}

template <class T>
void append(std::string& out, const T* values, std::size_t count) {
  static_assert(sizeof(T) % word == 0);
  out.append(reinterpret_cast<const char*>(values), count * sizeof(T));
}

// `count` words, which must be there.
template <class T>
std::vector<T> take(std::string_view& bytes, std::size_t count) {
  static_assert(sizeof(T) == word);
  std::vector<T> values(count);
  if (count > 0) std::memcpy(values.data(), bytes.data(), count * word);
  bytes.remove_prefix(count * word);
  return values;
}

}  // namespace

std::string Shortlist::bytes(const Vocabulary& source, const Vocabulary& target) const {
  NMT_CHECK(begin_.size() == static_cast<std::size_t>(source.size()) + 1 && size() < (1LL << 31),
            "a shortlist of {} source pieces and {} translations for {} pieces", begin_.size() - 1,
            size(), source.size());
  Header header = header_of(source, target);
  header.always = static_cast<std::uint32_t>(always_.size());
  header.translations = static_cast<std::uint32_t>(targets_.size());
  const std::vector<std::uint32_t> begin(begin_.begin(), begin_.end());
  std::string out(magic);
  append(out, &header, 1);
  append(out, always_.data(), always_.size());
  append(out, begin.data(), begin.size());
  append(out, targets_.data(), targets_.size());
  const std::uint32_t sum = crc32(out);
  append(out, &sum, 1);
  return out;
}

Shortlist Shortlist::from_bytes(std::string_view bytes, const std::string& name,
                                const Vocabulary& source, const Vocabulary& target) {
  const auto damaged = [&name](const char* why) {
    fail(ExitStatus::data, "{}: is not a whole stored shortlist: {}", name, why);
  };
  if (bytes.size() < magic.size() + sizeof(Header) + word || !bytes.starts_with(magic))
    damaged("its header is missing");
  const std::string_view summed = bytes.substr(0, bytes.size() - word);
  std::uint32_t sum = 0;
  std::memcpy(&sum, bytes.data() + summed.size(), word);
  if (crc32(summed) != sum) damaged("its checksum is wrong");

  Header header{};
  std::memcpy(&header, bytes.data() + magic.size(), sizeof(header));
  const Header expected = header_of(source, target);
  if (header.source_crc != expected.source_crc || header.target_crc != expected.target_crc ||
      header.sources != expected.sources || header.targets != expected.targets)
    fail(ExitStatus::data, "{}: the shortlist is of other vocabularies", name);
  std::string_view rest = summed.substr(magic.size() + sizeof(Header));
  const std::uint64_t words =
      std::uint64_t{header.always} + header.sources + 1 + header.translations;
  if (rest.size() != words * word) damaged("its size is wrong");

  Shortlist list;
  list.always_ = take<std::int32_t>(rest, header.always);
  const auto begin = take<std::uint32_t>(rest, std::size_t{header.sources} + 1);
  list.targets_ = take<std::int32_t>(rest, header.translations);
  const auto is_piece = [&target](std::int32_t id) { return id >= 0 && id < target.size(); };
  if (begin.front() != 0 || begin.back() != header.translations ||
      !std::is_sorted(begin.begin(), begin.end()) ||
      !std::all_of(list.always_.begin(), list.always_.end(), is_piece) ||
      !std::all_of(list.targets_.begin(), list.targets_.end(), is_piece) ||
      !std::binary_search(list.always_.begin(), list.always_.end(), target.eos()))
    damaged("its ids are wrong");
  list.begin_.assign(begin.begin(), begin.end());
  return list;
}

}  // namespace nmt
