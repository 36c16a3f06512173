#pragma once

// The version of these headers. CMakeLists.txt reads it from here.
//
// nmt follows semantic versioning 2.0.0 (https://semver.org). The promise covers what the headers
// in include/nmt declare, the options of the programs, and the formats of model directories. Before
// 1.0 a minor version may change declarations, and a patch version only fixes errors. The shared
// library carries the major and minor version in its SONAME (libnmt.so.0.2), so programs built
// against one minor version load no other. Model directories of an older version always load.
#define NMT_VERSION_MAJOR 0
#define NMT_VERSION_MINOR 2
#define NMT_VERSION_PATCH 0

namespace nmt {

/// The version of the library that the program runs with, "0.2.0". Thread-safe.
const char* version() noexcept;

}  // namespace nmt
