# Third-party libraries as targets: dtg_uv, dtg_mimalloc, dtg_hwy, dtg_eigen, dtg_json, OpenSSL::SSL, ZLIB::ZLIB.
# dtg_third_party is all that the library links.
#
# libuv and mimalloc are the pinned static builds of .deps/build.sh, so that no host process meets a second copy of them
# (design 6.14). The headers are SYSTEM: their warnings are not ours to fix.
if(CMAKE_CROSSCOMPILING)
  include(DtgForeign)
endif()
find_package(OpenSSL REQUIRED)
find_package(ZLIB REQUIRED)
find_package(Threads REQUIRED)

add_library(dtg_uv INTERFACE)
add_library(dtg_mimalloc INTERFACE)

if(DTG_SYSTEM_DEPS)
  find_package(PkgConfig REQUIRED)
  pkg_check_modules(DTG_UV REQUIRED IMPORTED_TARGET libuv)
  target_link_libraries(dtg_uv INTERFACE PkgConfig::DTG_UV)
  find_package(mimalloc 3 REQUIRED)
  target_link_libraries(dtg_mimalloc INTERFACE mimalloc)
else()
  set(dtg_deps_env)
  if(DTG_DEPS_DIR)
    set(dtg_deps_env "DTG_DEPS_DIR=${DTG_DEPS_DIR}")
  endif()
  execute_process(
    COMMAND ${CMAKE_COMMAND} -E env --unset=CC --unset=CXX ${dtg_deps_env} "${PROJECT_SOURCE_DIR}/.deps/build.sh" ${DTG_DEPS_ARGUMENTS} --print
    OUTPUT_VARIABLE dtg_homes OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_VARIABLE dtg_problem RESULT_VARIABLE dtg_failed)
  if(dtg_failed)
    message(FATAL_ERROR "The third-party libraries are not built on this machine yet. Run `make deps` in "
      "${PROJECT_SOURCE_DIR} (once), or configure with -DDTG_SYSTEM_DEPS=ON.\n${dtg_problem}")
  endif()
  # A changed pin or recipe moves the libraries to another folder: configure again.
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/.deps/pins"
    "${PROJECT_SOURCE_DIR}/.deps/recipes.sh")
  string(REPLACE "\n" ";" dtg_homes "${dtg_homes}")
  list(GET dtg_homes 0 DTG_UV_HOME)
  list(GET dtg_homes 1 DTG_MIMALLOC_HOME)
  target_include_directories(dtg_uv SYSTEM INTERFACE "${DTG_UV_HOME}/include")
  target_link_libraries(dtg_uv INTERFACE "${DTG_UV_HOME}/lib/libuv.a")
  target_include_directories(dtg_mimalloc SYSTEM INTERFACE "${DTG_MIMALLOC_HOME}/include")
  target_link_libraries(dtg_mimalloc INTERFACE "${DTG_MIMALLOC_HOME}/lib/libmimalloc.a")
endif()

# Highway's kernels are headers; of its library we need three functions, which .deps/highway_targets.cc provides, because
# the distribution ships it only as a shared library.
add_library(dtg_hwy INTERFACE)

# Headers only: special functions and dense decompositions.
add_library(dtg_eigen INTERFACE)
find_path(DTG_EIGEN_INCLUDE Eigen/Core PATH_SUFFIXES eigen3 REQUIRED)
mark_as_advanced(DTG_EIGEN_INCLUDE)
target_include_directories(dtg_eigen SYSTEM INTERFACE "${DTG_EIGEN_INCLUDE}")

add_library(dtg_json INTERFACE)
find_path(DTG_JSON_INCLUDE nlohmann/json.hpp REQUIRED)
mark_as_advanced(DTG_JSON_INCLUDE)

add_library(dtg_third_party INTERFACE)
foreach(home IN LISTS dtg_homes)
  # As with the checkout's own path: nothing of this machine in the debug information.
  target_compile_options(dtg_third_party INTERFACE "-ffile-prefix-map=${home}/=")
endforeach()
# Ours rather than third-party, but wanted by exactly the same targets: those that see internals.
target_compile_definitions(dtg_third_party INTERFACE "DTG_VERSION=\"${PROJECT_VERSION}\"")
target_link_libraries(dtg_third_party INTERFACE dtg_uv dtg_mimalloc dtg_hwy dtg_eigen dtg_json OpenSSL::SSL OpenSSL::Crypto
  ZLIB::ZLIB Threads::Threads)
