#pragma once

#include "config/option.h"
#include "config/specs.h"

#include <vector>

namespace nmt::config {

/// The field list of each spec, bound to one: name, aliases, member, meaning, allowed values,
/// group. The only place that names a setting; YAML, the command line, --help, --dump-config and
/// JSON all read it.
std::vector<Option> fields(ModelSpec& spec);
std::vector<Option> fields(DataSpec& spec);
std::vector<Option> fields(TrainSpec& spec);
std::vector<Option> fields(SearchSpec& spec, const SearchSpec& defaults = {});
std::vector<Option> fields(ComputeSpec& spec, const ComputeSpec& defaults = {});
/// Those that training has, with the defaults of float32_compute(); those that decoding has.
std::vector<Option> training_fields(ComputeSpec& spec);
std::vector<Option> decoding_fields(ComputeSpec& spec);
/// The part of the search that validation uses: --beam-size and the like, --valid-mini-batch,
/// --valid-max-length.
std::vector<Option> validation_fields(SearchSpec& spec);

/// What a spec alone can say of its own sense; Model, Schedule and Trainer check the rest where
/// they know more. Error
/// (`status`): names the settings that contradict each other.
void check(const DataSpec& spec, ExitStatus status = ExitStatus::usage);
/// This one also sees that every value is one that its field allows.
void check(const SearchSpec& spec, ExitStatus status = ExitStatus::usage);
/// Whether one vocabulary serves both sides.
bool one_vocabulary(const DataSpec& spec);
/// --tied-embeddings-all and -src need one vocabulary for both sides.
void check(const ModelSpec& model, const DataSpec& data, ExitStatus status = ExitStatus::usage);

}  // namespace nmt::config
