# Looks for everything that this configuration needs before any of it is used, so that one message names all
# that is missing and the line that installs it. The folders then find what they link, as before.
include_guard()
list(APPEND CMAKE_MODULE_PATH "${CMAKE_CURRENT_LIST_DIR}")  # FindMbedCrypto.cmake

set(missing_names "")
set(missing_packages "")
macro(shard_missing name package)
  list(APPEND missing_names "${name}")
  list(APPEND missing_packages "${package}")
endmacro()

macro(shard_need_module name package)  # a package of CMake's find_package: ARGN is its version
  find_package(${name} ${ARGN} QUIET)
  if(NOT ${name}_FOUND)
    shard_missing("${name}" ${package})
  endif()
endmacro()

macro(shard_need_pkg module package)  # a module of pkg-config
  if(PkgConfig_FOUND)
    pkg_check_modules(SHARD_NEED_${module} QUIET ${module})
  endif()
  if(NOT SHARD_NEED_${module}_FOUND)
    shard_missing("${module}" ${package})
  endif()
endmacro()

shard_need_module(PkgConfig pkg-config)
shard_need_module(fmt libfmt-dev)
shard_need_module(Boost libboost-dev 1.74)
shard_need_module(JPEG libjpeg-dev)
shard_need_module(nlohmann_json nlohmann-json3-dev 3.10)
shard_need_pkg(libzstd libzstd-dev)
shard_need_pkg(libxxhash libxxhash-dev)
shard_need_pkg(zlib zlib1g-dev)
shard_need_module(MbedCrypto libmbedtls-dev)
shard_need_pkg(expat libexpat1-dev)
shard_need_pkg(spng libspng-dev)
shard_need_pkg(libwebp libwebp-dev)
shard_need_pkg(libwebpdemux libwebp-dev)
shard_need_pkg(libtiff-4 libtiff-dev)
shard_need_module(GIF libgif-dev 5)
shard_need_pkg(libhwy libhwy-dev)
shard_need_pkg(liburing liburing-dev)
if(SHARD_BUILD_TOOLS)
  shard_need_module(CLI11 libcli11-dev)
  if(NOT SHARD_FOREIGN_ARCHIVE)  # a wheel's users install it themselves
    shard_need_pkg(openblas libopenblas-dev)  # shardbench matmul and pipeline load it when they run
  endif()
endif()
if(SHARD_BUILD_TESTS)
  shard_need_module(GTest libgtest-dev)
  find_path(SHARD_GMOCK_INCLUDE gmock/gmock.h)
  if(NOT SHARD_GMOCK_INCLUDE)
    shard_missing(GMock libgmock-dev)
  endif()
endif()

if(missing_names)
  list(REMOVE_DUPLICATES missing_packages)
  list(JOIN missing_names ", " names)
  list(JOIN missing_packages " " packages)
  message(FATAL_ERROR
    "Not found: ${names}.\n"
    "On Debian 12 and Ubuntu 24.04, this installs all of it:\n"
    "  sudo apt-get install ${packages}\n"
    "or let tools/install-deps do it. On other systems install the same libraries; docs/install.md says what each is for.")
endif()
