"""Compiles the examples that the public headers open with, and looks whether the programs that we show free the errors that they print.

An example stands in a header's first comment, indented by three more spaces; what follows two spaces and is no statement is a remark, and
"..." is left to the reader. What it uses without declaring it stands here, in DECLARED. A header whose example is not listed is a finding.
"""

import re
import subprocess
import tempfile

import common

FLAGS = ["-x", "c", "-std=c11", "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-Wno-unused", "-Wno-unused-result", "-fsyntax-only"]
STATEMENT = re.compile(r"(?:dtg_|const |struct |for |while |if |printf|fprintf|\}|[\w.]+ = )")
MODEL = "dtg_graph *graph; dtg_model *model; dtg_session *session; dtg_value x, y, labels, logits, loss, no_weights = {0};"
TRAINING = MODEL + "dtg_optimizer optimizer; dtg_training training;"

DECLARED = {
    "arrow.h": "dtg_dataset *data;",
    "base.h": "dtg_graph *graph;",
    "checkpoint.h": MODEL + "dtg_checkpoint *checkpoint; dtg_dataset *data; int64_t step, steps;",
    "cluster.h": "",
    "coordinator.h": MODEL + "const char *target; dtg_coordinator *coordinator; dtg_run_args step;"
                      "dtg_closure *closure; dtg_value none; const dtg_tensor *batch[2]; dtg_schedule_options how; dtg_remote_value *value;",
    "data.h": "const char *files[2]; dtg_dataset *data; dtg_tensor *tensors[2]; int32_t more; uint64_t seed;",
    "function.h": "dtg_graph *graph; dtg_value x, y, v, p, two, hundred, result;",
    "graph.h": "dtg_graph *graph; dtg_value a, b, y;",
    "group.h": "dtg_server *server; dtg_group *group; dtg_tensor *gradient;",
    "layers.h": MODEL + "dtg_value words, lengths;",
    "losses.h": TRAINING,
    "map.h": "dtg_graph *graph; dtg_dataset *data;",
    "mesh.h": TRAINING + "const char *devices[8]; dtg_mesh *mesh; dtg_value ids, out;",
    "metrics.h": MODEL,
    "nn.h": TRAINING + "uint64_t seed; dtg_dense layer; dtg_value init;",
    "optimizers.h": TRAINING,
    "replicas.h": TRAINING.replace("loss,", "loss[2],") + "enum { N = 2 };",
    "server.h": MODEL + "dtg_task self; dtg_server_options options; dtg_cluster *cluster; dtg_server *server;",
    "session.h": MODEL + "dtg_run_args args; dtg_cq *queue; dtg_run *run; dtg_completion done; size_t count; dtg_tensor *tensor;",
    "sharded.h": MODEL + "dtg_value ids, vectors;",
    "strategy.h": "dtg_per_replica x, loss;" + TRAINING.replace("x, y, labels, logits, loss, ", "") + "dtg_strategy *strategy; dtg_strategy_options options; dtg_value images, mean; dtg_replica_fn build;"
                  "dtg_server *server; dtg_group *group; dtg_cluster *cluster; dtg_task task; dtg_server_options here;",
    "sugar.h": MODEL + "dtg_value three, none; dtg_tensor *tensor; float value;",
    "sugar_ops.h": "dtg_graph *graph; dtg_value a, b, product;",
    "tensor.h": "float floats[6]; dtg_tensor *tensor;",
    "trainer.h": MODEL + "dtg_value feeds[2]; dtg_metric_values accuracy; dtg_optimizer adam; dtg_trainer *trainer; dtg_dataset *train, *test; dtg_fit_callbacks callbacks;",
}


def statements(header):
    """The example of a header as a program would have it; "" where it has none."""
    comment = re.search(r"/\*.*?\*/", header.read_text(), re.S).group(0)
    code = []
    for line in re.findall(r"^ \*   ( *\S.*)$", comment, re.M):
        pieces = [piece for piece in re.split(r" {2,}", line.strip()) if piece.endswith((";", "{", "}")) and STATEMENT.match(piece)]
        code += [re.sub(r"\.\.\.(?: [^;{}]*? \.\.\.)?;?", ";", piece.replace("(...)", "(;;)")) for piece in pieces]
    return "\n".join(code) if any("(" in line for line in code) else ""


def check_headers(arguments, findings):
    headers = common.files(arguments.source, "capi/include/dtg/*.h")
    with tempfile.NamedTemporaryFile("w", suffix=".c") as program:
        for header in headers:
            code = statements(header)
            if not code and header.name in DECLARED:
                findings.add(header, 0, "its example is not found", "it stands in the first comment, indented by three more spaces")
            if not code:
                continue
            if header.name not in DECLARED:
                findings.add(header, 0, "has an example that this test does not know", "add what it uses to DECLARED")
                continue
            program.seek(0)
            program.truncate()
            program.write("#include <dtg/dtg.h>\n#include <dtg/arrow.h>\n#include <dtg/sugar.h>\n#include <dtg/sugar_ops.h>\n#include <stdio.h>\n"
                          "struct ArrowArrayStream { int of_the_other_library; };\n"
                          f"void example(void);\nvoid example(void) {{\n{DECLARED[header.name]}\n{code}\n}}\n")
            program.flush()
            result = subprocess.run([arguments.cc, *FLAGS, f"-I{arguments.source / 'capi/include'}", program.name], capture_output=True, text=True,
                                    check=False)
            if result.returncode != 0:
                findings.add(header, 0, "its example does not compile", "\n    ".join(result.stderr.strip().splitlines()[:12]))


def check_errors(root, findings):
    """Whoever prints an error frees it. What is shown is copied."""
    programs = [(path, path.read_text()) for path in common.files(root, "capi/examples/**/*.c")]
    for page in [root / "README.md", *common.files(root, "capi/*.md")]:
        programs.append((page, "\n".join(re.findall(r"^```c\n(.*?)^```$", page.read_text(), re.S | re.M))))
    for path, text in programs:
        if "dtg_error_message" in text and "dtg_error_release" not in text:
            findings.add(path, 0, "prints an error and does not free it", "dtg_error_release, which takes NULL")
    return len(programs)


def main():
    arguments = common.arguments()
    findings = common.Findings(arguments.source)
    check_headers(arguments, findings)
    count = check_errors(arguments.source, findings)
    findings.finish(f"examples, of {len(DECLARED)} headers and {count} programs and pages")


if __name__ == "__main__":
    main()
