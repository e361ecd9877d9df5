"""The Rust declarations of the C ABI, from its headers.

Two files come out. `dtg-sys/src/bindings.rs` holds the declarations. `dtg-sys/tests/header/layout.rs` holds the same facts as a table
(sizes, offsets, numbers, and every function as the C prototype that its Rust declaration means); the test beside it lets a C
compiler hold that table against the headers themselves, so that a mistake of this translation does not stay hidden.

The headers keep to a small subset of C (base.h says which); a statement that is not understood is an error here, never left out.
"""

import pathlib
import re

SCALARS = {
    "void": "c_void", "char": "c_char", "double": "f64", "float": "f32", "size_t": "usize",
    "int8_t": "i8", "int16_t": "i16", "int32_t": "i32", "int64_t": "i64",
    "uint8_t": "u8", "uint16_t": "u16", "uint32_t": "u32", "uint64_t": "u64",
}
C_OF = {rust: c for c, rust in SCALARS.items()}
KEYWORDS = {"type": "r#type", "loop": "r#loop", "match": "r#match", "in": "r#in", "fn": "r#fn", "ref": "r#ref", "self": "self_"}

BINDINGS = "bindings/rust/dtg-sys/src/bindings.rs"
LAYOUT = "bindings/rust/dtg-sys/tests/header/layout.rs"


class Abi:
    """What the headers declare, in their order."""

    def __init__(self):
        self.consts = []     # (name, rust type, value)
        self.aliases = []    # (name, rust type)
        self.callbacks = []  # (name, [(name, type)], return type or None)
        self.opaques = []    # name
        self.structs = []    # (name, [(field, type, array length or None)])
        self.functions = []  # (name, [(parameter, type)], return type or None)
        self.inits = {}      # struct name -> C initializer


def rust_type(text):
    """`const char *const *` -> `*const *const c_char`."""
    tokens = re.findall(r"\w+|\*", text)
    tokens = [token for token in tokens if token != "struct"]
    stars = [i for i, token in enumerate(tokens) if token == "*"]
    head = tokens[: stars[0]] if stars else tokens
    names = [token for token in head if token != "const"]
    if len(names) != 1:
        raise ValueError(f"not a type: {text!r}")
    result = SCALARS.get(names[0], names[0])
    constant = "const" in head
    for i in stars:
        result = f"*{'const' if constant else 'mut'} {result}"
        constant = i + 1 < len(tokens) and tokens[i + 1] == "const"
    return result


def c_type(rust):
    """The way back: `*const *mut dtg_tensor` -> `dtg_tensor * const *`."""
    match = re.fullmatch(r"\*(const|mut) (.+)", rust)
    if not match:
        return C_OF.get(rust, rust)
    return f"{c_type(match[2])}{' const' if match[1] == 'const' else ''} *"


def parameter(text):
    match = re.fullmatch(r"(.+?)(\w+)(?:\[(\d+)\])?", " ".join(text.split()))
    if not match:
        raise ValueError(f"not a parameter: {text!r}")
    return match[2], rust_type(match[1]), match[3]


def parameters(text):
    text = text.strip()
    return [] if text in ("", "void") else [parameter(part)[:2] for part in text.split(",")]


def declarator_list(body):
    fields = []
    for line in body.split(";"):
        if line.strip():
            name, kind, length = parameter(line)
            fields.append((name, kind, length))
    return fields


def read_macros(text, abi):
    """#define lines; returns the text without any preprocessor line."""
    text = text.replace("\\\n", " ")
    for name, value in re.findall(r"^#define\s+(DTG_\w+)[ \t]+(.+)$", text, re.M):
        value = value.strip()
        if name.endswith("_INIT"):
            abi.inits[name] = value
        elif re.fullmatch(r"-?\d+", value):
            abi.consts.append((name, "i32" if not name.startswith("DTG_VERSION") else "u32", value))
        elif match := re.fullmatch(r"INT64_C\((-?\d+)\)", value):
            abi.consts.append((name, "i64", match[1]))
        elif value == "SIZE_MAX":
            abi.consts.append((name, "usize", "usize::MAX"))
        elif value == "INT32_MIN":
            abi.consts.append((name, "i32", "i32::MIN"))
    return re.sub(r"^#.*$", "", text, flags=re.M)


