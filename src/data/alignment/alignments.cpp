#include "data/alignment/alignments.h"

#include "core/error.h"
#include "core/number_text.h"

#include <limits>

namespace nmt {

Alignments::Alignments(const std::string& path, const ParallelCorpus& corpus)
    : corpus_(corpus), file_(path) {
  if (file_.lines() != corpus.pairs())
    fail(ExitStatus::data,
         "{}: has {}, but {} has {}; expected a line of links for each pair, empty where "
         "there are none",
         path, counted(file_.lines(), "line"), corpus.file(Side::source).path(),
         grouped(corpus.pairs()));
}

std::vector<AlignmentPoint> Alignments::links(std::int64_t pair) const {
  std::string storage;
  const auto words = [&](Side side) {
    return count_words(corpus_.line(side, pair, storage), std::numeric_limits<std::size_t>::max())
        .count;
  };
  const std::size_t source = words(Side::source), target = words(Side::target);
  return read_pharaoh(file_.line(pair, storage), source, target, file_.path(), pair + 1);
}

void Alignments::check() const {
  for (std::int64_t pair = 0; pair < file_.lines(); ++pair) links(pair);
}

}  // namespace nmt
