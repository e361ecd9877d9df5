"""The words of the C ABI in the library's messages, in the words of each language: struct names, functions, constants, NULL. A message that
reaches a program of Go, Rust or Java passes the table that is made here (words_gen.go, words.rs, Words.java); what stands between quotes
is the program's own and stays. A message of the library that holds a word of C for which the table has nothing is an error here."""

import json
import pathlib
import re

import functions

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
LANGUAGES = ("go", "rust", "java")
LITERAL = re.compile(r'"(?:[^"\\\n]|\\.)*"(?:\s*"(?:[^"\\\n]|\\.)*")*')
PIECE = re.compile(r'"(?:[^"\\]|\\.)*"')
WORD = re.compile(r"\b(?:NULL\b|DTG_\w+|dtg_\w+)|\w+_ns\b")
# Names that a user of every language meets as they are: of the environment, of the build.
SAME = {"DTG_KEY_FILE", "DTG_THREADS", "DTG_OPENSSL_INSIDE"}

# In C's words, then in those of Go, Rust and Java; the first that fits is taken, so longer ones come first.
NAMED = "use the named constants"
PHRASES = [
    ("is given with length 0; give its length, or DTG_STRLEN for a string that ends with NUL, or NULL for none",
     "is empty; leave it out", "is empty; leave it out", "is empty; leave it out"),
    ("the value is invalid (0): it was left out, or the call that should have made it has failed",
     "the Value is the zero Value: it was left out, or an earlier call has failed to make it, and Graph.Err says why",
     "the value is none: it was left out, or an earlier call has failed to make it", "the value is none: it was left out, or an earlier call has failed to make it"),
    ("the handle is not an open ", "this is not an open ", "this is not an open ", "this is not an open "),
    (": it was released, or is a handle of another type", ": it was closed", ": it was closed", ": it was closed"),
    (" is NULL; it must point to something", " is nil; give one", " is missing; give one", " is null; give one"),
    (" is NULL; give an open handle", " is nil; make one first", " is missing; make one first", " is null; make one first"),
    ("; give an array of that many, or a count of 0", "; give as many", "; give as many", "; give as many"),
    ("; use the DTG_ constants", "; use the constants of DType", "; use the constants of DType", "; use those of DType"),
    ("use the DTG_ATTR_ constants", NAMED, NAMED, NAMED),
    ("use the DTG_INIT_ constants", NAMED, NAMED, NAMED),
    ("use the DTG_NORMALIZE_ constants", NAMED, NAMED, NAMED),
    ("it is one of DTG_SETTER_...", NAMED, NAMED, NAMED),
    ("DTG_SECURITY_TLS and DTG_SECURITY_CLEAR_FRAMES are known", "TLS and ClearFrames are known",
     "Security::Tls and Security::ClearFrames are known", "ClusterSecurity.TLS and CLEAR_FRAMES are known"),
    (", DTG_INFINITE waits for ever", "", "", ""),
    (", DTG_INFINITE waits for the end", "", "", ""),
    (", and 0 means the session's default", ", and 0 means the session's default", "", ""),
    ("; initialise it with its _INIT macro", "", "", ""),
    ("memory_limit_bytes and spin_ns may not", "the memory limit and the time to spin may not", "the memory limit and the time to spin may not",
     "the memory limit and the time to spin may not"),
    ("dtg_dataset_fit_normalization", "FitNormalization", "fit_normalization", "fitNormalization"),
    ("dtg_nn_minimize_replicated", "MinimizeReplicated", "minimize_replicated", "minimizeReplicated"),
    ("dtg_nn_minimize", "Minimize", "minimize", "minimize"),
    ("dtg_model_set_classes", "SetClasses", "set_classes", "setClasses"),
    (" of its dtg_variable (dtg_model_variable)", " of its Variable", " of its Variable", " of its Variable"),
    ("DTG_OPT_MOMENTUM", "Momentum", "Momentum", "MOMENTUM"),
    ("DTG_OPT_RMSPROP", "RMSProp", "RmsProp", "RMSPROP"),
    ("DTG_OPT_LARS", "LARS", "Lars", "LARS"),
    ("DTG_OPT_FTRL", "FTRL", "Ftrl", "FTRL"),
    ("DTG_OPT_ADAGRAD", "Adagrad", "Adagrad", "ADAGRAD"),
    ("DTG_OPT_ADAFACTOR", "Adafactor", "Adafactor", "ADAFACTOR"),
    ("DTG_OPT_ADAMW", "AdamW", "AdamW", "ADAMW"),
    ("DTG_OPT_ADAM", "Adam", "Adam", "ADAM"),
    ("dtg_tensor_create_strings", "StringTensor", "Tensor::from_strings", "Tensor.of(String...)"),
    (" (dtg_dataset_schema)", " (Dataset.Schema)", " (Dataset::schema)", " (Dataset.schema)"),
    ("dtg_dataset_restart", "Dataset.Restart", "Dataset::restart", "Dataset.restart"),
    ("dtg_dataset_npy", "DatasetNPY", "Dataset::npy", "Dataset.npy"),
    ("dtg_dataset_arrow", "DatasetArrow", "Dataset::arrow", "Dataset.arrow"),
    ("dtg_model_load", "LoadModel", "Model::load", "Model.load"),
    ("dtg_model_restore_from", "Model.RestoreFrom", "Model::restore_from", "Model.restoreFrom"),
    ("dtg_model_save", "Model.Save", "Model::save", "Model.save"),
    ("dtg_model_restore", "Model.Restore", "Model::restore", "Model.restore"),
    ("dtg_function_begin", "Graph.Function", "Graph::function", "Graph.function"),
    ("dtg_run_cancel", "Run.Cancel", "Run::cancel", "RunFuture.cancel"),
]
# Structs whose names are not those of C without the prefix.
STRUCTS = {"dtg_csv_options": ("CSVOptions", "Csv", "CsvOptions"), "dtg_run_args": ("a run", "a run", "a run"),
           "dtg_plan_args": ("a plan", "a plan", "a plan"), "dtg_completion": ("a completion", "a completion", "a completion"),
           "dtg_fit": ("Fit", "Fit", "FitOptions"), "dtg_conv2d": ("Conv2D",) * 3, "dtg_pool2d": ("Pool2D",) * 3}
