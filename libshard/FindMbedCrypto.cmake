# find_package(MbedCrypto) -> MbedCrypto::MbedCrypto, mbedTLS's digests and base64. mbedTLS 2.28 has no file
# for pkg-config or CMake. Installed with shard-config.cmake, which needs it too.
find_path(MbedCrypto_INCLUDE_DIR mbedtls/md.h)
find_library(MbedCrypto_LIBRARY mbedcrypto)
mark_as_advanced(MbedCrypto_INCLUDE_DIR MbedCrypto_LIBRARY)
include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(MbedCrypto REQUIRED_VARS MbedCrypto_LIBRARY MbedCrypto_INCLUDE_DIR)
if(MbedCrypto_FOUND AND NOT TARGET MbedCrypto::MbedCrypto)
  add_library(MbedCrypto::MbedCrypto UNKNOWN IMPORTED)
  set_target_properties(MbedCrypto::MbedCrypto PROPERTIES IMPORTED_LOCATION "${MbedCrypto_LIBRARY}"
                        INTERFACE_INCLUDE_DIRECTORIES "${MbedCrypto_INCLUDE_DIR}")
endif()
