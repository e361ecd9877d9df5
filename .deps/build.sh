#!/usr/bin/env bash
# build.sh: makes a bare machine (git, make, a C++ compiler) ready to build dtg.
#
#   .deps/build.sh                    install missing packages, unpack and build the pinned libraries once per machine
#   .deps/build.sh --with sanitize    the same, and what `make sanitize` and `make fuzz` need
#   .deps/build.sh --with test        the same, and, where they can be had, packages without which a test would be left out
#   .deps/build.sh --arm64            the same for 64-bit ARM: a cross compiler, an emulator, the pinned libraries, OpenSSL and zlib
#   .deps/build.sh --arm64-root SET   a folder with Debian's packages of a SET for 64-bit ARM, made once; prints its path. SET:
#                                     libraries (OpenSSL, zlib), java (a JVM), rust (a compiler of this machine and both standard libraries)
#   .deps/build.sh --judges           a Python with the packages of tests/requirements.txt, made once; prints its path
#   .deps/build.sh --print            print the library folders, one per line; exit 1 when one is not built
#
# Built libraries live outside the work tree, in ${DTG_CACHE_DIR:-${XDG_CACHE_HOME:-~/.cache}/dtg}/<name>-<version>-<key>/,
# so that several checkouts share them and `make clean` keeps them. The key covers pins, recipe and compiler. A library is built in
# a scratch folder and renamed into place, under a lock: an interrupted or doubled run can never leave half of one.
#
# Environment: DTG_DEPS_DIR   a folder with the crates' sources (a copy of <cache>/sources-*) for machines without a network
#              DTG_NO_APT=1   never install packages, only say what is missing
#              CC, CXX, AR, STRIP   the tools that build a library
#              JOBS           parallel compile jobs (default: all processors)
set -euo pipefail
# Paths must sort the same everywhere, or the tree hashes would differ by locale.
export LC_ALL=C

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
cache=${DTG_CACHE_DIR:-${XDG_CACHE_HOME:-${HOME:?set HOME or DTG_CACHE_DIR}/.cache}/dtg}
jobs=${JOBS:-$(nproc)}
libraries=(libuv mimalloc)
# shellcheck source=recipes.sh
source "$here/recipes.sh"

say() { printf 'deps: %s\n' "$*" >&2; }
die() { say "$*"; exit 1; }

# pin NAME COLUMN: one field of .deps/pins (2 version, 3 crate, 4 crate version, 5 folder, 6 crate sha256, 7 tree hash).
pin() { awk -v n="$1" -v c="$2" '$1 == n { print $c }' "$here/pins"; }

sha() { sha256sum | cut -d' ' -f1; }

# Hash of a source folder: names and contents of all files, dot files aside (archives of a crate disagree about those).
tree_hash() { (cd "$1" && find . -type f -not -path '*/.*' -print0 | sort -z | xargs -0 sha256sum | sha); }

# The folder a library is installed into; a function of everything that shapes the build.
home_of() {
  local name=$1 flags="${1}_flags[@]" extra=/dev/null key
  if [[ -f $here/$name.cmake ]]; then extra=$here/$name.cmake; fi
  key=$({ awk -v n="$name" '$1 == n' "$here/pins"
          printf '%s\n' "${common_flags[@]}" "$common_compiler_flags" "$common_cxx_flags" "${!flags}"
          cat "$extra"
          printf '%s\n' "$compiler"; } | sha)
  printf '%s/%s-%s-%s\n' "$cache" "$name" "$(pin "$name" 2)" "${key:0:12}"
}

# ---- packages ---------------------------------------------------------------------------------------------------------------

base_packages=(cmake ninja-build ccache g++ pkg-config libflatbuffers-dev flatbuffers-compiler libhwy-dev nlohmann-json3-dev
  libssl-dev zlib1g-dev libeigen3-dev libgtest-dev libbenchmark-dev python3 python3-venv)
