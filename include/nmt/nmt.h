#pragma once

/// The public API of the library: translating, scoring, training, metrics, vocabularies.
/// docs/guide/library.md is the tutorial, version.h states what a version promises.
#include "nmt/error.h"
#include "nmt/log.h"
#include "nmt/metrics.h"
#include "nmt/model_info.h"
#include "nmt/scorer.h"
#include "nmt/settings.h"
#include "nmt/trainer.h"
#include "nmt/translator.h"
#include "nmt/version.h"
#include "nmt/vocabulary.h"