def read_header(text, abi):
    text = re.sub(r"/\*.*?\*/", " ", text, flags=re.S)
    text = read_macros(text, abi)
    text = re.sub(r"DTG_(BEGIN|END)_DECLS", "", text)
    last_alias = "i32"
    while text := text.strip():
        if match := re.match(r"typedef struct (\w+) \{(.*?)\} \1\s*;", text, re.S):
            abi.structs.append((match[1], declarator_list(match[2])))
        elif match := re.match(r"typedef struct (\w+) \1\s*;", text):
            abi.opaques.append(match[1])
        elif match := re.match(r"struct (\w+)\s*;", text):
            abi.opaques.append(match[1])
        elif match := re.match(r"typedef void \(\*(\w+)\)\(([^)]*)\)\s*;", text):
            abi.callbacks.append((match[1], parameters(match[2]), None))
        elif match := re.match(r"typedef dtg_error \*\(\*(\w+)\)\(([^)]*)\)\s*;", text):
            abi.callbacks.append((match[1], parameters(match[2]), "*mut dtg_error"))
        elif match := re.match(r"typedef (\w+) (\w+)\s*;", text):
            last_alias = match[2]
            abi.aliases.append((match[2], rust_type(match[1])))
        elif match := re.match(r"enum \{(.*?)\}\s*;", text, re.S):
            for name, value in re.findall(r"(\w+)\s*=\s*(-?\d+)", match[1]):
                abi.consts.append((name, last_alias, value))
        elif match := re.match(r"DTG_ERR (\w+)\(([^)]*)\) DTG_NOEXCEPT\s*;", text):
            abi.functions.append((match[1], parameters(match[2]), "*mut dtg_error"))
        elif match := re.match(r"DTG_API ([\w\s*]+?)(\w+)\(([^)]*)\) DTG_NOEXCEPT\s*;", text):
            kind = None if match[1].strip() == "void" else rust_type(match[1])
            abi.functions.append((match[2], parameters(match[3]), kind))
        else:
            raise ValueError("a statement that bindings/generate/rust_sys.py does not know: " + text[:120].split("\n")[0])
        text = text[match.end():]


def read(include):
    abi = Abi()
    for path in sorted(pathlib.Path(include).glob("dtg/*.h")):
        if not path.name.startswith("sugar"):
            try:
                read_header(path.read_text(), abi)
            except ValueError as error:
                raise ValueError(f"{path}: {error}") from error
    known = {name for name, _ in abi.structs}
    abi.opaques = list(dict.fromkeys(name for name in abi.opaques if name not in known))
    return abi


def field_name(name):
    return KEYWORDS.get(name, name)


def field_type(abi, kind, length):
    if kind in {name for name, *_ in abi.callbacks}:
        kind = f"Option<{kind}>"
    return f"[{kind}; {length}]" if length else kind


# ---- the initial values: the C initializer of each _INIT macro, field by field ----

def split_list(text):
    """The top-level parts of `{a, {b, c}, d}`."""
    parts, depth, start = [], 0, 1
    for i, char in enumerate(text):
        depth += (char == "{") - (char == "}")
        if (char == "," and depth == 1) or (char == "}" and depth == 0):
            parts.append(text[start:i].strip())
            start = i + 1
    return parts


def initial(abi, kind, length, value, structs):
    if value in abi.inits:
        value = abi.inits[value]
    if length:
        return f"[{'0' if kind != 'f64' else '0.0'}; {length}]"
    if value.startswith("sizeof("):
        return f"size_of::<{value[7:-1]}>()"
    if value == "NULL":
        if kind in {name for name, *_ in abi.callbacks}:
            return "None"
        return "null()" if kind.startswith("*const") else "null_mut()"
    if value.startswith("{"):
        fields = structs[kind]
        parts = split_list(value)
        parts += ["0"] * (len(fields) - len(parts))
        inner = ", ".join(f"{field_name(n)}: {initial(abi, k, l, v, structs)}" for (n, k, l), v in zip(fields, parts))
        return f"{kind} {{ {inner} }}"
    return value


