#pragma once

// slice_product() of both number types.

#include "cuda/kernels/recurrent/persistent/multiply_adds.h"
#include "cuda/kernels/recurrent/persistent/tensor_cores.h"
