#!/bin/sh
# build.sh OUT JAVA_HOME: the JNI library, and beside it the libdtg.so that it needs, into OUT. Finds libdtg by pkg-config
# (PKG_CONFIG_PATH); CC, CFLAGS and STRIP as usual. Maven runs it; it works alone too.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
out=$1
home=$2
cc=${CC:-cc}
mkdir -p "$out"
pkg-config --exists 'dtg >= 0.1' || {
  echo "build.sh: pkg-config finds no dtg >= 0.1; install libdtg and let PKG_CONFIG_PATH name its lib/pkgconfig" >&2
  exit 1
}
# pkg-config quotes what a shell would split, such as a folder with a space.
eval "set -- $(pkg-config --cflags --libs dtg)"
"$cc" -std=c11 -O2 -g ${CFLAGS:-} -Wall -Wextra -Wpedantic -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Werror -D_GNU_SOURCE \
  -ffile-prefix-map="$here"=native -fPIC -fvisibility=hidden -fno-strict-aliasing -shared -o "$out/libdtg_jni.so.new" "$here"/*.c \
  -I"$home/include" -I"$home/include/linux" "$@" -pthread \
  -Wl,--version-script="$here/dtg_jni.map" -Wl,-z,now -Wl,-z,relro -Wl,--no-undefined -Wl,-rpath,'$ORIGIN'
mv "$out/libdtg_jni.so.new" "$out/libdtg_jni.so"
soname=$(readelf -d "$out/libdtg_jni.so" | sed -n 's/.*NEEDED.*\[\(libdtg\.so[^]]*\)\]/\1/p')
eval "libdir=$(pkg-config --variable=libdir dtg)"
cp -L "$libdir/$soname" "$out/$soname.new"
"${STRIP:-strip}" --strip-unneeded "$out/$soname.new"
mv "$out/$soname.new" "$out/$soname"
eval "prefix=$(pkg-config --variable=prefix dtg)"
# Whoever passes the jar on passes on what is in the library.
if [ -d "$prefix/share/doc/dtg" ]; then cp -R "$prefix/share/doc/dtg" "$out/licences.new" && rm -rf "$out/licences" && mv "$out/licences.new" "$out/licences"; fi
printf '%s\n' "$soname" libdtg_jni.so >"$out/files" # what the loader unpacks
