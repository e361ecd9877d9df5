"""Keeps the outside world behind the seams, and the library from ending its host.

Clock, randomness, disk and network enter through interfaces (internal/base, internal/net); a direct call would escape the
deterministic simulator and the fault tests. A library must not abort, exit, assert or print in a host's process. And it has no
static constructors: loading it must run none of our code.
"""

import re
import subprocess

import common


def call(*names):
    """Matches an unqualified, global or std call of a C function; not a method, not a declaration of the same name."""
    return re.compile(r"(?:(?:^|[=(){;,!&|?]|\b(?:return|else|do)\b|(?<!:):)\s*|(?<![\w>])(?:std)?::)(?:%s)\s*\(" % "|".join(names), re.M)


def qualified(*names):
    """The same for names that methods of ours have too: only `::name(` and `std::name(` are surely the C function."""
    return re.compile(r"(?<![\w>])(?:std)?::(?:%s)\s*\(" % "|".join(names))


CLOCK, RANDOM, DISK, LOG, SECRETS = (f"internal/base/{name}." for name in ("clock", "random", "disk", "log", "private_file"))

# What, where it is allowed (path prefixes), and what to do instead.
BANS = [
    (re.compile(r"\bchrono::\w+_clock\b|_clock::now\b"), [CLOCK], "take the time from the runtime's clock (base/clock.h)"),
    (call("gettimeofday", "clock_gettime", "localtime", "gmtime"), [CLOCK], "take the time from the runtime's clock (base/clock.h)"),
    (qualified("time"), [CLOCK], "take the time from the runtime's clock (base/clock.h)"),
    (call("usleep", "nanosleep"), [CLOCK], "wait on the runtime's clock (base/clock.h)"),
    (re.compile(r"\bthis_thread::sleep_(?:for|until)\b"), [CLOCK], "wait on the runtime's clock (base/clock.h)"),
    (re.compile(r"\bsched_yield\b|\bthis_thread::yield\b"), [], "wait until whoever changes it tells (base/condition.h, atomic::wait)"),
    (re.compile(r"\brandom_device\b|\bmt19937(?:_64)?\b"), [RANDOM], "draw from base/random.h, which is seeded and portable"),
    (re.compile(r"\bSYS_futex\b|#\s*include\s*<linux/futex\.h>"), ["internal/base/futex."], "sleep and wake by base/futex.h"),
    (re.compile(r"\bstd::atomic_flag\b|\btest_and_set\b|__builtin_ia32_pause\b|\b_mm_pause\b|while\s*\([^;{]*[.>]exchange\s*\([^;{]*\)\s*(?:;|\{\s*\})"),
     ["internal/base/spin_lock."], "lock with base/spin_lock.h; poll with spin_pause(), a bounded number of turns"),
    (call("rand", "srand", "drand48", "getrandom", "getentropy"), [RANDOM], "draw from base/random.h, which is seeded and portable"),
    (call("fopen", "openat", "opendir", "mkstemp"), [DISK], "go through the runtime's disk (base/disk.h)"),
    (qualified("open", "creat", "unlink", "rename", "remove"), [DISK, SECRETS], "go through the runtime's disk (base/disk.h)"),
    (re.compile(r"\bstd::(?:if|of|f)stream\b|#\s*include\s*<(?:fstream|filesystem|fcntl\.h)>"), [DISK, SECRETS, "internal/net/"],
     "go through the runtime's disk (base/disk.h)"),
    (call("socket", "socketpair"), ["internal/net/"], "go through a channel (internal/net)"),
    (re.compile(r"#\s*include\s*<(?:sys/socket|netinet/in|netdb|sys/un)\.h>"), ["internal/net/"], "go through a channel (internal/net)"),
    (call("abort", "exit", "_exit", "quick_exit"), [], "return a Status; a library does not end its host"),
    (qualified("terminate"), [], "return a Status; a library does not end its host"),
    (re.compile(r"(?<!\w)assert\s*\(|#\s*include\s*<(?:cassert|assert\.h)>"), [], "return a Status, or make the mistake impossible by type"),
    (re.compile(r"\bstd::c(?:out|err|log)\b|#\s*include\s*<iostream>"), [LOG], "use base/log.h; <iostream> is also a static constructor"),
    (call("printf", "puts", "putchar", "vprintf"), [], "use base/log.h; the host owns standard output"),
    (call("fprintf", "fputs", "fputc", "perror", "vfprintf"), [LOG, DISK], "use base/log.h"),
    (re.compile(r"\bstd::regex\b|#\s*include\s*<regex>"), [], "write a small parser; std::regex recurses on its input"),
    (re.compile(r"\branges::(?:unique|remove|remove_if|partition|rotate|search|equal_range)\b|\bstd::views::"), [],
     "clang 14, which builds the sanitizers' programs, cannot compile what it answers; take the algorithm of iterators"),
    (call("setenv", "putenv", "setlocale", "sigaction", "popen", "fork"), [], "process state belongs to the host"),
    (call("getenv", "secure_getenv"), ["internal/cluster/", "capi/"], "the environment is read in one place, cluster resolvers; take an option"),
]


def check_sources(root, findings):
    checked = common.library_sources(root)
    for path in checked:
        name = str(path.relative_to(root))
        if "/cuda/" in name or name.startswith("capi/include/"):
            continue
        text = common.blank(path.read_text())
        for pattern, allowed, remedy in BANS:
            if any(name.startswith(prefix) for prefix in allowed):
                continue
            for match in pattern.finditer(text):
                words = match.group(0).strip(" \n=(){;,!&|?:")
                findings.add(path, common.line_of(text, match.end() - 1), f"uses {words.rstrip('(').strip()}", remedy)
    return len(checked)


def check_constructors(root, build, findings):
    """No object file of ours may hold code that runs when the library is loaded."""
    objects = common.files(build, "CMakeFiles/dtg_objects.dir/**/*.o", "CMakeFiles/dtg_*capi_objects.dir/**/*.o")
    for path in objects:
        source = root / re.sub(r"^CMakeFiles/\w+\.dir/|\.o$", "", str(path.relative_to(build)))
        # A file that was deleted leaves its object behind.
        if not source.exists():
            continue
        symbols = subprocess.run(["nm", "-C", path], capture_output=True, text=True, check=True).stdout
        if "_GLOBAL__sub_I_" in symbols:
            names = re.findall(r" [bdBD] (.+)", symbols)
            findings.add(source, 0, "has a static constructor", "make it constexpr or constinit, or let the runtime own it. Candidates: " +
                         ", ".join(sorted(set(names))[:5]))
    return len(objects)


def main():
    arguments = common.arguments()
    findings = common.Findings(arguments.source)
    sources = check_sources(arguments.source, findings)
    objects = check_constructors(arguments.source, arguments.build, findings)
    findings.finish(f"bans, {sources} sources, {objects} objects")


if __name__ == "__main__":
    main()
