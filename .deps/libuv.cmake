# Included at libuv's project(). The macro makes it close descriptors by close() and not by a bare system call, which no thread sanitizer
# sees: to it the next file of the same number would be the old one. Under clang it would ask for a sanitizer's own functions, which
# no host has.
if(CMAKE_C_COMPILER_ID STREQUAL "GNU")
  add_compile_definitions(__SANITIZE_THREAD__=1)
endif()
