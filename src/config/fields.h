#pragma once

#include "config/option.h"
#include "config/specs.h"

#include <vector>

namespace nmt::config {

/// The options of a spec, bound to its members: name, aliases, help, allowed values, group. Options
/// are declared here only; the command line, YAML, --help, --dump-config and JSON read these lists.
std::vector<Option> fields(ModelSpec& spec);
/// Those of fields(ModelSpec&) that architectures of gated blocks alone read.
std::vector<Option> block_fields(BlockSpec& spec);
/// Their names.
std::vector<std::string> block_option_names();
std::vector<Option> fields(DataSpec& spec);
std::vector<Option> fields(TrainSpec& spec);
std::vector<Option> fields(SearchSpec& spec, const SearchSpec& defaults = {});
std::vector<Option> fields(ComputeSpec& spec, const ComputeSpec& defaults = {});
/// The compute options of nmt-train, and those of programs that decode.
std::vector<Option> training_fields(ComputeSpec& spec);
std::vector<Option> decoding_fields(ComputeSpec& spec);
/// The search options of validation, such as --beam-size, --valid-mini-batch and
/// --valid-max-length.
std::vector<Option> validation_fields(SearchSpec& spec);

/// Checks that need only this spec; Model, Schedule and Trainer check the rest. Error (`status`):
/// contradictory settings, by name.
void check(const DataSpec& spec, Task task = Task::translation,
           ExitStatus status = ExitStatus::usage);
/// Also checks that every value is allowed by its option.
void check(const SearchSpec& spec, ExitStatus status = ExitStatus::usage);
/// Whether source and target share one vocabulary.
bool one_vocabulary(const DataSpec& spec);
/// --tied-embeddings-all and -src need one vocabulary for both sides.
void check(const ModelSpec& model, const DataSpec& data, ExitStatus status = ExitStatus::usage);

}  // namespace nmt::config
