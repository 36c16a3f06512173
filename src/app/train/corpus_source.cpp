#include "app/train/corpus_source.h"

#include "core/log.h"

#include <cmath>

namespace nmt::app {

const Batch& CorpusSource::next() {
  batch_ = data_.next();
  if (!told_ && data_.epochs() == std::floor(data_.epochs())) {  // after a complete pass
    told_ = true;
    const std::string dropped = data_.drops().text(max_length_, in_words_);
    if (!dropped.empty()) log::warn("of {} pairs, {}", data_.pairs(), dropped);
  }
  return batch_;
}

}  // namespace nmt::app
