#include "app/files/stored_shortlist.h"

#include "core/log.h"

namespace nmt::app {

std::optional<Shortlist> stored_shortlist(const ModelDirectory& directory, const Vocabulary& source,
                                          const Vocabulary& target) {
  const std::string bytes = directory.shortlist();
  if (bytes.empty()) return {};
  Shortlist list = Shortlist::from_bytes(bytes, directory.shortlist_path(), source, target);
  log::info("shortlist {}: {} translations of source pieces", directory.shortlist_path(),
            list.size());
  return list;
}

}  // namespace nmt::app
