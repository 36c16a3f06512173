#pragma once

#include "autograd/parameter.h"
#include "tensor/context.h"

namespace nmt::app {

/// Logs which layers of a model cuDNN or persistent kernels run, if the context has cuDNN or its
/// device runs recurrences persistently. Error (usage): the one that was chosen runs none of them.
void log_recurrences(const Context& context, ParameterSet& parameters);

}  // namespace nmt::app
