# Building for another processor than this machine's (the preset arm64): where what we need is then.
#
# libuv, mimalloc, OpenSSL and zlib come from `.deps/build.sh --arm64`: the first two built, the others as Debian's packages unpacked into
# a folder. Headers that are the same on every processor are this machine's, linked into a folder of their own, for the rest of
# /usr/include is not.
set(DTG_DEPS_ARGUMENTS --arm64)
execute_process(
  COMMAND "${PROJECT_SOURCE_DIR}/.deps/build.sh" --arm64 --print
  OUTPUT_VARIABLE dtg_homes OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_VARIABLE dtg_problem RESULT_VARIABLE dtg_failed)
if(dtg_failed)
  message(FATAL_ERROR "The third-party libraries are not there for 64-bit ARM yet. Run .deps/build.sh --arm64 (once).\n${dtg_problem}")
endif()
string(REPLACE "\n" ";" dtg_homes "${dtg_homes}")
list(GET dtg_homes 2 DTG_FOREIGN_ROOT)
set(CMAKE_LIBRARY_ARCHITECTURE aarch64-linux-gnu)
list(APPEND CMAKE_FIND_ROOT_PATH "${DTG_FOREIGN_ROOT}")
# OpenSSL's headers lie in two folders, one of them the processor's.
include_directories(SYSTEM "${DTG_FOREIGN_ROOT}/usr/include/aarch64-linux-gnu")
# libssl needs libcrypto.
add_link_options("LINKER:-rpath-link,${DTG_FOREIGN_ROOT}/usr/lib/aarch64-linux-gnu")

set(dtg_foreign "${PROJECT_BINARY_DIR}/include")
file(MAKE_DIRECTORY "${dtg_foreign}")
foreach(header hwy nlohmann flatbuffers eigen3)
  if(NOT EXISTS "/usr/include/${header}")
    message(FATAL_ERROR "No /usr/include/${header}. Run .deps/build.sh --arm64 (once).")
  endif()
  file(CREATE_LINK "/usr/include/${header}" "${dtg_foreign}/${header}" SYMBOLIC)
endforeach()
set(DTG_EIGEN_INCLUDE "${dtg_foreign}/eigen3" CACHE PATH "" FORCE)
set(DTG_JSON_INCLUDE "${dtg_foreign}" CACHE PATH "" FORCE)
include_directories(SYSTEM "${dtg_foreign}")

# GoogleTest comes as sources.
set(dtg_gtest /usr/src/googletest/googletest)
add_library(dtg_gtest STATIC EXCLUDE_FROM_ALL "${dtg_gtest}/src/gtest-all.cc" "${dtg_gtest}/src/gtest_main.cc")
target_include_directories(dtg_gtest SYSTEM PUBLIC "${dtg_gtest}/include" PRIVATE "${dtg_gtest}")
