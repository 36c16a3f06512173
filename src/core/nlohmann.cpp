#include "core/nlohmann.h"

template class nlohmann::basic_json<>;
template class nlohmann::basic_json<nlohmann::ordered_map>;
NMT_JSON_TEMPLATES(, nlohmann::json)
NMT_JSON_TEMPLATES(, nlohmann::ordered_json)

namespace nmt {

std::string dump_json(const nlohmann::ordered_json& json, int indent) {
  return json.dump(indent, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

}  // namespace nmt
