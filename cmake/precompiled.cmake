# Headers of the standard library, fmt and GoogleTest compiled once per set of compiler flags. The
# sanitizer builds use it: a fifth of their time is parsing these headers. Release builds use it for
# the tests alone, so that a source file without its own #include lines fails there.
set(NMT_PRECOMPILED_HEADERS OFF CACHE STRING
    "Compile common headers once: ON, TESTS (for the tests alone) or OFF")
set_property(CACHE NMT_PRECOMPILED_HEADERS PROPERTY STRINGS ON TESTS OFF)

set(nmt_precompiled <algorithm> <array> <atomic> <chrono> <cmath> <condition_variable> <cstdint> <filesystem>
    <fstream> <functional> <map> <memory> <mutex> <optional> <random> <set> <span> <sstream> <string>
    <string_view> <thread> <unordered_map> <variant> <vector> <fmt/format.h>)

# nmt_precompile(MORE TARGETS...): the targets share one compilation of these headers and of MORE, so
# their optimization level, kind (library or program) and definitions must be the same.
function(nmt_precompile more first)
  if(NOT NMT_PRECOMPILED_HEADERS OR (NMT_PRECOMPILED_HEADERS STREQUAL "TESTS" AND NOT more MATCHES "gtest"))
    return()
  endif()
  target_precompile_headers(${first} PRIVATE ${nmt_precompiled} ${more})
  foreach(target ${ARGN})
    target_precompile_headers(${target} REUSE_FROM ${first})
  endforeach()
endfunction()
