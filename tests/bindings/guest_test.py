"""The library as a guest in hosts of many kinds: loaded late, twice, and away again; beside allocators of the host's own; beside other
copies of what it has inside. The programs are in tests/abi/guest; more of the same, linked the ordinary way, is in tests/abi.

    tests/bindings/guest_test.py PREFIX BUILD_DIR SOURCE_DIR
"""

import os
import pathlib
import re
import shutil
import subprocess
import sys

from report import Report

# What is inside of libdtg.so or libdtg.a and must stay there: libuv, mimalloc, FlatBuffers, Highway, JSON, and our own C++.
PRIVATE = re.compile(r"^(uv_\w+|uv__\w+|_?mi_\w+|_ZNK?(?:11flatbuffers|3hwy|8nlohmann|3dtg)\w+)$")

# What BoringSSL and OpenSSL both call something, and the library uses; and zlib's.
OPENSSL = ["SSL_CTX_new", "SSL_CTX_free", "SSL_new", "SSL_free", "SSL_do_handshake", "SSL_CTX_set_ciphersuites", "BIO_new", "BIO_meth_new",
           "TLS_client_method", "TLS_server_method", "SSL_SESSION_new", "SSL_get_error", "OPENSSL_init_ssl", "inflate", "inflateEnd"]


def output(*command):
    return subprocess.run([str(word) for word in command], check=True, stdout=subprocess.PIPE, text=True).stdout


def dying(names):
    """Assembly of functions that end the process when they are called."""
    return ".text\n" + "".join(f".globl {name}\n.type {name},@function\n{name}:\n" for name in sorted(names)) + "ud2\n.section .note.GNU-stack,\"\",@progbits\n"


def poison(build, folders):
    """Assembly that defines every private function and object of the library once more, as something that dies when it is touched."""
    names = set()
    for archive in [build / "libdtg_internal.a", *(path for folder in folders for path in pathlib.Path(folder, "lib").glob("*.a"))]:
        for line in output("nm", "-g", "--defined-only", "-P", archive).splitlines():
            name = line.split(" ")[0]
            if PRIVATE.match(name):
                names.add(name)
    for expected in ("uv_run", "mi_malloc", "_ZN11flatbuffers"):
        if not any(name.startswith(expected) for name in names):
            sys.exit(f"{expected} is not among the {len(names)} private symbols; is the pattern out of date?")
    return dying(names)


