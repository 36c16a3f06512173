# What cmake --install adds to the programs and private libraries: libnmt, its headers, the package
# files of CMake and pkg-config, and the configurations. Every path is relative to the prefix.
include(CMakePackageConfigHelpers)

set(package_folder ${CMAKE_INSTALL_LIBDIR}/cmake/nmt)
install(TARGETS nmt_library EXPORT nmt LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}
        COMPONENT libraries NAMELINK_COMPONENT dev)
install(EXPORT nmt NAMESPACE nmt:: FILE nmtTargets.cmake DESTINATION ${package_folder}
        COMPONENT dev)
configure_file(${CMAKE_SOURCE_DIR}/cmake/nmtConfig.cmake.in
               ${CMAKE_BINARY_DIR}/generated/nmtConfig.cmake @ONLY)
write_basic_package_version_file(${CMAKE_BINARY_DIR}/generated/nmtConfigVersion.cmake
                                 COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_BINARY_DIR}/generated/nmtConfig.cmake
              ${CMAKE_BINARY_DIR}/generated/nmtConfigVersion.cmake
        DESTINATION ${package_folder} COMPONENT dev)

file(RELATIVE_PATH NMT_PC_PREFIX /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
configure_file(${CMAKE_SOURCE_DIR}/cmake/nmt.pc.in ${CMAKE_BINARY_DIR}/generated/nmt.pc @ONLY)
install(FILES ${CMAKE_BINARY_DIR}/generated/nmt.pc
        DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT dev)

# Debian packages install in /usr.
if(CMAKE_INSTALL_PREFIX STREQUAL "/usr" AND NOT SKBUILD)
  include(${CMAKE_SOURCE_DIR}/packaging/packages.cmake)
endif()

install(DIRECTORY ${CMAKE_SOURCE_DIR}/include/nmt DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}
        COMPONENT dev)
install(DIRECTORY ${CMAKE_SOURCE_DIR}/configs DESTINATION ${CMAKE_INSTALL_DATADIR}/nmt
        COMPONENT runtime)
