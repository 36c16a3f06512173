#include "config/tasks/task_fields.h"

namespace nmt::config {

std::vector<Option> classification_fields(ModelSpec& s) {
  return options_of(Task::classification, s,
                    {Option("labels", &s.classification.labels,
                            "classification: one text or a pair; auto: as in the training text")
                         .kept_by_resume()});
}

}  // namespace nmt::config
