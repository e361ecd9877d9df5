# Compiler flags. dtg_flags is for everything we compile, dtg_strict_flags adds what the library is held to beyond the tests.
#
# The baseline is plain x86-64: fast paths choose their instruction set at run time (Highway), so one binary runs anywhere.
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_C_STANDARD 11)
set(CMAKE_C_STANDARD_REQUIRED ON)
set(CMAKE_C_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_C_VISIBILITY_PRESET hidden)
set(CMAKE_CXX_VISIBILITY_PRESET hidden)
set(CMAKE_VISIBILITY_INLINES_HIDDEN ON)
set(THREADS_PREFER_PTHREAD_FLAG ON)

if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "Build type" FORCE)
endif()

add_library(dtg_flags INTERFACE)
target_compile_options(dtg_flags INTERFACE
  # Designated initialisers that leave the rest at its default are the point of having them.
  -Wall -Wextra -Wshadow -Wno-missing-field-initializers
  # No fused multiply-add behind our back: results must not depend on the compiler's mood (bit-equal runs are promised).
  -ffp-contract=off
  # Paths in __FILE__ and debug information relative to the checkout: reproducible, and shared between build folders by ccache.
  "-ffile-prefix-map=${PROJECT_SOURCE_DIR}/="
  # What is never called is dropped at the link; "unique" symbols would stay process-wide even when hidden.
  -ffunction-sections $<$<COMPILE_LANG_AND_ID:CXX,GNU>:-fno-gnu-unique>
  # gcc 12 is wrong about std::string assignments (-Wrestrict) and often about templates (-Wmaybe-uninitialized).
  $<$<CXX_COMPILER_ID:GNU>:-Wno-restrict>
  $<$<BOOL:${DTG_WERROR}>:-Werror> $<$<CXX_COMPILER_ID:GNU>:-Wno-maybe-uninitialized>)

add_library(dtg_strict_flags INTERFACE)
# Signed sizes meet unsigned indices everywhere in tensor code; -Wsign-conversion would bury the findings that matter.
target_compile_options(dtg_strict_flags INTERFACE -Wpedantic -Wconversion -Wno-sign-conversion)
target_link_libraries(dtg_strict_flags INTERFACE dtg_flags)

# Undefined behaviour and coverage (libFuzzer's; its main comes only with the fuzz targets) are looked at in the library, not in its
# tests: most of a sanitized build's time went into those.
set(DTG_SANITIZE_LIBRARY)
if(DTG_SANITIZE)
  set(DTG_SANITIZE_FLAGS -fsanitize=${DTG_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all)
  target_link_options(dtg_flags INTERFACE ${DTG_SANITIZE_FLAGS})
  if(CMAKE_CXX_COMPILER_ID MATCHES Clang AND DTG_SANITIZE MATCHES "address.*undefined")
    set(DTG_SANITIZE_FLAGS -fsanitize=address -fno-omit-frame-pointer)
    set(DTG_SANITIZE_LIBRARY -fsanitize=undefined -fno-sanitize-recover=all -fsanitize=fuzzer-no-link)
    target_link_options(dtg_flags INTERFACE -fsanitize=fuzzer-no-link)
  endif()
  target_compile_options(dtg_flags INTERFACE ${DTG_SANITIZE_FLAGS})
  target_compile_options(dtg_strict_flags INTERFACE ${DTG_SANITIZE_LIBRARY})
endif()

# dtg_add_c_program(NAME SOURCE...): a strict C11 program that links libdtg.so and sees only the public headers.
function(dtg_add_c_program name)
  add_executable(${name} ${ARGN})
  target_link_libraries(${name} PRIVATE dtg dtg_flags Threads::Threads ${CMAKE_DL_LIBS} m)
  target_compile_options(${name} PRIVATE -Wpedantic -Wstrict-prototypes)
  if(DTG_SANITIZE)
    # Only the C++ driver links the C++ half of the sanitizers, which the library needs.
    set_target_properties(${name} PROPERTIES LINKER_LANGUAGE CXX)
  endif()
endfunction()

# ccache, when present, answers recompilations across build folders and clean builds.
find_program(DTG_CCACHE ccache)
mark_as_advanced(DTG_CCACHE)
if(DTG_CCACHE AND NOT DTG_QUICK AND PROJECT_IS_TOP_LEVEL AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_C_COMPILER_LAUNCHER
    ${CMAKE_COMMAND} -E env CCACHE_BASEDIR=${PROJECT_SOURCE_DIR} CCACHE_NOHASHDIR=1 ${DTG_CCACHE})
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_C_COMPILER_LAUNCHER})
endif()