arm64_packages=(g++-aarch64-linux-gnu qemu-user googletest)
# What --arm64-root unpacks, with what it depends on; a name with :amd64 runs on this machine.
arm64_libraries=(libssl-dev:arm64 libssl3:arm64 zlib1g-dev:arm64 zlib1g:arm64)
arm64_java=(openjdk-17-jre-headless:arm64)
arm64_rust=(rustc-web:amd64 libstd-rust-web-dev:arm64)
sanitize_packages=(clang-14 libclang-rt-14-dev llvm-14 "${arm64_packages[@]}")
optional_packages=(clang-format-14 strace)

# Old cargo cannot read the 2024 edition one of the crates is written in.
have_cargo() {
  local version
  version=$(cargo --version 2>/dev/null | cut -d' ' -f2) || return 1
  [[ -n $version && $(printf '1.85\n%s\n' "$version" | sort -V | head -1) == 1.85 ]]
}

missing_packages() {
  local installed
  installed=$(dpkg-query -W -f '${db:Status-Status} ${Package}\n' "$@" 2>/dev/null | awk '$1 == "installed" { print $2 }' || true)
  comm -23 <(printf '%s\n' "$@" | sort -u) <(sort -u <<<"$installed")
}

install_packages() {
  local missing root=()
  mapfile -t missing < <(missing_packages "$@")
  if [[ ${#missing[@]} -eq 0 ]]; then return; fi
  if [[ $(id -u) -ne 0 ]]; then
    command -v sudo >/dev/null || die "missing packages: ${missing[*]}. Run as root: apt-get install ${missing[*]}"
    root=(sudo)
  fi
  if [[ ${DTG_NO_APT:-} == 1 ]]; then die "missing packages: ${missing[*]} (DTG_NO_APT=1 forbids installing them)"; fi
  say "installing ${missing[*]}"
  export DEBIAN_FRONTEND=noninteractive
  # The package index of a fresh container is empty; of a running machine it is usually good enough.
  local apt=("${root[@]}" apt-get -qq)
  "${apt[@]}" install -y --no-install-recommends "${missing[@]}" >/dev/null 2>&1 ||
    { "${apt[@]}" update && "${apt[@]}" install -y --no-install-recommends "${missing[@]}" >/dev/null; } ||
    die "apt-get could not install: ${missing[*]}"
}

ensure_packages() {
  if ! command -v dpkg-query >/dev/null; then
    say "no dpkg here: make sure the equivalents of these are installed: ${base_packages[*]}"
    return
  fi
  install_packages "$@"
}

# What only a test or two would miss: one attempt that neither asks for a password nor updates the index, and may fail.
ensure_optional_packages() {
  local missing root=()
  if [[ $# -eq 0 || ${DTG_NO_APT:-} == 1 ]] || ! command -v dpkg-query >/dev/null; then return; fi
  mapfile -t missing < <(missing_packages "$@")
  if [[ ${#missing[@]} -eq 0 ]]; then return; fi
  if [[ $(id -u) -ne 0 ]]; then root=(sudo -n); fi
  say "installing ${missing[*]}"
  DEBIAN_FRONTEND=noninteractive "${root[@]}" apt-get -qq -o Acquire::http::Timeout=10 install -y --no-install-recommends \
    "${missing[@]}" >/dev/null 2>&1 || say "going on without; to install it: apt-get install ${missing[*]}"
}

# Packages of another processor, unpacked into a folder and never installed: the machine's own package database is not touched. A
# private one is asked, which has the machine's sources and thinks that nothing is installed.
arm64_root() {
  local set=$1 names="arm64_$1[@]" home work apt wanted
  [[ $set =~ ^(libraries|java|rust)$ ]] || die "--arm64-root knows only: libraries, java, rust"
  wanted=("${!names}")
  home=$cache/arm64-$set-$(printf '%s\n' 5 "${wanted[@]}" | sha | cut -c1-12)
  if [[ ! -d $home ]]; then
    command -v apt-get >/dev/null || die "no apt-get here; make a folder of ${wanted[*]} for arm64 as $home"
    if [[ ${DTG_NO_APT:-} == 1 ]]; then die "missing for arm64: ${wanted[*]} (DTG_NO_APT=1 forbids fetching them)"; fi
    mkdir -p "$cache"
    work=$(mktemp -d "$cache/arm64.XXXXXX")
    mkdir -p "$work"/{lists/partial,archives/partial,root/usr/lib}
    ln -s usr/lib "$work/root/lib" # as it is on Debian since 12
    touch "$work/status"
    apt=(apt-get -q -y -o "Dir::State=$work" -o "Dir::State::lists=$work/lists" -o "Dir::State::status=$work/status" -o "Dir::Cache=$work"
      -o "Dir::Cache::archives=$work/archives" -o APT::Sandbox::User="$(id -un)" -o APT::Architecture=amd64 -o "APT::Architectures::=amd64"
      -o "APT::Architectures::=arm64" -o APT::Install-Recommends=0 -o Debug::NoLocking=1)
    say "fetching ${wanted[*]}"
    "${apt[@]}" update >"$work/log" 2>&1 || { tail -5 "$work/log" >&2; die "apt-get update failed for arm64"; }
    if [[ $set == libraries ]]; then
      # The C library and its headers are the cross compiler's.
      (cd "$work/archives" && "${apt[@]}" download "${wanted[@]}" >>"$work/log" 2>&1)
    else
      "${apt[@]}" install --download-only "${wanted[@]}" >>"$work/log" 2>&1
    fi || { tail -5 "$work/log" >&2; die "apt-get could not fetch ${wanted[*]}"; }
    # This machine has a C compiler and a C library; a second one would get in its way.
    find "$work/archives" -name '*.deb' ! \( -name '*_amd64.deb' \( -name 'gcc*' -o -name 'cpp*' -o -name 'binutils*' -o -name 'lib*-dev_*' \
      -o -name 'libc[-6]*' -o -name 'lib*san*' \) ! -name 'libstd-rust*' \) \
      -exec sh -c 'dpkg-deb --fsys-tarfile "$1" | tar -x --keep-directory-symlink -C "$0"' "$work/root" {} \;
    # Links that name a path of a whole system name one of this folder.
    find "$work/root" -type l -lname '/*' -exec sh -c 'for link do ln -sfrn "$0$(readlink "$link")" "$link"; done' "$work/root" {} +
    mv -T "$work/root" "$home" 2>/dev/null || [[ -d $home ]] || die "could not make $home"
    rm -rf "$work"
  fi
  printf '%s\n' "$home"
}

# ---- sources ----------------------------------------------------------------------------------------------------------------

# Leaves the verified sources of one library in <cache>/sources-<key>/<crate> and prints the folder with its CMakeLists.txt.
sources_of() {
  local name=$1 crate tree root
  crate=$(pin "$name" 3)
  root=${DTG_DEPS_DIR:-$cache/sources-$(sha <"$here/pins" | cut -c1-12)}
  if [[ -z ${DTG_DEPS_DIR:-} && ! -d $root ]]; then vendor "$root"; fi
  tree=$root/$crate/$(pin "$name" 5)
  [[ -d $tree ]] || die "$name: no sources in $tree (expected the unpacked crate $crate $(pin "$name" 4))"
  [[ $(tree_hash "$tree") == "$(pin "$name" 7)" ]] ||
    die "$name: the sources in $tree do not match the tree hash in .deps/pins. Delete that folder and try again; do not build it"
  printf '%s\n' "$tree"
}

vendor() {
  local target=$1 work name crate
  have_cargo || ensure_packages cargo-web
  have_cargo || die "cargo 1.85 or newer is needed to fetch sources (or hand them in with DTG_DEPS_DIR)"
  for name in "${libraries[@]}"; do
    grep -q "^$(pin "$name" 3) = \"=$(pin "$name" 4)\"$" "$here/Cargo.toml" ||
      die ".deps/Cargo.toml and .deps/pins disagree about $name"
  done
  say "fetching sources: $(for n in "${libraries[@]}"; do printf '%s %s  ' "$n" "$(pin "$n" 2)"; done)"
  work=$(mktemp -d "$cache/fetch.XXXXXX")
  cp "$here/Cargo.toml" "$here/empty.rs" "$work/"
  (cd "$work" && cargo vendor --quiet vendor >/dev/null) || die "cargo vendor failed. Is there a network? If not, see DTG_DEPS_DIR"
  mkdir "$work/keep"
  for name in "${libraries[@]}"; do
    crate=$(pin "$name" 3)
    # cargo has checked the archive against its index; this checks the index against us.
    grep -q "\"package\":\"$(pin "$name" 6)\"" "$work/vendor/$crate/.cargo-checksum.json" ||
      die "$crate: the archive's sha256 is not the pinned one"
    mv "$work/vendor/$crate" "$work/keep/$crate"
  done
  mv -T "$work/keep" "$target"
  rm -rf "$work"
}

# ---- building ---------------------------------------------------------------------------------------------------------------

build() {
  local name=$1 home=$2 source work start
  source=$(sources_of "$name")
  work=$(mktemp -d "$cache/build.$name.XXXXXX")
  start=$SECONDS
  say "building $name $(pin "$name" 2) once for this machine ($jobs jobs)"
  if declare -F "build_$name" >/dev/null; then
    "build_$name" "$source" "$work" || die "$name: the build failed"
  else
    build_with_cmake "$name" "$source" "$work"
  fi
  find "$work/home" -name '*.a' -exec "${STRIP:-strip}" --strip-debug {} +
  rm -rf "$home"
  mv -T "$work/home" "$home"
  rm -rf "$work"
  say "built $name in $((SECONDS - start)) s"
}

build_with_cmake() {
  local name=$1 source=$2 work=$3 flags="${1}_flags[@]" include=()
  if [[ -f $here/$name.cmake ]]; then include=("-DCMAKE_PROJECT_INCLUDE=$here/$name.cmake"); fi
  cmake -S "$source" -B "$work/build" "${common_flags[@]}" "${!flags}" "${include[@]}" \
    -DCMAKE_C_COMPILER="${CC:-cc}" -DCMAKE_CXX_COMPILER="${CXX:-c++}" "${cross_flags[@]}" \
    -DCMAKE_C_FLAGS="${common_compiler_flags//SOURCE/$source}" \
    -DCMAKE_CXX_FLAGS="${common_compiler_flags//SOURCE/$source} $common_cxx_flags" \
    -DCMAKE_INSTALL_PREFIX="$work/home" >"$work/configure.log" 2>&1 ||
    { tail -30 "$work/configure.log" >&2; die "$name: cmake failed, see $work/configure.log"; }
  NINJA_STATUS="deps: $name %f of %t steps, %es " ninja -C "$work/build" -j "$jobs" install >"$work/build.log" 2>&1 &
  # A background job ignores Ctrl-C, so it has to be told; otherwise it would go on building and hold the lock.
  trap 'kill $! 2>/dev/null; die "interrupted"' INT TERM
  follow "$work/build.log" $! || { tail -40 "$work/build.log" >&2; die "$name: the build failed, see $work/build.log"; }
}

# Shows the last line of a growing log until the process ends: in place on a terminal, every half minute in a log file.
follow() {
  local log=$1 process=$2 ticks=0 line
  while kill -0 "$process" 2>/dev/null; do
    sleep 1
    ticks=$((ticks + 1))
    line=$(grep -a "^deps: " "$log" | tail -1 | cut -c1-100 || true)
    if [[ -t 2 ]]; then printf '\r\033[K%s' "$line" >&2; elif ((ticks % 30 == 0)); then printf '%s\n' "$line" >&2; fi
  done
  if [[ -t 2 ]]; then printf '\r\033[K' >&2; fi
  wait "$process"
}

# ---- judges -----------------------------------------------------------------------------------------------------------------

# Other people's readers hold our files against their formats; they live in an environment of their own.
judges() {
  local wanted="$here/../tests/requirements.txt" home work
  home=$cache/judges-$({ cat "$wanted"; python3 --version; } | sha | cut -c1-12)
  if [[ ! -x $home/bin/python ]]; then
    mkdir -p "$cache"
    exec 8>"$cache/judges.lock"
    flock 8
    if [[ ! -x $home/bin/python ]]; then
      say "installing the packages of tests/requirements.txt once for this machine"
      rm -rf "$home"
      { python3 -m venv "$home" && "$home/bin/python" -m pip install --quiet --disable-pip-version-check -r "$wanted"; } >&2 ||
        { rm -rf "$home"; die "pip could not install tests/requirements.txt. Is there a network?"; }
    fi
    exec 8>&-
  fi
  printf '%s\n' "$home/bin/python"
}

# ---- main -------------------------------------------------------------------------------------------------------------------

packages=("${base_packages[@]}")
optional=()
print=0
arm64=0
while [[ $# -gt 0 ]]; do
  case $1 in
    --with)
      case ${2:-} in
        sanitize) packages+=("${sanitize_packages[@]}") ;;
        test) optional+=("${optional_packages[@]}") ;;
        *) die "--with knows only: sanitize, test" ;;
      esac
      shift 2 ;;
    --arm64)
      packages+=("${arm64_packages[@]}")
      arm64=1
      CC=aarch64-linux-gnu-gcc CXX=aarch64-linux-gnu-g++ AR=aarch64-linux-gnu-ar STRIP=aarch64-linux-gnu-strip
      shift ;;
    --print) print=1; shift ;;
    --judges) judges; exit ;;
    --arm64-root) arm64_root "${2:-}"; exit ;;
    *) die "unknown argument $1; see the head of .deps/build.sh" ;;
  esac
done

if [[ $print -eq 0 ]]; then
  ensure_packages "${packages[@]}"
  ensure_optional_packages "${optional[@]}"
  if [[ $arm64 -eq 1 ]]; then arm64_root libraries >/dev/null; fi
fi
cross_flags=()
if [[ $arm64 -eq 1 ]]; then cross_flags=(-DCMAKE_SYSTEM_NAME=Linux -DCMAKE_SYSTEM_PROCESSOR=aarch64); fi
compiler="$(${CXX:-c++} -dumpfullversion -dumpversion) $(${CXX:-c++} -dumpmachine)"

homes=()
for name in "${libraries[@]}"; do homes+=("$(home_of "$name")"); done

if [[ $print -eq 1 ]]; then
  for home in "${homes[@]}"; do
    if [[ ! -d $home ]]; then die "not built yet: ${home##*/}. Run: make deps"; fi
  done
  printf '%s\n' "${homes[@]}"
  # The last line of --arm64 --print; --print never fetches.
  if [[ $arm64 -eq 1 ]]; then DTG_NO_APT=1 arm64_root libraries; fi
  exit
fi

for i in "${!libraries[@]}"; do
  if [[ -d ${homes[i]} ]]; then continue; fi
  mkdir -p "$cache"
  exec 9>"$cache/lock"
  flock -n 9 || { say "another build holds $cache/lock; waiting"; flock 9; }
  # With the lock in hand, scratch folders can only be left-overs of interrupted runs.
  rm -rf "$cache"/build.* "$cache"/fetch.*
  # Whoever held the lock may have built it for us.
  if [[ ! -d ${homes[i]} ]]; then build "${libraries[i]}" "${homes[i]}"; fi
  exec 9>&-
done
