#pragma once

#include "app/distill/distill.h"
#include "app/distill/work_directory.h"

#include <cstdint>

namespace nmt::app {

/// The training of the student as the step train runs it: its files are those of the work
/// directory.
TrainingSpec student_training(const DistillSpec& spec, const WorkDirectory& work);

/// Checks the student before the teacher works: what nmt-train and the later steps would refuse in
/// its settings, vocabularies and device. Needs no training text; `lines`: its lines. Errors
/// (usage): as nmt-train before its first update; (data): a damaged vocabulary.
void check_student(const DistillSpec& spec, std::int64_t lines);

}  // namespace nmt::app
