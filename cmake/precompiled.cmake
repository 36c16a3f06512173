# Headers of the standard library, fmt and GoogleTest compiled once per set of compiler flags. The
# sanitizer builds use it: a fifth of their time is parsing these headers. Other builds do not, so
# that a file without its own #include lines fails there.
option(NMT_PRECOMPILED_HEADERS "Compile common headers once; for builds that are compiled once and run once" OFF)

set(nmt_precompiled <algorithm> <array> <atomic> <chrono> <cmath> <condition_variable> <cstdint> <filesystem>
    <fstream> <functional> <map> <memory> <mutex> <optional> <random> <set> <span> <sstream> <string>
    <string_view> <thread> <unordered_map> <variant> <vector> <fmt/format.h>)

# nmt_precompile(MORE TARGETS...): the targets share one compilation of these headers and of MORE, so
# their optimization level, kind (library or program) and definitions must be the same.
function(nmt_precompile more first)
  if(NOT NMT_PRECOMPILED_HEADERS)
    return()
  endif()
  target_precompile_headers(${first} PRIVATE ${nmt_precompiled} ${more})
  foreach(target ${ARGN})
    target_precompile_headers(${target} REUSE_FROM ${first})
  endforeach()
endfunction()
