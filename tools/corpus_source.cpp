#include "tools/corpus_source.h"

#include <cmath>

#include "nmt/core/log.h"

namespace nmt::tools {

const Batch& CorpusSource::next() {
  batch_ = data_.next();
  if (!told_ && data_.epochs() == std::floor(data_.epochs())) {  // a whole pass has been seen
    told_ = true;
    const std::string dropped = data_.drops().text(max_length_);
    if (!dropped.empty()) log::warn("of {} pairs, {}", data_.pairs(), dropped);
  }
  return batch_;
}

}  // namespace nmt::tools
