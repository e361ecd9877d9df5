# recipes.sh: how each third-party library is configured. Sourced by build.sh, and hashed by it: a change here (or in
# the file a recipe includes) rebuilds that library, and only that one.
#
# Common to all: static, position independent, hidden symbols, no debug information. They end up inside libdtg.so, where no
# host may meet a second copy of them, and their debug information would be larger than the rest of the build.

common_flags=(
  -G Ninja
  -DCMAKE_BUILD_TYPE=Release
  -DCMAKE_POSITION_INDEPENDENT_CODE=ON
  -DCMAKE_C_VISIBILITY_PRESET=hidden
  -DCMAKE_CXX_VISIBILITY_PRESET=hidden
  -DCMAKE_VISIBILITY_INLINES_HIDDEN=ON
  -DCMAKE_INSTALL_LIBDIR=lib
)

# For the compilers of all. No "unique" symbols: they would stay process-wide even when hidden. Sections, so that what is
# never called is left out of libdtg.so. SOURCE stands for the source folder: no path of this machine may end up in a string.
common_compiler_flags="-ffunction-sections -ffile-prefix-map=SOURCE/="
common_cxx_flags="-fno-gnu-unique"

# The loop of internal/net. Its own thread pool is never used (design 6.3), so nothing is tuned.
libuv_flags=(
  -DBUILD_TESTING=OFF
  -DLIBUV_BUILD_SHARED=OFF
  "-DCMAKE_C_FLAGS_RELEASE=-O2 -DNDEBUG -fvisibility=hidden"
)

# Used through its explicit heap API only; compiled by hand, because the crate leaves out the CMake modules and upstream has a
# one-file build (src/static.c) anyway. MI_MALLOC_OVERRIDE stays undefined, it would capture the host's malloc. The local-dynamic
# TLS model is what lets a process dlopen libdtg.so late (Java, Go) without running out of static TLS space.
mimalloc_flags=(-O2 -DNDEBUG -std=gnu11 -fPIC -fvisibility=hidden -ftls-model=local-dynamic -DMI_STATIC_LIB -DMI_BUILD_RELEASE)

# build_mimalloc SOURCE WORK: what the cmake and ninja lines of build.sh do for the others.
build_mimalloc() {
  mkdir -p "$2/home/include" "$2/home/lib"
  # shellcheck disable=SC2086
  "${CC:-cc}" ${common_compiler_flags//SOURCE/$1} "${mimalloc_flags[@]}" -I"$1/include" -c "$1/src/static.c" -o "$2/mimalloc.o"
  "${AR:-ar}" rcs "$2/home/lib/libmimalloc.a" "$2/mimalloc.o"
  cp "$1"/include/mimalloc*.h "$2/home/include/"
}
