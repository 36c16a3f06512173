#include "app/distill/student_defaults.h"

#include <string>

namespace nmt::app {
namespace {

struct Default {
  const char *option, *value;
};

constexpr Default of_search[] = {{"beam-size", "1"}};
constexpr Default of_architecture[] = {{"type", "block"},
                                       {"encoder-mixer", "recurrent"},
                                       {"encoder-directions", "alternating"},
                                       {"enc-cell", "ssru"},
                                       {"dec-cell", "ssru"},
                                       {"gate-branch", "none"},
                                       {"attention", "dot"},
                                       {"heads", "8"},
                                       {"enc-depth", "6"},
                                       {"dec-depth", "2"},
                                       {"dim-emb", "256"},
                                       {"dim-rnn", "256"},
                                       {"feed-forward", "relu"},
                                       {"feed-forward-width", "1024"},
                                       {"layer-normalization", "false"},
                                       {"dropout-emb", "0"},
                                       {"dropout-rnn", "0"},
                                       {"dropout-readout", "0"}};

template <std::size_t N>
void set(std::vector<config::Option>& options, const Default (&defaults)[N]) {
  for (const Default& each : defaults) {
    config::Option& option = config::named(options, each.option);
    option.chosen = false;
    option.chosen_otherwise.clear();
    config::assign(option, {each.value}, option.name);
    option.initial = config::values(option);
  }
}

}  // namespace

void set_student_defaults(std::vector<config::Option>& options) {
  set(options, of_search);
  set(options, of_architecture);
}

void unset_student_architecture(TrainingSpec& spec) {
  if (!spec.is_given("type") || name_of(spec.model.type) == of_architecture[0].value) return;
  std::vector<config::Option> options = fields(spec);
  for (const Default& each : of_architecture) {
    const config::Option& option = config::named(options, each.option);
    if (!spec.is_given(option.name) && !option.chosen)
      config::assign(option, option.initial, option.name);
  }
}

}  // namespace nmt::app
