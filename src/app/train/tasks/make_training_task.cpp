#include "app/train/tasks/classification_training.h"
#include "app/train/tasks/language_model_training.h"
#include "app/train/tasks/tagging_training.h"
#include "app/train/tasks/translation_training.h"
#include "core/error.h"

namespace nmt::app {

std::unique_ptr<TrainingTask> make_training_task(Task task) {
  switch (task) {
    case Task::translation: return std::make_unique<TranslationTraining>();
    case Task::language_model: return std::make_unique<LanguageModelTraining>();
    case Task::tagging: return std::make_unique<TaggingTraining>();
    case Task::classification: return std::make_unique<ClassificationTraining>();
  }
  NMT_FAIL("task {} has no training module", static_cast<int>(task));
}

}  // namespace nmt::app