def emit_bindings(abi):
    out = [
        "// The C ABI of libdtg as Rust declarations. Written by bindings/generate from capi/include/dtg; do not edit.",
        "// The headers are the documentation: what each function does, who owns what, which threads may call it.",
        "",
        "use core::ffi::{c_char, c_void};",
        "use core::mem::size_of;",
        "use core::ptr::{null, null_mut};",
        "",
        "/// What only libdtg looks into: of no size that Rust may rely on, and neither Send, Sync nor Unpin.",
        "#[repr(C)]",
        "struct Opaque([u8; 0], core::marker::PhantomData<(*mut u8, core::marker::PhantomPinned)>);",
        "",
    ]
    for name in abi.opaques:
        out += ["#[repr(C)]", f"pub struct {name}(Opaque);"]
    out.append("")
    out += [f"pub type {name} = {kind};" for name, kind in abi.aliases] + [""]
    for name, args, kind in abi.callbacks:
        inside = ", ".join(f"{field_name(arg)}: {argkind}" for arg, argkind in args)
        out.append(f"pub type {name} = unsafe extern \"C\" fn({inside}){f' -> {kind}' if kind else ''};")
    out.append("")
    out += [f"pub const {name}: {kind} = {value};" for name, kind, value in abi.consts] + [""]
    structs = dict(abi.structs)
    for name, fields in abi.structs:
        derive = "Debug, Clone, Copy" + (", PartialEq, Eq, Hash, Default" if name == "dtg_value" else "")
        out += ["#[repr(C)]", f"#[derive({derive})]", f"pub struct {name} {{"]
        out += [f"    pub {field_name(field)}: {field_type(abi, kind, length)}," for field, kind, length in fields]
        out += ["}", ""]
    for name, fields in abi.structs:
        macro = name.upper() + "_INIT"
        if macro in abi.inits:
            parts = split_list(abi.inits[macro])
            if len(parts) != len(fields):
                raise ValueError(f"{macro} has {len(parts)} values for {len(fields)} fields")
            out += [f"impl {name} {{", "    /// Every field at its default: what the _INIT macro of the header says.", "    pub const INIT: Self = Self {"]
            for (field, kind, length), value in zip(fields, parts):
                out.append(f"        {field_name(field)}: {initial(abi, kind, length, value, structs)},")
            out += ["    };", "}", ""]
    out.append("unsafe extern \"C\" {")
    for name, args, kind in abi.functions:
        inside = ", ".join(f"{field_name(arg)}: {field_type(abi, argkind, None)}" for arg, argkind in args)
        out.append(f"    pub fn {name}({inside}){f' -> {kind}' if kind else ''};")
    out += ["}", ""]
    return "\n".join(out)


def emit_layout(abi):
    out = [
        "// What bindings.rs says, as tables for the test beside this file. Written by bindings/generate; do not edit.",
        "",
        "use core::mem::{offset_of, size_of};",
        "use dtg_sys::*;",
        "",
        "/// A struct: its name, its size, and each field with its offset and size.",
        "pub type Layout = (&'static str, usize, &'static [(&'static str, usize, usize)]);",
        "",
        "const fn width<T, F>(_: fn(&T) -> &F) -> usize {",
        "    size_of::<F>()",
        "}",
        "",
        "pub const LAYOUTS: &[Layout] = &[",
    ]
    for name, fields in abi.structs:
        out.append(f"    (\"{name}\", size_of::<{name}>(), &[")
        for field, _, _ in fields:
            rust = field_name(field)
            out.append(f"        (\"{field}\", offset_of!({name}, {rust}), width(|s: &{name}| &s.{rust})),")
        out.append("    ]),")
    out += ["];", "", "pub const NUMBERS: &[(&str, i128)] = &["]
    out += [f"    (\"{name}\", {name} as i128)," for name, _, _ in abi.consts]
    out += ["];", "", "/// Every function as the C prototype that its Rust declaration means, and whether it takes NULL callbacks.", "pub const PROTOTYPES: &[(&str, *const (), &str)] = &["]
    for name, args, kind in abi.functions:
        inside = ", ".join(c_type(argkind) for _, argkind in args) or "void"
        out.append(f"    (\"{name}\", {name} as *const (), \"{c_type(kind) if kind else 'void'} {name}({inside})\"),")
    out += ["];", ""]
    return "\n".join(out)


def emit(_):
    """Both files; the op table plays no part in them."""
    abi = read(pathlib.Path(__file__).resolve().parents[2] / "capi" / "include")
    return {BINDINGS: emit_bindings(abi), LAYOUT: emit_layout(abi)}
