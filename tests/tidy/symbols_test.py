"""Looks at libdtg.so as a host's loader will: what it exports, under which version, and what it drags in.

The exports must be exactly the functions declared in the public headers. Anything else that leaks (a weak template, a symbol of a
library linked inside) can collide with the host's own, which shows up as a crash in somebody else's program.
"""

import re
import subprocess
import sys

import common

# Everything else is linked statically inside. ld-linux is the C library's other half, needed for thread-local storage.
ALLOWED = re.compile(r"^(libc|libm|libstdc\+\+|libgcc_s|libssl|libcrypto|libz|ld-linux[-\w]*)\.so\.\d+$")


def output(*command):
    return subprocess.run([str(word) for word in command], check=True, capture_output=True, text=True).stdout


def main():
    arguments = common.arguments()
    findings = common.Findings(arguments.source)
    library = arguments.build / "libdtg.so"
    version = re.search(r"project\(dtg VERSION (\d+\.\d+)", (arguments.source / "CMakeLists.txt").read_text()).group(1)

    sys.path.insert(0, str(arguments.source / ".cmake"))
    import exports  # the same parser that wrote the version script

    headers = common.files(arguments.source, "capi/include/dtg/*.h")
    declared = {name for header in headers for name in exports.exported_functions(header.read_text())}

    exported = set()
    for line in output("nm", "-D", "--defined-only", library).splitlines():
        kind, symbol = line.split()[-2:]
        name, _, node = symbol.partition("@")
        node = node.lstrip("@")
        if kind == "A" and name == f"DTG_{version}":
            continue
        exported.add(name)
        if kind != "T":
            findings.add(library, 0, f"exports {name} as {kind}", "only plain functions (T) may leave: no weak, unique or data symbols")
        if node != f"DTG_{version}":
            findings.add(library, 0, f"exports {name} under version '{node}'", f"every export belongs to DTG_{version} (.cmake/exports.py)")
    for name in sorted(exported - declared):
        findings.add(library, 0, f"exports {name}, which no public header declares", "declare it with DTG_API, or find out how it leaked")
    for name in sorted(declared - exported):
        findings.add(library, 0, f"does not define {name}, which a public header declares", "implement it in capi/, or remove it from the header")

    dynamic = output("readelf", "-dW", library)
    for name in re.findall(r"\(NEEDED\).*\[(.*)\]", dynamic):
        if not ALLOWED.match(name):
            findings.add(library, 0, f"needs {name}", "link it statically, or argue for it in design 6.14 and here")
    soname = re.search(r"\(SONAME\).*\[(.*)\]", dynamic)
    if not soname or soname.group(1) != f"libdtg.so.{version}":
        findings.add(library, 0, f"SONAME is {soname.group(1) if soname else 'missing'}", f"it must be libdtg.so.{version}")
    if "NODELETE" not in dynamic:
        findings.add(library, 0, "can be unloaded", "link with -z nodelete: its threads outlive dlclose")
    for bad in ("TEXTREL", "RPATH", "RUNPATH"):
        if re.search(rf"\({bad}\)", dynamic):
            findings.add(library, 0, f"has {bad}", "build everything position independent, and install without build paths")
    if str(arguments.source.resolve()).encode() in library.read_bytes():
        findings.add(library, 0, "contains the path of this checkout", "some __FILE__ or debug path escaped -ffile-prefix-map")
    findings.finish(f"symbols, {len(exported)} exports")


if __name__ == "__main__":
    main()
