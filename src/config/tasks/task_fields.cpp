#include "config/tasks/task_fields.h"

#include "core/error.h"

#include <utility>

namespace nmt::config {

std::vector<Option> options_of(Task task, const ModelSpec& spec, std::vector<Option> options) {
  for (Option& option : options)
    option.idle_rule = [task, &spec, rule = std::move(option.idle_rule)] {
      if (spec.task != task) return fmt::format("task is {}", name_of(spec.task));
      return rule ? rule() : std::string();
    };
  return options;
}

}  // namespace nmt::config
