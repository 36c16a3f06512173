# Debian packages, made by cpack -G DEB from a build with CMAKE_INSTALL_PREFIX=/usr:
#   nmt          programs, library, configurations, nmt-serve.service
#   nmt-mpi      training on several processes
#   libnmt-dev   headers and package files of CMake and pkg-config
#   nmt-doc      docs/ and examples/
#   python3-nmt  the Python module
set(NMT_PACKAGE_MAINTAINER "nmt maintainers <maintainers@nmt.invalid>" CACHE STRING
    "The maintainer of the Debian packages")
set(packaging ${CMAKE_SOURCE_DIR}/packaging)

# string(TIMESTAMP) takes SOURCE_DATE_EPOCH, which scripts/release.sh sets.
string(TIMESTAMP NMT_PACKAGE_DATE "%a, %d %b %Y %H:%M:%S +0000" UTC)
configure_file(${packaging}/changelog.in ${CMAKE_BINARY_DIR}/generated/changelog @ONLY)

# nmt_package(COMPONENT NAME): the files that each package has.
function(nmt_package component name)
  install(FILES ${packaging}/copyright ${CMAKE_BINARY_DIR}/generated/changelog
          DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/${name} COMPONENT ${component}
          EXCLUDE_FROM_ALL)
  if(EXISTS ${packaging}/lintian/${name})
    install(FILES ${packaging}/lintian/${name} COMPONENT ${component} EXCLUDE_FROM_ALL
            DESTINATION ${CMAKE_INSTALL_DATADIR}/lintian/overrides)
  endif()
endfunction()
nmt_package(runtime nmt)
nmt_package(dev libnmt-dev)
nmt_package(doc nmt-doc)
set(CPACK_COMPONENTS_ALL libraries runtime dev doc)
if(TARGET nmt_mpi)
  nmt_package(mpi nmt-mpi)
  list(APPEND CPACK_COMPONENTS_ALL mpi)
endif()
if(NMT_PYTHON_MODULE)
  nmt_package(python python3-nmt)
  list(APPEND CPACK_COMPONENTS_ALL python)
endif()
if(NMT_SERVER)
  install(FILES ${packaging}/nmt-serve.service DESTINATION lib/systemd/system COMPONENT runtime
          EXCLUDE_FROM_ALL)
endif()
install(DIRECTORY ${CMAKE_SOURCE_DIR}/docs DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/nmt-doc
        COMPONENT doc EXCLUDE_FROM_ALL)
install(FILES ${CMAKE_SOURCE_DIR}/README.md ${CMAKE_SOURCE_DIR}/CHANGELOG.md COMPONENT doc
        DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/nmt-doc EXCLUDE_FROM_ALL)
install(DIRECTORY ${CMAKE_SOURCE_DIR}/examples DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/nmt-doc
        COMPONENT doc EXCLUDE_FROM_ALL)

set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME nmt)
set(CPACK_PACKAGE_CONTACT "${NMT_PACKAGE_MAINTAINER}")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_THREADS 1)  # packages do not depend on the number of processors
set(CPACK_PRE_BUILD_SCRIPTS ${packaging}/finish_tree.cmake)
set(CPACK_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ
    GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_COMPRESSION_TYPE xz)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS_PRIVATE_DIRS ${CMAKE_BINARY_DIR}/lib)
set(same_version "nmt (= ${PROJECT_VERSION})")

# CPack indents the lines of a description after the first.
# The group "nmt" has two components, the others are packages of their own.
set(CPACK_COMPONENT_LIBRARIES_GROUP nmt)
set(CPACK_COMPONENT_RUNTIME_GROUP nmt)
set(CPACK_DEBIAN_NMT_DESCRIPTION "neural machine translation with recurrent units
nmt trains translation models on parallel text, translates and scores text,
and serves translations over HTTP. Models are recurrent networks with
attention; a unit is chosen by an option.

This package contains the programs and the library libnmt.")
set(CPACK_DEBIAN_NMT_PACKAGE_NAME nmt)
set(CPACK_DEBIAN_NMT_PACKAGE_SECTION science)
set(CPACK_DEBIAN_NMT_PACKAGE_SHLIBDEPS ON)
configure_file(${packaging}/nmt/shlibs.in ${CMAKE_BINARY_DIR}/generated/shlibs @ONLY)
set(CPACK_DEBIAN_NMT_PACKAGE_CONTROL_EXTRA ${packaging}/nmt/postinst ${packaging}/nmt/prerm
    ${packaging}/nmt/postrm ${packaging}/nmt/triggers ${CMAKE_BINARY_DIR}/generated/shlibs)
set(CPACK_DEBIAN_NMT_PACKAGE_CONTROL_STRICT_PERMISSION ON)
set(CPACK_DEBIAN_NMT_PACKAGE_SUGGESTS "libdnnl2, nmt-doc, nmt-mpi")

set(CPACK_DEBIAN_MPI_DESCRIPTION "neural machine translation, training on several processes
This package lets nmt-train run under mpirun.")
set(CPACK_DEBIAN_MPI_PACKAGE_NAME nmt-mpi)
set(CPACK_DEBIAN_MPI_PACKAGE_SECTION science)
set(CPACK_DEBIAN_MPI_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_MPI_PACKAGE_DEPENDS "${same_version}")
set(CPACK_DEBIAN_MPI_PACKAGE_SUGGESTS "openmpi-bin")

set(CPACK_DEBIAN_DEV_DESCRIPTION "neural machine translation, headers of the C++ library
This package contains the headers of libnmt, and its package files for CMake
and pkg-config.")
set(CPACK_DEBIAN_DEV_PACKAGE_NAME libnmt-dev)
set(CPACK_DEBIAN_DEV_PACKAGE_SECTION libdevel)
set(CPACK_DEBIAN_DEV_PACKAGE_DEPENDS "${same_version}")

set(CPACK_DEBIAN_DOC_DESCRIPTION "neural machine translation, documentation and examples
This package contains the guide, the reference of all options and units, the
description of the design, and examples for C++ and Python.")
set(CPACK_DEBIAN_DOC_PACKAGE_NAME nmt-doc)
set(CPACK_DEBIAN_DOC_PACKAGE_SECTION doc)
set(CPACK_DEBIAN_DOC_PACKAGE_ARCHITECTURE all)

if(NMT_PYTHON_MODULE)
  math(EXPR next_minor "${Python_VERSION_MINOR} + 1")
endif()
set(python "python3 (>= 3.${Python_VERSION_MINOR}), python3 (<< 3.${next_minor})")
set(CPACK_DEBIAN_PYTHON_DESCRIPTION "neural machine translation, Python package
This package contains the Python package nmt, which trains models, translates
and scores raw text, and computes BLEU and chrF.")
set(CPACK_DEBIAN_PYTHON_PACKAGE_NAME python3-nmt)
set(CPACK_DEBIAN_PYTHON_PACKAGE_SECTION python)
set(CPACK_DEBIAN_PYTHON_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PYTHON_PACKAGE_DEPENDS "${same_version}, ${python}, python3-numpy")
set(CPACK_DEBIAN_PYTHON_PACKAGE_CONTROL_EXTRA ${packaging}/python/postinst
    ${packaging}/python/prerm)
set(CPACK_DEBIAN_PYTHON_PACKAGE_CONTROL_STRICT_PERMISSION ON)
include(CPack)
