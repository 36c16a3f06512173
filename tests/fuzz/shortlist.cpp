#include "search/beam/shortlist.h"

#include "core/hash/checksum.h"
#include "tests/fuzz/folder.h"
#include "tests/fuzz/target.h"

#include <algorithm>
#include <cstring>
#include <stdexcept>
#include <vector>

namespace nmt::fuzz {
namespace {

// The vocabulary of both languages: all lower-case letters. seeds/shortlist/stored has its size.
const Vocabulary& vocabulary() {
  static const Vocabulary letters = [] {
    VocabularyTraining training;
    training.size = 32;
    return Vocabulary::train({"the quick brown fox jumps over", "a lazy dog"}, training);
  }();
  if (letters.size() != 32) throw std::logic_error("the vocabulary has another size");
  return letters;
}

Shortlist from_text(std::string_view text) {
  static const Folder folder("shortlist");
  folder.write("list", text);
  ShortlistOptions options;
  options.path = (folder.path / "list").string();
  options.first = options.best = 3;
  return Shortlist::load(options, vocabulary(), vocabulary());
}

Shortlist from_stored(std::string_view bytes) {
  return Shortlist::from_bytes(bytes, "list", vocabulary(), vocabulary());
}

// A stored shortlist that is accepted.
const std::string& valid_bytes() {
  static const std::string valid = [] {
    try {
      const Shortlist list = from_text("a NULL 0.5\nb NULL 0.25\na c 0.5\nd c 0.25\n");
      const std::string bytes = list.bytes(vocabulary(), vocabulary());
      if (list.size() != 2 || from_stored(bytes).size() != 2)
        throw std::logic_error("a valid shortlist has another size");
      return bytes;
    } catch (const Error& error) {
      throw std::logic_error(error.what());
    }
  }();
  return valid;
}

// With a valid header and a valid checksum instead of its own. Otherwise few inputs pass these
// checks.
std::string repaired(std::string_view bytes) {
  const std::string& valid = valid_bytes();
  constexpr std::size_t head = 24, tail = 4;
  std::string whole(valid, 0, head);
  if (bytes.size() > head + tail) whole += bytes.substr(head, bytes.size() - head - tail);
  const std::uint32_t sum = crc32(whole);
  return whole.append(reinterpret_cast<const char*>(&sum), tail);
}

void use(const Shortlist& list) {
  std::vector<std::int32_t> all;
  for (std::int32_t id = 0; id < vocabulary().size(); ++id) all.push_back(id);
  for (const std::size_t sources : {std::size_t{0}, std::size_t{1}, all.size()}) {
    const auto ids = list.candidates({all.data(), sources});
    if (!std::ranges::is_sorted(ids) || !std::ranges::binary_search(ids, vocabulary().eos()) ||
        ids.front() < 0 || ids.back() >= vocabulary().size())
      throw std::logic_error("candidates are not ascending ids with </s>");
  }
}

}  // namespace

// A stored shortlist, or the text of one.
void shortlist(std::string_view bytes) {
  if (!bytes.starts_with("NMTSLIST")) {
    read([&] {
      const Shortlist list = from_text(bytes);
      use(list);
      const std::string stored = list.bytes(vocabulary(), vocabulary());
      if (from_stored(stored).bytes(vocabulary(), vocabulary()) != stored)
        throw std::logic_error("a shortlist changes when it is stored");
    });
    return;
  }
  read([&] { use(from_stored(bytes)); });
  read([&] {
    const std::string whole = repaired(bytes);
    const Shortlist list = from_stored(whole);
    use(list);
    if (list.bytes(vocabulary(), vocabulary()) != whole)
      throw std::logic_error("a stored shortlist is written otherwise than it was read");
  });
}

}  // namespace nmt::fuzz

NMT_FUZZ_TARGET(shortlist)