class Shop:
    """Where the hosts are built."""

    def __init__(self, report, prefix, build, source):
        self.report, self.prefix, self.source = report, prefix, source / "tests" / "abi" / "guest"
        self.folder = build / "guest"
        shutil.rmtree(self.folder, ignore_errors=True)
        self.folder.mkdir()
        package = {**os.environ, "PKG_CONFIG_PATH": str(prefix / "lib" / "pkgconfig")}
        ask = lambda *options: subprocess.run(["pkg-config", *options, "dtg"], check=True, env=package, stdout=subprocess.PIPE, text=True).stdout.split()
        self.cflags, self.libs = ask("--cflags"), ask("--libs")

    def make(self, name, sources, *options):
        """Compiles a program or library; None when that failed, which is then a failed case."""
        target = self.folder / name
        target.parent.mkdir(exist_ok=True)
        command = ["cc", "-std=c11", "-O1", "-g1", "-Wall", "-Wextra", "-Werror", "-fno-builtin", *self.cflags, "-o", target, *sources, *options]
        done = subprocess.run([str(word) for word in command], check=False, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        if done.returncode != 0:
            self.report.case(f"guest: compile {name}", command)
            self.report.finish()
        return target

    def plugin(self, name, *libs):
        return self.make(name, [self.source / "plugin.c"], "-shared", "-fPIC", *libs)


def second_copy(library, folder):
    """The library once more, under another name, as two vendors would ship it; the loader takes equal names for one."""
    folder.mkdir()
    soname = re.search(r"\(SONAME\).*\[(.*)\]", output("readelf", "-dW", library)).group(1)
    other = soname.replace("libdtg", "libtwo")
    content = library.read_bytes().replace(soname.encode() + b"\0", other.encode() + b"\0")
    (folder / other).write_bytes(content)
    return folder / other


def main():
    prefix, build, source = (pathlib.Path(argument).resolve() for argument in sys.argv[1:4])
    report = Report("bindings_guest")
    shop = Shop(report, prefix, build, source)
    library = (prefix / "lib" / "libdtg.so").resolve()
    rpath = f"-Wl,-rpath,{prefix / 'lib'}"
    plugin = shop.plugin("plugin.so", *shop.libs, rpath)
    two = second_copy(library, shop.folder / "two")
    plugin_two = shop.plugin("plugin_two.so", two, f"-Wl,-rpath,{two.parent}")
    copied = shop.folder / "copied.so"
    shutil.copy(library, copied)
    allocator = shop.make("allocator.so", [shop.source / "allocator.c"], "-shared", "-fPIC")
    host = shop.make("host", [shop.source / "host.c"], "-rdynamic", "-ldl")
    host_with_allocator = shop.make("host_with_allocator", [shop.source / "host.c", shop.source / "allocator.c"], "-rdynamic", "-ldl")

    def case(name, *command, **options):
        report.case(f"guest: {name}", command, timeout=110, **options)

    clean = lambda text: None if re.search(r"allocator: [1-9]\d* calls, .* 0 strange blocks", text) else "blocks of another allocator were seen, or none at all"
    preloaded = {"LD_PRELOAD": str(allocator), "ALLOCATOR_REPORT": "2"}
    case("loaded and unloaded 300 times while servers run", host, "loop", plugin)
    case("two copies, each with servers and sessions", host, "copies", plugin, plugin_two)
    case("two copies opened by path", host, "paths", library, copied)
    case("allocator and threads of a plain host", host, "functions", plugin)
    case("a host with malloc and operator new of its own", host_with_allocator, "functions", plugin, env={"ALLOCATOR_REPORT": "2"}, check=clean)
    case("a preloaded malloc", host, "functions", plugin, env=preloaded, check=clean)
    case("a preloaded malloc and the dtg command", prefix / "bin" / "dtg", "ops", "MatMul", env=preloaded, check=clean)

    deps = subprocess.run([source / ".deps" / "build.sh", "--print"], check=True, stdout=subprocess.PIPE, text=True).stdout.split()
    traps = shop.folder / "traps.s"
    traps.write_text(poison(build, deps))
    # Without libdtg.a, whose OpenSSL is the host's by contract.
    other_tls = shop.folder / "other_tls.s"
    other_tls.write_text(dying(OPENSSL))
    parts = [shop.source / "main.c", shop.source / "plugin.c", traps]
    case("a host with its own libuv, mimalloc, FlatBuffers", shop.make("trapped", parts, "-rdynamic", *shop.libs, rpath))
    case("the same, loaded late", shop.make("trapped_host", [shop.source / "host.c", traps], "-rdynamic", "-ldl"), "functions", plugin)
    static = [str(prefix / "lib" / "libdtg.a"), "-lssl", "-lcrypto", "-lz", "-lstdc++", "-lm", "-pthread"]
    # It works where OpenSSL is inside (DTG_OPENSSL_INSIDE), and is refused otherwise.
    shared = "libssl" in output("readelf", "-d", prefix / "lib" / "libdtg.so")
    parts_beside = [shop.source / ("other_tls.c" if shared else "main.c"), shop.source / "plugin.c", other_tls]
    case("a host that exports another TLS library's functions", shop.make("other_tls", parts_beside, "-rdynamic", *shop.libs, rpath))
    case("a host with its own libuv, mimalloc, FlatBuffers, with libdtg.a", shop.make("trapped_static", parts, "-rdynamic", *static))

    beside = [name for name in ("libflatbuffers.so.2", "libprotobuf.so.32") if name in output("/sbin/ldconfig", "-p")]
    if beside:
        case(f"beside {' and '.join(beside)}", host, "functions", plugin, env={"LD_PRELOAD": ":".join(beside)})
    else:
        print("guest: left out: no libflatbuffers.so.2 or libprotobuf.so.32 here; to have them: apt-get install libflatbuffers2 libprotobuf32")
    judge = os.environ.get("DTG_PYTHON") or sys.executable
    if subprocess.run([judge, "-c", "import grpc, google.protobuf"], check=False, capture_output=True).returncode == 0:
        for order in ("first", "last"):
            case(f"beside gRPC, BoringSSL and protobuf, loaded {order}", judge, shop.source / "neighbours.py", plugin, order)
    else:
        print("guest: left out: gRPC and protobuf of Python; to have them: pip install -r tests/requirements.txt, named by DTG_PYTHON")
    report.finish()


if __name__ == "__main__":
    main()