LAST = [("NULL", "nil", "None", "null")]


def camel(name):
    return "".join(part.capitalize() for part in name.removeprefix("dtg_").split("_"))


def structs():
    found = set()
    for header in functions.HEADERS.glob("*.h"):
        if header.name.startswith("sugar"):
            continue
        found |= set(re.findall(r"^typedef struct (dtg_\w+) \{", header.read_text(), flags=re.M))
    return [(name, *STRUCTS.get(name, (camel(name),) * 3)) for name in sorted(found, key=lambda name: (-len(name), name))]


def table():
    return PHRASES + structs() + LAST


def translated(message, language, rows):
    column = LANGUAGES.index(language) + 1
    for row in rows:
        message = message.replace(row[0], row[column])
    return message


def messages():
    """Every text of the library that may be one, with where it stands."""
    for folder in ("capi", "internal"):
        for path in sorted((ROOT / folder).rglob("*")):
            if path.suffix not in (".cc", ".h") or "include" in path.parts or "examples" in path.parts:
                continue
            text = re.sub(r"^\s*(#.*|//.*)$", "", path.read_text(), flags=re.M).replace("'\"'", "' '")
            for found in LITERAL.finditer(text):
                yield path.relative_to(ROOT), "".join(piece[1:-1] for piece in PIECE.findall(found.group())).replace('\\"', '"')


def check(rows):
    known = set(functions.functions()) | {row[0] for row in rows}
    faults = []
    for path, message in messages():
        for language in LANGUAGES:
            outside = "".join(translated(message, language, rows).split('"')[::2])
            left = [word for word in WORD.findall(outside) if word not in SAME and (not word.startswith("dtg_") or word in known)]
            if left and " " in message:
                faults.append(f"{path}: {left[0]} reaches {language} in \"{message}\"; bindings/generate/words.py has no other word for it")
                break
    if faults:
        raise SystemExit("\n".join(faults))


HEAD = "The words of C in the library's messages, and ours. Generated by bindings/generate; do not edit."


def emit(_):
    rows = table()
    check(rows)
    go = "\n".join(f"\t{json.dumps(row[0])}, {json.dumps(row[1])}," for row in rows)
    rust = "\n".join(f"    ({json.dumps(row[0])}, {json.dumps(row[2])})," for row in rows)
    java = "\n".join(f"    {json.dumps(row[0])}, {json.dumps(row[3])}," for row in rows)
    return {
        "bindings/go/words_gen.go": f"// {HEAD}\n\npackage dtg\n\nvar wordsOfC = []string{{\n{go}\n}}\n",
        "bindings/rust/dtg/src/words.rs": f"//! {HEAD}\n\n#[rustfmt::skip]\npub(crate) const WORDS_OF_C: &[(&str, &str)] = &[\n{rust}\n];\n",
        "bindings/java/src/main/java/org/dtg/Words.java":
            f"// {HEAD}\n\npackage org.dtg;\n\nfinal class Words {{\n  private Words() {{}}\n\n"
            f"  // In pairs.\n  static final String[] OF_C = {{\n{java}\n  }};\n}}\n",
    }
