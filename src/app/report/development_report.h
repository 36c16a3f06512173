#pragma once

#include <string>

#include <nlohmann/json_fwd.hpp>

namespace nmt::app {

/// The part `development` of training_report(): scores of the translations of the development set
/// in the file, and its `worst` sentences by chrF, then BLEU. Null if there is no such file. Error:
/// (data) the file is not as nmt-train writes it.
nlohmann::ordered_json development_report(const std::string& path, int worst);

}  // namespace nmt::app
