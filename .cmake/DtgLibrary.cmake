# The library: internal/** and capi/*.cc, compiled once, linked into libdtg.so (dtg), libdtg.a (dtg_static) and, for tests
# that look inside, an archive with every symbol (dtg_internal).
#
# Sources are found by folder. internal/**/cuda/ is the plugin's and is not compiled here.
file(GLOB_RECURSE dtg_sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/internal/*.cc")
list(FILTER dtg_sources EXCLUDE REGEX "/cuda/")
file(GLOB dtg_capi_sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/capi/*.cc")
file(GLOB dtg_public_headers CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/capi/include/dtg/*.h")

set(dtg_wire_sources ${dtg_sources})
list(FILTER dtg_wire_sources INCLUDE REGEX "/internal/wire/")
list(FILTER dtg_sources EXCLUDE REGEX "/internal/wire/")
# Where a step spends its time: threads, memory, what runs a plan, and loops over elements. All else is compiled for size, which makes it a
# third smaller; so are loops of ops that models seldom have.
set(dtg_fast_base budget|cancellation|clock|crc32c|free_cpu|futex|interrupt|poller|pool|sha256|spin_lock|status)
set(dtg_fast_exec body_run|chunk_cache|device_frame|frame|frame_pool|kernel|memory_pool|pending_op|program|queue|resource|slots|step|update|variable)
set(dtg_fast_ops activation|argmax|array|batch_norm|bias|cast|conv|gather|gru|lstm|matmul|pool|scan|softmax|top_k)
set(dtg_fast_sources ${dtg_sources})
list(FILTER dtg_fast_sources INCLUDE REGEX
  "/internal/(tensor/|device/cpu/|base/(${dtg_fast_base})\\.cc|exec/(${dtg_fast_exec})\\.cc|ops/(${dtg_fast_ops})\\.cc)")
list(FILTER dtg_fast_sources EXCLUDE REGEX "/device/cpu/reduce_passes\\.cc")
if(NOT DTG_SANITIZE)
  list(REMOVE_ITEM dtg_sources ${dtg_fast_sources})
  dtg_unite(dtg_fast_sources fast)
else()
  set(dtg_fast_sources)
endif()
dtg_unite(dtg_sources internal)
# The kernels and what they stand on are a library of their own, for the tests of builds for other processors. A unit has the name of
# its folder.
set(dtg_kernel_sources ${dtg_sources})
list(FILTER dtg_kernel_sources INCLUDE REGEX "/internal(/|_internal_)(base|monitor|tensor|graph|device|exec|collective|ops)[/_]")
list(REMOVE_ITEM dtg_sources ${dtg_kernel_sources})
set(dtg_seldom_option -Os)
if(DTG_QUICK)
  set(dtg_seldom_option -O1)
endif()
set_source_files_properties(${dtg_kernel_sources} PROPERTIES COMPILE_OPTIONS "$<$<CONFIG:Release>:${dtg_seldom_option}>")
list(APPEND dtg_kernel_sources ${dtg_fast_sources})
set(dtg_building_sources ${dtg_sources})
list(FILTER dtg_building_sources INCLUDE REGEX "/internal(/|_internal_)(nn|strategy|train|checkpoint)[/_]")
list(REMOVE_ITEM dtg_sources ${dtg_building_sources})
dtg_unite(dtg_wire_sources wire)
# Of the functions of the ABI those that a step calls are fast.
set(dtg_step_capi_sources ${dtg_capi_sources})
list(FILTER dtg_step_capi_sources INCLUDE REGEX "/capi/(data|error|group|handle|session|tensor|trainer)\\.cc$")
if(DTG_QUICK)
  set(dtg_step_capi_sources)
endif()
list(REMOVE_ITEM dtg_capi_sources ${dtg_step_capi_sources})
dtg_unite(dtg_capi_sources capi)
dtg_unite(dtg_step_capi_sources stepcapi)

# ---- objects ---------------------------------------------------------------------------------------------------------------
add_library(dtg_kernel_objects OBJECT ${dtg_kernel_sources} "${PROJECT_SOURCE_DIR}/.deps/highway_targets.cc")
add_library(dtg_objects OBJECT ${dtg_sources} ${dtg_wire_sources} ${DTG_GENERATED_HEADERS})
add_library(dtg_building_objects OBJECT ${dtg_building_sources})
target_compile_options(dtg_objects PRIVATE $<$<CONFIG:Release>:-Os>)
target_compile_options(dtg_building_objects PRIVATE $<$<CONFIG:Release>:-Os>)
if(DTG_QUICK)
  target_compile_options(dtg_objects PRIVATE -O1)
endif()
foreach(target dtg_kernel_objects dtg_objects dtg_building_objects)
  target_include_directories(${target} PUBLIC "${PROJECT_SOURCE_DIR}/internal" "${PROJECT_SOURCE_DIR}")
  target_link_libraries(${target} PUBLIC dtg_third_party PRIVATE dtg_strict_flags)
endforeach()

if(dtg_wire_sources)
  dtg_wire_private(${dtg_wire_sources})
endif()

# The loops are the same for every width, and compiling them for all of them with sanitizers takes minutes: the narrow and one wide.
if(DTG_SANITIZE)
  file(GLOB dtg_simd_sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/internal/device/cpu/*.cc")
  set_source_files_properties(${dtg_simd_sources} PROPERTIES COMPILE_DEFINITIONS DTG_FEW_TARGETS)
endif()
# These checks tripled the time that loops over numbers take to compile. The address sanitizer sees null and what lies outside of an object;
# alignment, types of objects and wrapped pointers are not looked at in loops any more, arithmetic is. No fuzzer steers by their branches.
if(DTG_SANITIZE_LIBRARY)
  set(dtg_loops ${dtg_kernel_sources})
  list(FILTER dtg_loops INCLUDE REGEX "/internal(/|_internal_)(ops|device_cpu|device/cpu)[/_]")
  set_source_files_properties(${dtg_loops} PROPERTIES COMPILE_OPTIONS
    "-fno-sanitize=alignment,null,object-size,pointer-overflow,return,vptr;-fno-sanitize=fuzzer-no-link")
endif()

# What most files of a rung include anyway. Loops that Highway compiles for each processor include little of it.
if(DTG_QUICK)
  set(dtg_pch_std <algorithm> <array> <cmath> <cstring> <functional> <limits> <map> <memory> <mutex> <optional> <span> <string>
    <string_view> <unordered_map> <utility> <vector>)
  target_precompile_headers(dtg_kernel_objects PRIVATE ${dtg_pch_std} "${PROJECT_SOURCE_DIR}/internal/exec/kernel.h"
    "${PROJECT_SOURCE_DIR}/internal/graph/infer.h" "${PROJECT_SOURCE_DIR}/internal/graph/gradient.h"
    "${PROJECT_SOURCE_DIR}/internal/graph/build.h" "${PROJECT_SOURCE_DIR}/internal/graph/op_def.h")
  target_precompile_headers(dtg_objects PRIVATE ${dtg_pch_std} "${PROJECT_SOURCE_DIR}/internal/session/session.h"
    "${PROJECT_SOURCE_DIR}/internal/cluster/worker.h")
  target_precompile_headers(dtg_building_objects PRIVATE ${dtg_pch_std} "${PROJECT_SOURCE_DIR}/internal/nn/model.h"
    "${PROJECT_SOURCE_DIR}/internal/nn/scope.h" "${PROJECT_SOURCE_DIR}/internal/graph/build.h")
  set_source_files_properties(${dtg_wire_sources} "${PROJECT_SOURCE_DIR}/.deps/highway_targets.cc"
    PROPERTIES SKIP_PRECOMPILE_HEADERS ON)
endif()

# Highway's macros are not pedantic.
set_source_files_properties("${PROJECT_SOURCE_DIR}/.deps/highway_targets.cc" PROPERTIES COMPILE_OPTIONS "-Wno-pedantic")

set(dtg_all_objects $<TARGET_OBJECTS:dtg_kernel_objects> $<TARGET_OBJECTS:dtg_objects> $<TARGET_OBJECTS:dtg_building_objects>)
# Of inline functions that both have, the linker keeps the first: those of a step.
set(dtg_capi_targets dtg_capi_objects)
if(dtg_step_capi_sources)
  add_library(dtg_step_capi_objects OBJECT ${dtg_step_capi_sources})
  list(PREPEND dtg_capi_targets dtg_step_capi_objects)
endif()
add_library(dtg_capi_objects OBJECT ${dtg_capi_sources})
target_compile_options(dtg_capi_objects PRIVATE $<$<CONFIG:Release>:-Os>)
foreach(target IN LISTS dtg_capi_targets)
  target_include_directories(${target} PUBLIC "${PROJECT_SOURCE_DIR}/internal" "${PROJECT_SOURCE_DIR}"
    "${PROJECT_SOURCE_DIR}/capi/include" "${PROJECT_SOURCE_DIR}/capi")
  target_compile_definitions(${target} PRIVATE DTG_BUILDING)
  target_link_libraries(${target} PUBLIC dtg_third_party PRIVATE dtg_strict_flags)
  if(DTG_QUICK)
    target_precompile_headers(${target} PRIVATE ${dtg_pch_std} "${PROJECT_SOURCE_DIR}/capi/model.h")
  endif()
  list(APPEND dtg_all_objects $<TARGET_OBJECTS:${target}>)
endforeach()

# Everything, with internal symbols, for tests and benchmarks only.
add_library(dtg_internal STATIC ${dtg_all_objects})
target_include_directories(dtg_internal PUBLIC "${PROJECT_SOURCE_DIR}/internal" "${PROJECT_SOURCE_DIR}"
  "${PROJECT_SOURCE_DIR}/capi/include")
target_link_libraries(dtg_internal PUBLIC dtg_third_party)

# ---- exports ---------------------------------------------------------------------------------------------------------------
# The headers are the only list of what is exported: the version script is derived from them, name by name.
find_package(Python3 REQUIRED COMPONENTS Interpreter)
set(DTG_MAP "${PROJECT_BINARY_DIR}/generated/dtg.map")
set(DTG_SYMBOLS "${PROJECT_BINARY_DIR}/generated/dtg.symbols")
set(dtg_node DTG_${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR})
add_custom_command(OUTPUT "${DTG_MAP}" "${DTG_SYMBOLS}"
  COMMAND Python3::Interpreter "${PROJECT_SOURCE_DIR}/.cmake/exports.py" --node ${dtg_node}
    --map "${DTG_MAP}" --symbols "${DTG_SYMBOLS}" ${dtg_public_headers}
  DEPENDS "${PROJECT_SOURCE_DIR}/.cmake/exports.py" ${dtg_public_headers}
  COMMENT "Listing the exported functions" VERBATIM)
add_custom_target(dtg_exports DEPENDS "${DTG_MAP}" "${DTG_SYMBOLS}")

# ---- libdtg.so -------------------------------------------------------------------------------------------------------------
add_library(dtg SHARED ${dtg_all_objects})
add_library(dtg::dtg ALIAS dtg)
add_dependencies(dtg dtg_exports)
# Before 1.0 a minor version may break the ABI, so the minor is part of the SONAME.
set_target_properties(dtg PROPERTIES
  VERSION ${PROJECT_VERSION}
  SOVERSION ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR}
  LINKER_LANGUAGE CXX
  LINK_DEPENDS "${DTG_MAP}")
target_sources(dtg PUBLIC FILE_SET HEADERS BASE_DIRS "${PROJECT_SOURCE_DIR}/capi/include" FILES ${dtg_public_headers})
# A neighbour that exports another TLS library's functions to the whole process (TensorFlow's Python package does, BoringSSL's) would
# take the place of a shared OpenSSL, whose symbol versions do not keep it out. For such hosts it can go inside, hidden like all
# else; the price is 5 MB, and that OpenSSL's security fixes no longer come with the system's.
option(DTG_OPENSSL_INSIDE "Link OpenSSL and zlib into libdtg.so instead of needing the system's shared ones" OFF)
if(DTG_OPENSSL_INSIDE AND NOT DTG_SANITIZE)
  foreach(name ssl crypto z)
    find_library(DTG_ARCHIVE_OF_${name} NAMES lib${name}.a REQUIRED)
    mark_as_advanced(DTG_ARCHIVE_OF_${name})
    # Before the shared ones, which --as-needed then leaves out.
    target_link_libraries(dtg PRIVATE $<BUILD_INTERFACE:${DTG_ARCHIVE_OF_${name}}>)
  endforeach()
endif()
target_link_libraries(dtg PRIVATE $<BUILD_INTERFACE:dtg_third_party> $<BUILD_INTERFACE:dtg_flags>)
target_link_options(dtg PRIVATE
  "LINKER:--version-script=${DTG_MAP}" LINKER:--exclude-libs,ALL LINKER:--gc-sections LINKER:--as-needed
  # Threads and handles outlive a dlclose, so the library never unloads.
  LINKER:-z,nodelete LINKER:-z,now LINKER:-z,relro)
if(NOT DTG_SANITIZE)
  # A sanitizer's runtime lives in the executable, so there the library has undefined symbols by design.
  target_link_options(dtg PRIVATE LINKER:--no-undefined)
endif()

# ---- libdtg.a --------------------------------------------------------------------------------------------------------------
# One object with the private libraries inside and every symbol local except the exported ones: the static twin keeps the same
# promise as the shared library, a host that links its own libuv meets no second one.
find_program(DTG_OBJCOPY NAMES ${CMAKE_OBJCOPY} objcopy REQUIRED)
mark_as_advanced(DTG_OBJCOPY)
set(DTG_ARCHIVE "${PROJECT_BINARY_DIR}/libdtg.a")
add_custom_command(OUTPUT "${DTG_ARCHIVE}"
  COMMAND ${CMAKE_COMMAND} -E rm -f "${DTG_ARCHIVE}"
  COMMAND ${CMAKE_LINKER} -r --force-group-allocation -o dtg_static.o
    --whole-archive $<TARGET_FILE:dtg_internal> --no-whole-archive
    $<$<BOOL:${DTG_UV_HOME}>:${DTG_UV_HOME}/lib/libuv.a> $<$<BOOL:${DTG_MIMALLOC_HOME}>:${DTG_MIMALLOC_HOME}/lib/libmimalloc.a>
  COMMAND ${DTG_OBJCOPY} --keep-global-symbols=${DTG_SYMBOLS} dtg_static.o
  COMMAND ${CMAKE_AR} rcs "${DTG_ARCHIVE}" dtg_static.o
  COMMAND ${CMAKE_COMMAND} -E rm -f dtg_static.o
  DEPENDS dtg_internal "${DTG_SYMBOLS}" COMMAND_EXPAND_LISTS VERBATIM
  COMMENT "Sealing libdtg.a")
# Linking it takes a while, so day-to-day builds leave it out; installing needs it.
if(CMAKE_BUILD_TYPE STREQUAL "Release" AND DTG_INSTALL)
  add_custom_target(dtg_archive ALL DEPENDS "${DTG_ARCHIVE}")
else()
  add_custom_target(dtg_archive DEPENDS "${DTG_ARCHIVE}")
endif()
add_library(dtg_static INTERFACE)
add_library(dtg::dtg_static ALIAS dtg_static)
add_dependencies(dtg_static dtg_archive)
target_include_directories(dtg_static INTERFACE $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/capi/include>)
target_link_libraries(dtg_static INTERFACE $<BUILD_INTERFACE:${DTG_ARCHIVE}> OpenSSL::SSL OpenSSL::Crypto ZLIB::ZLIB
  Threads::Threads stdc++ m)
