# CMake's toolchain file of tools/wheel --aarch64: Debian's cross compiler (g++-aarch64-linux-gnu). Nothing
# of this machine is found in place of the other one's: CMAKE_FIND_ROOT_PATH has what tools/wheel.d/libraries
# built. What is linked finds no more there, so that -lm stays what tools/wheel.d/glibc made.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)
set(CMAKE_CXX_COMPILER aarch64-linux-gnu-g++)
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)
# The programs print their completion scripts while they are built.
set(CMAKE_CROSSCOMPILING_EMULATOR qemu-aarch64-static -L /usr/aarch64-linux-gnu)
