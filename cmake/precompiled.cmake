# Headers of the standard library, fmt and GoogleTest compiled once per set of compiler flags.
# Without it, parsing them takes about a sixth of the time of a source file. The test `includes`
# finds source files without their own #include lines, which compile here all the same.
option(NMT_PRECOMPILED_HEADERS "Compile common headers once" OFF)

set(nmt_precompiled <algorithm> <array> <atomic> <chrono> <cmath> <condition_variable> <cstdint>
    <filesystem> <fstream> <functional> <map> <memory> <mutex> <optional> <random> <set> <span>
    <sstream> <string> <string_view> <thread> <unordered_map> <variant> <vector> <fmt/format.h>)

# nmt_precompile(MORE TARGETS...): the targets share one compilation of these headers and of MORE,
# so their optimization level, kind (library or program) and definitions must be the same.
function(nmt_precompile more first)
  if(NOT NMT_PRECOMPILED_HEADERS)
    return()
  endif()
  target_precompile_headers(${first} PRIVATE ${nmt_precompiled} ${more})
  foreach(target ${ARGN})
    target_precompile_headers(${target} REUSE_FROM ${first})
  endforeach()
  # To g++, what it inlines from a precompiled header is not from a system header, where these have
  # false positives.
  if(NOT CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    return()
  endif()
  foreach(target ${first} ${ARGN})
    target_compile_options(${target} PRIVATE -Wno-array-bounds -Wno-stringop-overflow
        -Wno-stringop-overread)
  endforeach()
endfunction()
