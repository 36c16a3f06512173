#include "nmt/version.h"

namespace nmt {

const char* version() noexcept {
  return NMT_VERSION;
}

}  // namespace nmt
