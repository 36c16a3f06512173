#include "text/alignment.h"

#include "tests/fuzz/target.h"

#include <stdexcept>

// A line of links, which is written as it was read.
void nmt::fuzz::alignment(std::string_view bytes) {
  read([&] {
    const std::vector<AlignmentPoint> links = read_pharaoh(bytes, 12, 9, "links", 1);
    for (const AlignmentPoint& link : links)
      if (link.source < 0 || link.source >= 12 || link.target < 0 || link.target >= 9)
        throw std::logic_error("a link beyond its sentences");
    if (read_pharaoh(pharaoh(links), 12, 9, "links", 1) != links)
      throw std::logic_error("links are read otherwise than they are written");
  });
}

NMT_FUZZ_TARGET(alignment)
