#include "core/nlohmann.h"

template class nlohmann::basic_json<>;
template class nlohmann::basic_json<nlohmann::ordered_map>;
NMT_JSON_TEMPLATES(, nlohmann::json)
NMT_JSON_TEMPLATES(, nlohmann::ordered_json)
