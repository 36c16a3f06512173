#include "nmt/model_info.h"

#include "config/fields.h"
#include "model/architecture.h"
#include "model/directory/from_settings.h"
#include "model/directory/model_directory.h"
#include "model/directory/stored_weights.h"
#include "model/inventory.h"
#include "model/model.h"

namespace nmt {

ModelInfo model_info(const std::string& path) {
  const ModelDirectory directory = ModelDirectory::open(path);
  directory.require(Task::translation);
  ModelSpec spec = directory.spec();
  ModelInfo info;
  for (const config::Option& option : config::fields(spec)) {
    std::string text;
    for (const std::string& word : config::values(option)) text += (text.empty() ? "" : " ") + word;
    info.settings[option.name] = text;
  }
  info.type = info.settings.at("type");
  info.encoder_unit = encoder_attends(spec) ? "" : info.settings.at("enc-cell");
  info.decoder_unit = info.settings.at("dec-cell");
  info.precision = precision_name(directory.weights());
  info.dim_emb = spec.dim_emb;
  info.dim_rnn = spec.dim_rnn;
  info.enc_depth = spec.enc_depth;
  info.dec_depth = spec.dec_depth;
  info.source_vocabulary = directory.source_size();
  info.target_vocabulary = directory.target_size();
  const Inventory inventory = from_settings(directory.path(), [&] {
    Model model(spec, info.source_vocabulary, info.target_vocabulary, Context{}, 1);
    return take_inventory(model);
  });
  info.parameters = inventory.parameters();
  for (const Inventory::Part& part : inventory.parts)
    info.parts.push_back({part.name, part.parameters});
  return info;
}

}  // namespace nmt
