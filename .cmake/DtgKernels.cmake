# Only the kernels and what they stand on, with the tests that hold them to their results: what is built for processors other
# than this machine's, where OpenSSL, libuv and the rest have no libraries. GoogleTest comes as sources for the same reason.
find_package(Threads REQUIRED)
execute_process(
  COMMAND "${PROJECT_SOURCE_DIR}/.deps/build.sh" --arm64 --print
  OUTPUT_VARIABLE DTG_MIMALLOC_HOME OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_VARIABLE dtg_problem RESULT_VARIABLE dtg_failed)
if(dtg_failed)
  message(FATAL_ERROR "The third-party libraries are not built for ARM64 yet. Run .deps/build.sh --arm64 (once).\n${dtg_problem}")
endif()
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/.deps/pins" "${PROJECT_SOURCE_DIR}/.deps/recipes.sh")
find_path(DTG_JSON_INCLUDE nlohmann/json.hpp PATHS /usr/include REQUIRED)
find_path(DTG_HWY_INCLUDE hwy/highway.h PATHS /usr/include REQUIRED)
mark_as_advanced(DTG_JSON_INCLUDE DTG_HWY_INCLUDE)

# The headers of the two are the same on every processor, but the rest of this machine's folder is not.
set(dtg_foreign "${PROJECT_BINARY_DIR}/include")
file(MAKE_DIRECTORY "${dtg_foreign}")
file(CREATE_LINK "${DTG_JSON_INCLUDE}/nlohmann" "${dtg_foreign}/nlohmann" SYMBOLIC)
file(CREATE_LINK "${DTG_HWY_INCLUDE}/hwy" "${dtg_foreign}/hwy" SYMBOLIC)

set(dtg_sources)
foreach(rung base tensor graph device exec ops)
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/internal/${rung}/*.cc")
  list(APPEND dtg_sources ${sources})
endforeach()
list(FILTER dtg_sources EXCLUDE REGEX "/cuda/")
add_library(dtg_kernels STATIC ${dtg_sources} "${PROJECT_SOURCE_DIR}/.deps/highway_targets.cc")
target_include_directories(dtg_kernels PUBLIC "${PROJECT_SOURCE_DIR}/internal" "${PROJECT_SOURCE_DIR}")
target_include_directories(dtg_kernels SYSTEM PUBLIC "${dtg_foreign}" "${DTG_MIMALLOC_HOME}/include")
target_compile_definitions(dtg_kernels PUBLIC "DTG_VERSION=\"${PROJECT_VERSION}\"")
target_link_libraries(dtg_kernels PUBLIC "${DTG_MIMALLOC_HOME}/lib/libmimalloc.a" Threads::Threads PRIVATE dtg_strict_flags)
set_source_files_properties("${PROJECT_SOURCE_DIR}/.deps/highway_targets.cc" PROPERTIES COMPILE_OPTIONS "-Wno-pedantic")

set(dtg_gtest /usr/src/googletest/googletest)
add_library(dtg_gtest STATIC "${dtg_gtest}/src/gtest-all.cc" "${dtg_gtest}/src/gtest_main.cc")
target_include_directories(dtg_gtest SYSTEM PUBLIC "${dtg_gtest}/include" PRIVATE "${dtg_gtest}")
target_link_libraries(dtg_gtest PUBLIC Threads::Threads)

enable_testing()
set(DTG_RESULTS "${PROJECT_BINARY_DIR}/results")
file(MAKE_DIRECTORY "${DTG_RESULTS}")
foreach(rung device ops)
  file(GLOB sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/tests/${rung}/*.cc")
  add_executable(test_${rung} ${sources})
  target_include_directories(test_${rung} PRIVATE "${PROJECT_SOURCE_DIR}/tests")
  target_link_libraries(test_${rung} PRIVATE dtg_kernels dtg_gtest dtg_flags)
  add_test(NAME test_${rung} COMMAND test_${rung} --gtest_brief=1 "--gtest_output=json:${DTG_RESULTS}/test_${rung}.json")
  set_tests_properties(test_${rung} PROPERTIES TIMEOUT 300 LABELS ${rung})
endforeach()
