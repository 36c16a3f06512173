#include "nmt/vocabulary.h"

#include "tests/fuzz/target.h"

#include <stdexcept>

// A SentencePiece model; if it is accepted, encodes text with it.
void nmt::fuzz::vocabulary(std::string_view bytes) {
  read([&] {
    const Vocabulary vocabulary = Vocabulary::from_bytes(bytes, "fuzz.spm");
    using namespace std::string_literals;
    const std::string text =
        "the dog\0 A \xC3\xA4 a\xCC\x88 \xEF\xAC\x81 \xE6\xBC\xA2 </s> <0x41>"s;
    for (const std::int32_t id : vocabulary.encode(text)) {
      if (id < 0 || id >= vocabulary.size())
        throw std::logic_error("a piece has an id outside the vocabulary");
    }
    vocabulary.decode(vocabulary.encode(text));
    for (std::int32_t id = 0; id < vocabulary.size(); ++id) vocabulary.decode({&id, 1});
  });
}

NMT_FUZZ_TARGET(vocabulary)
