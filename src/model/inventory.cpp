#include "model/inventory.h"

#include <map>

namespace nmt {

std::int64_t Inventory::parameters() const {
  std::int64_t sum = 0;
  for (const Part& part : parts) sum += part.parameters;
  return sum;
}

std::int64_t Inventory::embeddings() const {
  for (const Part& part : parts)
    if (part.name == "embeddings") return part.parameters;
  return 0;
}

std::int64_t Inventory::products(const std::string& once) const {
  std::int64_t sum = 0;
  for (const Part& part : parts)
    if (part.once == once) sum += part.products;
  return sum;
}

void Inventory::Part::add(const Parameter& parameter) {
  parameters += parameter.shape.elements();
  if (!parameter.is_matrix) return;
  weights += parameter.shape.elements();
  if (!once.empty()) products += parameter.shape.elements();
}

Inventory take_inventory(Model& model) {
  return take_inventory(model.parameters(), model.target_vocabulary(), model.spec().dim_emb);
}

Inventory take_inventory(ParameterSet& parameters, int target_vocabulary, int dim_emb) {
  using Role = Parameter::Role;
  Inventory inventory;
  std::map<Role, std::size_t> at;
  const auto add = [&](Role role, const char* name, const char* once) {
    at[role] = inventory.parts.size();
    inventory.parts.push_back({name, 0, 0, once, 0});
  };
  add(Role::embedding, "embeddings", "");
  add(Role::encoder, "encoder", "source token");
  add(Role::attention_keys, "attention keys", "source token");
  add(Role::initial_states, "initial states", "sentence");
  add(Role::decoder, "decoder", "target token");
  add(Role::readout, "readout", "target token");
  add(Role::softmax, "softmax", "target token");
  for (const Parameter& p : parameters.all()) {
    Inventory::Part& part = inventory.parts[at.at(p.role)];
    const std::int64_t n = p.shape.elements();
    part.parameters += n;
    if (p.is_matrix || (p.role == Role::softmax && p.shape.rank() == 2)) part.weights += n;
    if (p.role == Role::attention_keys && p.is_matrix) {
      // A projection of the values follows that of the keys and replaces the annotations.
      if (p.name.ends_with("value_projection")) {
        inventory.memory_width += p.shape[1] - p.shape[0];
      } else {
        inventory.memory_width += p.shape[0];
        inventory.attention_space += p.shape[1];
      }
    }
    // Scores and weighted values: two products of this width.
    if (p.name.ends_with("joined_projection")) inventory.self_attention_products += 2 * p.shape[0];
  }
  for (Inventory::Part& part : inventory.parts)
    if (!part.once.empty()) part.products = part.weights;
  inventory.parts[at.at(Role::softmax)].products = std::int64_t{target_vocabulary} * dim_emb;
  return inventory;
}

}  // namespace nmt
