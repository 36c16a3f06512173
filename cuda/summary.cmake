# Prints at the end of the configuration what was found and what that enables.

function(nmt_say name value)
  string(SUBSTRING "${name}            " 0 12 name)
  message(STATUS "  ${name}${value}")
endfunction()

# nmt_say_file(NAME FILE IF_FOUND IF_NOT): FILE is empty or ...-NOTFOUND where there is none.
function(nmt_say_file name file if_found if_not)
  if(file)
    nmt_say(${name} "${file}: ${if_found}")
  else()
    nmt_say(${name} "not found: ${if_not}")
  endif()
endfunction()

message(STATUS "nmt ${PROJECT_VERSION}, ${CMAKE_BUILD_TYPE}:")
nmt_say(CUDA "${NMT_CUDA_SUMMARY}")
if(NMT_CUDA_KIND STREQUAL "ON")
  nmt_say_file(cuBLAS "${NMT_CUBLAS_INCLUDE}" "opened at run time" "required")
  nmt_say_file(cuDNN "${NMT_CUDNN_INCLUDE}" "--recurrences cudnn opens it at run time"
               "${NMT_CUDNN_WHY}--recurrences cudnn is unavailable")
  nmt_say_file(NCCL "${NMT_NCCL_INCLUDE}" "training on several GPUs opens it at run time"
               "training uses one GPU")
endif()
if(TARGET nmt_mpi)
  nmt_say(MPI "${MPI_CXX_COMPILER}: training on several processes")
elseif(NMT_WITH_MPI)
  nmt_say(MPI "not found: training uses one process")
else()
  nmt_say(MPI "off: NMT_WITH_MPI=${NMT_WITH_MPI}")
endif()
# Both are only opened at run time: a build needs no header of them.
find_library(NMT_OPENBLAS NAMES libopenblas.so.0)
nmt_say_file(OpenBLAS "${NMT_OPENBLAS}" "nmt-bench opens it at run time, to compare"
             "nmt-bench compares with it where it is installed")
find_library(NMT_ONEDNN NAMES libdnnl.so.3 libdnnl.so.2)
nmt_say_file(oneDNN "${NMT_ONEDNN}" "training on the CPU opens it at run time"
             "training on the CPU uses it where it is installed")
if(NMT_PYTHON_MODULE)
  nmt_say(Python "${Python_EXECUTABLE} ${Python_VERSION}, ${nanobind_DIR}: the module nmt")
else()
  nmt_say(Python "${NMT_PYTHON_WHY}")
endif()
if(NOT NMT_SERVER)
  nmt_say(nmt-serve "${NMT_SERVER_WHY}")
elseif(NMT_CLD2 AND NMT_CLD2_INCLUDE)
  nmt_say(nmt-serve
          "Boost ${Boost_VERSION_STRING}, ICU ${ICU_VERSION}, language detection by ${NMT_CLD2}")
else()
  nmt_say(nmt-serve
          "Boost ${Boost_VERSION_STRING}, ICU ${ICU_VERSION}; \
CLD2 not found (libcld2-dev): without language detection")
endif()
