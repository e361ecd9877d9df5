# Fuzz targets: each fuzz/<name>.cc is one libFuzzer program, fuzz_<name>, with its corpus in fuzz/corpus/<name>.
#
# libFuzzer comes with clang, so they exist in the asan preset only. `make fuzz-smoke` runs each for half a minute.
if(NOT CMAKE_CXX_COMPILER_ID MATCHES Clang OR NOT DTG_SANITIZE MATCHES address)
  return()
endif()
file(GLOB sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/fuzz/*.cc")
foreach(source IN LISTS sources)
  cmake_path(GET source STEM name)
  add_executable(fuzz_${name} "${source}")
  target_link_libraries(fuzz_${name} PRIVATE dtg_internal dtg_flags)
  target_link_options(fuzz_${name} PRIVATE -fsanitize=fuzzer)
endforeach()
