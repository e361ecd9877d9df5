"""Holds the dtg command to what its help says: answers, exit codes, and above all how `dtg run` starts, shows and ends processes.

Usage: cli_test.py DTG    where DTG is the command. Needs python alone; the programs that it launches are shell scripts.
"""

import hashlib
import json
import os
import pathlib
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import tempfile
import time
import unittest

DTG = sys.argv[1] if len(sys.argv) > 1 else "dtg"
LIMIT = 60  # seconds for any one command

# A "program" for tests: a worker and a ps each do what the test gives them as a script.
BY_JOB = 'case "$TF_CONFIG" in *\'"type": "ps"\'*) {ps} ;; *\'"index": 0}}\'*) {chief} ;; *) {other} ;; esac'


def dtg(*words, **options):
    options.setdefault("timeout", LIMIT)
    return subprocess.run([DTG, *words], check=False, capture_output=True, text=True, **options)


def script(ps=":", chief=":", other=None):
    return ["sh", "-c", BY_JOB.format(ps=ps, chief=chief, other=other or chief)]


def gone(pid):
    """True when the process has ended, or is only waited for."""
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] in "ZX"
    except FileNotFoundError:
        return True


def wait_until(condition, what):
    end = time.monotonic() + LIMIT
    while not condition():
        if time.monotonic() > end:
            raise AssertionError(f"{what} did not happen within {LIMIT} s")
        select.select([], [], [], 0.01)


def safetensors(folder, name, tensors, metadata):
    """A file of that format, written by hand; gives its path."""
    header, data = {"__metadata__": metadata}, b""
    for key, (dtype, shape, content) in tensors.items():
        header[key] = {"dtype": dtype, "shape": shape, "data_offsets": [len(data), len(data) + len(content)]}
        data += content
    text = json.dumps(header).encode()
    path = pathlib.Path(folder, name)
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)
    return str(path)


def checkpoint_set(folder, step):
    """A set as the format's description has it, written by hand; gives its name."""
    name = f"step-{step:012d}-0000000001000000"
    path = pathlib.Path(folder, name)
    path.mkdir()
    data = struct.pack("<q2f", step, 1, 2)
    header = json.dumps({"global_step": {"dtype": "I64", "shape": [], "data_offsets": [0, 8]},
                         "w": {"dtype": "F32", "shape": [2], "data_offsets": [8, 16]}}).encode()
    shard = struct.pack("<Q", len(header)) + header + data
    (path / "shard.safetensors").write_bytes(shard)
    rows = [{"name": "global_step", "dtype": "I64", "shape": [], "shard": 0, "crc32c": crc32c(data[:8]), "role": "step"},
            {"name": "w", "dtype": "F32", "shape": [2], "shard": 0, "crc32c": crc32c(data[8:]), "role": "variable"}]
    manifest = json.dumps({"sha256": "0" * 64, "format": "dtg checkpoint", "version": 1, "step": step, "save": name[-16:],
                           "shards": [{"file": "shard.safetensors", "bytes": len(shard), "sha256": hashlib.sha256(shard).hexdigest()}],
                           "tensors": rows, "rows": [], "metadata": {}}, separators=(",", ":"))
    (path / "manifest.json").write_text(manifest.replace("0" * 64, hashlib.sha256(manifest.encode()).hexdigest(), 1))
    return name


def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    return f"{crc ^ 0xFFFFFFFF:08x}"


class Answers(unittest.TestCase):
    def test_help_and_mistakes(self):
        for command in ("version", "ops", "graph", "checkpoint", "report", "run", "keygen", "server", "status", "worker"):
            told = dtg(command, "--help")
            self.assertEqual(told.returncode, 0)
            self.assertIn(f"usage: dtg {command}", told.stdout)
            self.assertIn("Exit codes:", told.stdout)
            wrong = dtg(command, "--no-such-option")
            self.assertEqual((wrong.returncode, wrong.stdout), (2, ""))
            self.assertIn("--help", wrong.stderr)
        self.assertEqual(dtg("--help").returncode, 0)
        self.assertEqual(dtg().returncode, 2)
        self.assertIn('did you mean ops?', dtg("opps").stderr)
        self.assertIn('did you mean run?', dtg("rnu").stderr)
        self.assertIn("did you mean --json?", dtg("version", "--jsn").stderr)
        for words in (["run", "--frob"], ["ops", "Nope"], ["version", "--x"], ["xyz"]):
            self.assertNotIn("did you mean", dtg(*words).stderr)

    def test_version(self):
        self.assertRegex(dtg("version").stdout, r"^dtg \d+\.\d+\.\d+, ABI \d+\.\d+")
        told = json.loads(dtg("version", "--json").stdout)
        self.assertEqual(told["features"], {"cpu": True, "cuda": False, "tls": True})
        self.assertIn("features cpu tls", dtg("version").stdout)

    def test_ops(self):
        table = json.loads(dtg("ops", "--json").stdout)
        self.assertIn("MatMul", [op["name"] for op in table])
        self.assertIn("MatMul(a: T, b: T)", dtg("ops").stdout)
        self.assertEqual(json.loads(dtg("ops", "MatMul", "--json").stdout)["name"], "MatMul")
        # Whoever asks for JSON reads errors as JSON, too.
        for words in (["ops", "Nope"], ["ops", "--frob"], ["graph", "/nowhere"], ["report", "/nowhere"], ["nothing"]):
            told = json.loads(dtg(*words, "--json").stderr)["error"]
            self.assertTrue(told["code"] and told["message"], words)
        wrong = dtg("ops", "MatMull")
        self.assertEqual(wrong.returncode, 1)
        self.assertIn("did you mean MatMul?", wrong.stderr)
        # What is TensorFlow's is no slip.
        wrong = dtg("ops", "TileGrad")
        self.assertEqual(wrong.returncode, 1)
        self.assertIn('TensorFlow\'s op "TileGrad" is not in this library', wrong.stderr)
        self.assertNotIn("did you mean", wrong.stderr)
        self.assertEqual(json.loads(dtg("ops", "TileGrad", "--json").stderr)["error"]["code"], "UNIMPLEMENTED")

    def test_graph(self):
        path = str(pathlib.Path(__file__).resolve().parents[2] / "fuzz" / "corpus" / "graph" / "sum")
        self.assertIn("3 nodes", dtg("graph", path).stdout)
        told = json.loads(dtg("graph", path, "--json").stdout)
        self.assertEqual((told["node_count"], len(told["nodes"]), sum(told["ops"].values()), sum(told["devices"].values())), (3, 3, 3, 3))
        self.assertEqual(told["ops"]["Const"], 2)
        self.assertEqual(dtg("graph", path, "--nodes").stdout.count(" = "), 3)

    def test_graph_plan(self):
        corpus = pathlib.Path(__file__).resolve().parents[2] / "fuzz" / "corpus" / "graph"
        told = dtg("graph", str(corpus / "sum"), "--plan")
        self.assertEqual((told.returncode, told.stderr), (0, ""))
        self.assertRegex(told.stdout, r"(?s)^== order\n.*\n== program\nprogram: \d+ segments?, ")
        everything = dtg("graph", str(corpus / "sum"), "--plan", "--pass", "all")
        self.assertEqual(re.findall(r"^== (\w+)$", everything.stdout, re.M),
                         ["prune", "infer", "fold", "simplify", "place", "fuse", "commit", "split", "order", "program"])
        one = dtg("graph", str(corpus / "sum"), "--plan", "--pass", "prune")
        self.assertNotIn("==", one.stdout)
        self.assertIn("== prune\n" + one.stdout + "== infer\n", everything.stdout)
        pages = json.loads(dtg("graph", str(corpus / "sum"), "--plan", "--pass", "prune", "--json").stdout)["passes"]
        self.assertEqual([(page["pass"], "\n".join(page["text"]) + "\n") for page in pages], [("prune", one.stdout)])
        self.assertIn("--dim", dtg("graph", str(corpus / "model"), "--plan").stderr)  # 1 does not fit into its product
        self.assertIn("/job:ps/task:0", dtg("graph", str(corpus / "model"), "--plan", "--dim", "2").stderr)  # made for a cluster
        wrong = dtg("graph", str(corpus / "sum"), "--plan", "--pass", "polish")
        self.assertEqual((wrong.returncode, wrong.stdout), (2, ""))
        self.assertIn("simplify, place, fuse, commit, split, order, program", wrong.stderr)
        self.assertEqual(dtg("graph", str(corpus / "sum"), "--pass", "prune").returncode, 2)
        self.assertEqual(dtg("graph", str(corpus / "sum"), "--plan", "--dim", "-1").returncode, 2)

    def test_report(self):
        def run(folder, name, losses, ended):
            path = pathlib.Path(folder, name)
            path.mkdir()
            rows = [{"epoch": i + 1, "step": 3 * (i + 1), "loss": loss, "val_loss": None} for i, loss in enumerate(losses)]
            path.joinpath("metrics.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows) + '{"epoch": 9')
            if ended:
                path.joinpath("summary.json").write_text(json.dumps({"outcome": "done", "why": "", "epochs": len(rows), "history": rows[:ended]}))
                path.joinpath("report.html").write_text('<html><script id="data" type="application/json">[]</script><p>rest</p>')
            return str(path)

        with tempfile.TemporaryDirectory() as folder:
            nasty = "<b>"
            one, two = run(folder, nasty, [0.5, 0.25], 2), run(folder, "two", [0.75, 0.5, 0.375], 0)
            words = dtg("report", one, two + "/").stdout.splitlines()
            self.assertEqual([line.split() for line in words], [["run", "outcome", "epochs", "steps", "best", "of", "loss", "val_loss"],
                                                                [nasty, "done", "2", "6", "0.25"], ["two", "running", "3", "9", "0.375"]])
            page = os.path.join(folder, "all.html")
            told = json.loads(dtg("report", one, two, "--json", "--html", page).stdout)["runs"]
            self.assertEqual([run["name"] for run in told], [nasty, "two"])
            self.assertEqual(told[1]["history"][2]["loss"], 0.375)
            text = pathlib.Path(page).read_text()
            inside = re.search('<script id="data" type="application/json">(.*)</script><p>rest</p>$', text).group(1)
            self.assertEqual(json.loads(inside), told)
            self.assertNotIn("<b>", text)
            # What its best is of, and a row that cannot be read, which costs the others nothing.
            four = run(folder, "four", [3, 2, 1], 0)
            lines = pathlib.Path(four, "metrics.jsonl").read_text().splitlines(keepends=True)
            pathlib.Path(four, "metrics.jsonl").write_text(lines[0] + "?" + "".join(lines[1:]))
            pathlib.Path(four, "summary.json").write_text(json.dumps({"outcome": "running", "best": 1, "monitor": "loss", "history": []}))
            told = dtg("report", four)
            self.assertEqual(told.stdout.splitlines()[1].split(), ["four", "running", "3", "9", "1", "loss", "1"])
            self.assertIn("metrics.jsonl: 1 of its lines is damaged", told.stderr)
            # One that went on after its end has more rows than its summary.
            three = run(folder, "three", [3, 2, 1], 2)
            self.assertIn("running", dtg("report", three).stdout)
            # Nobody has promised that a fit wrote these: no crash, and nothing that a terminal would follow.
            deep = '{"outcome": "done", "history": [], "x": ' + "[" * 200000 + "]" * 200000 + "}"
            for i, text in enumerate(('{"outcome": "done", "history": [1]}', '{"outcome": "done", "history": ["x"]}', '{"history": [[]]}', deep)):
                odd = run(folder, f"odd{i}", [], 0)
                pathlib.Path(odd, "summary.json").write_text(text)
                for words in (["report", odd], ["report", odd, "--json"]):
                    self.assertEqual(dtg(*words).returncode, 0, words)
            evil = run(folder, "e\x1b[2J", [2], 0)
            pathlib.Path(evil, "metrics.jsonl").write_text('{"epoch": 1, "step": 18446744073709551615, "\\u001b]0;m\\u0007": 1}\n')
            told = dtg("report", evil)
            self.assertEqual(told.returncode, 0)
            self.assertFalse(set(told.stdout) & set("\x1b\x07"), told.stdout)
            self.assertIn("18446744073709551615", told.stdout)
            for words, code in ((["report"], 2), (["report", folder], 1), (["report", two, "--html", page], 1),
                                (["report", one, "--html", folder + "/no/where.html"], 1)):
                failed = dtg(*words)
                self.assertEqual(failed.returncode, code, failed)
                self.assertIn("dtg: ", failed.stderr)

    def test_checkpoint(self):
        with tempfile.TemporaryDirectory() as folder:
            name = checkpoint_set(folder, 7)
            self.assertIn(name + "  whole", dtg("checkpoint", "list", folder).stdout)
            listed = json.loads(dtg("checkpoint", "list", folder, "--json").stdout)["sets"]
            self.assertEqual([(row["name"], row["valid"], row["tensors"]) for row in listed], [(name, True, 2)])
            self.assertIn("w  float32[2]", dtg("checkpoint", "show", folder, "--tensors").stdout)
            told = json.loads(dtg("checkpoint", "show", f"{folder}/{name}", "--json").stdout)
            self.assertEqual((told["step"], [row["role"] for row in told["tensors"]]), (7, ["step", "variable"]))
            made = dtg("checkpoint", "reshard", folder, "--step", "7", "--shards", "2", "--into", f"{folder}/more")
            self.assertEqual((made.returncode, made.stderr), (0, ""))
            self.assertTrue(pathlib.Path(made.stdout.strip(), "manifest.json").exists())
            self.assertEqual(len(json.loads(dtg("checkpoint", "show", made.stdout.strip(), "--json").stdout)["shards"]), 2)
            self.assertEqual(dtg("checkpoint", "verify", f"{folder}/more").returncode, 0)
            self.assertEqual(dtg("checkpoint", "verify", folder).returncode, 0)
            shard = next(pathlib.Path(folder, name).glob("*.safetensors"))
            shard.write_bytes(shard.read_bytes()[:-1] + b"x")
            broken = dtg("checkpoint", "verify", folder)
            self.assertEqual(broken.returncode, 1)
            self.assertIn('tensor "w"', broken.stdout)
            self.assertIn("a set is damaged", broken.stderr)
            problems = json.loads(dtg("checkpoint", "verify", folder, "--json").stdout)["sets"][0]["problems"]
            self.assertEqual([row["file"] for row in problems], [shard.name])
            self.assertIn("there is no set of step 8", dtg("checkpoint", "show", folder, "--step", "8").stderr)

    def test_checkpoint_mistakes(self):
        missing = dtg("checkpoint", "list", "/nowhere")
        self.assertEqual((missing.returncode, missing.stdout), (1, ""))
        self.assertIn("NOT_FOUND", missing.stderr)
        self.assertEqual(json.loads(dtg("checkpoint", "verify", "/nowhere", "--json").stderr)["error"]["code"], "NOT_FOUND")
        self.assertEqual(dtg("checkpoint", "list").returncode, 2)
        self.assertEqual(dtg("checkpoint", "reshard", "/tmp").returncode, 2)
        self.assertEqual(dtg("checkpoint", "list", "/tmp", "--shards", "2").returncode, 2)
        self.assertIn("did you mean verify?", dtg("checkpoint", "verfy", "/tmp").stderr)

    def test_names_that_are_not_utf8(self):
        """A file may be called anything; what is said about it as JSON is JSON."""
        with tempfile.TemporaryDirectory() as folder:
            name = os.fsencode(folder) + b"/\xff\xfe.graph"
            with open(name, "wb") as out:
                out.write(b"no graph")
            for words in (["graph", "--json"], ["keygen", "--json"]):
                told = subprocess.run([DTG, *words, name], check=False, capture_output=True, timeout=LIMIT)
                self.assertGreaterEqual(told.returncode, 1, told)  # refused, and not by a signal
                for line in told.stdout.decode().splitlines():
                    json.loads(line)
            fresh = os.fsencode(folder) + b"/\xff.key"
            made = subprocess.run([DTG, "keygen", "--json", fresh], check=True, capture_output=True, timeout=LIMIT)
            json.loads(made.stdout.decode())
            self.assertTrue(os.path.exists(fresh))

    def test_graph_that_is_none(self):
        self.assertEqual(dtg("graph").returncode, 2)
        self.assertIn("cannot read", dtg("graph", "/nowhere").stderr)
        self.assertIn("cannot read", dtg("graph", "/").stderr)
        with tempfile.NamedTemporaryFile() as file:
            file.write(b"not a graph")
            file.flush()
            told = dtg("graph", file.name)
            self.assertEqual((told.returncode, told.stdout), (1, ""))
            self.assertIn("DATA_LOSS", told.stderr)
            self.assertEqual(json.loads(dtg("graph", file.name, "--json").stderr)["error"]["code"], "DATA_LOSS")

    def test_graph_of_a_model(self):
        graph = (pathlib.Path(__file__).resolve().parents[2] / "fuzz" / "corpus" / "graph" / "sum").read_bytes()
        nodes = json.loads(dtg("graph", str(pathlib.Path(__file__).resolve().parents[2] / "fuzz" / "corpus" / "graph" / "sum"),
                               "--json").stdout)["nodes"]
        signature = {"format": 1, "seed": "1", "variables": [], "inputs": [],
                     "outputs": [{"name": "total", "value": nodes[-1]["name"] + ":0"}]}
        with tempfile.TemporaryDirectory() as folder:
            model = safetensors(folder, "model.dtg", {"dtg.graph": ("U8", [len(graph)], graph)}, {"dtg.signature": json.dumps(signature)})
            told = dtg("graph", model)
            self.assertEqual(told.returncode, 0, told.stderr)
            self.assertIn("3 nodes", told.stdout)
            self.assertIn("total", told.stdout)
            self.assertEqual(json.loads(dtg("graph", model, "--json").stdout)["outputs"][0]["name"], "total")
            self.assertEqual(dtg("graph", model, "--plan").returncode, 0)
            weights = safetensors(folder, "weights.safetensors", {"w": ("F32", [2], struct.pack("<2f", 1, 2))}, {})
            told = dtg("graph", weights)
            self.assertEqual((told.returncode, told.stdout), (1, ""))
            self.assertIn("dtg_model_export", told.stderr)

    def test_no_colors_into_pipes(self):
        for words in (["ops", "MatMul"], ["nonsense"], ["run", "--local", "--", "echo", "x"]):
            told = dtg(*words, env=dict(os.environ, TERM="xterm"))
            self.assertNotIn("\033", told.stdout + told.stderr)


class Clusters(unittest.TestCase):
    def setUp(self):
        place = tempfile.TemporaryDirectory()  # with mode 0700, as sockets want it
        self.addCleanup(place.cleanup)
        self.place = place.name

    def serve(self, *words, preexec_fn=None, **environment):
        """Starts `dtg server` and gives it and where it listens."""
        process = subprocess.Popen([DTG, "server", "--json", *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                   env=dict(os.environ, **environment), preexec_fn=preexec_fn)
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.stderr.close)
        self.addCleanup(process.kill)
        line = process.stdout.readline()
        self.assertTrue(line, process.stderr.read() if not line else "")
        return process, json.loads(line)["target"]

    def end(self, process, number):
        process.send_signal(number)
        self.assertEqual(process.wait(LIMIT), 0)

    def test_keygen(self):
        path = os.path.join(self.place, "job.key")
        self.assertEqual(json.loads(dtg("keygen", path, "--json").stdout), {"key_file": path})
        self.assertEqual((os.stat(path).st_mode & 0o777, os.stat(path).st_size), (0o600, 32))
        again = dtg("keygen", path)
        self.assertEqual(again.returncode, 1)
        self.assertIn("ALREADY_EXISTS", again.stderr)

    def test_two_servers(self):
        spec = f"ps=unix:{self.place}/ps0;worker=unix:{self.place}/w0"
        ps, target = self.serve("--cluster", spec, "--job", "ps")
        config = {"cluster": {"ps": [f"unix:{self.place}/ps0"], "worker": [f"unix:{self.place}/w0"]}, "task": {"type": "worker", "index": 0}}
        worker, _ = self.serve("--tf-config", TF_CONFIG=json.dumps(config))
        told = json.loads(dtg("status", target, "--json").stdout)
        self.assertEqual(sorted(task["task"] for task in told), ["/job:ps/replica:0/task:0", "/job:worker/replica:0/task:0"])
        self.assertIn("variables 0, 0 B", dtg("status", target).stdout)
        self.end(ps, signal.SIGTERM)
        missing = dtg("status", f"unix:{self.place}/w0", "--timeout", "2", "--json")
        self.assertEqual(missing.returncode, 1)
        self.assertIn("1 of 2 tasks did not answer", missing.stderr)
        told = {task["task"]: task.get("error", "") for task in json.loads(missing.stdout)}
        self.assertEqual(told["/job:worker/replica:0/task:0"], "")
        self.assertIn("ps0", told["/job:ps/replica:0/task:0"])
        self.end(worker, signal.SIGINT)

    def test_signals(self):
        # Those that mean nothing leave it as it is, answering, and ready to end by those that end it.
        for last in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            ps, target = self.serve("--cluster", f"ps=unix:{self.place}/ps0")
            for stray in (signal.SIGUSR1, signal.SIGWINCH, signal.SIGUSR2, signal.SIGUSR1):
                ps.send_signal(stray)
                time.sleep(0.02)  # one after the other, as equal ones become one
            self.assertIn("variables 0, 0 B", dtg("status", target).stdout)
            start = time.monotonic()
            self.end(ps, last)
            self.assertLess(time.monotonic() - start, LIMIT / 4)
        self.assertFalse(os.path.exists(f"{self.place}/ps0"), "the server did not take its socket away")

    def test_a_server_under_nohup(self):
        ps, target = self.serve("--cluster", f"ps=unix:{self.place}/ps0", preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN))
        ps.send_signal(signal.SIGHUP)
        self.assertIn("variables 0, 0 B", dtg("status", target).stdout)
        self.end(ps, signal.SIGTERM)

    def test_tcp_with_a_key_and_in_the_clear(self):
        key, other = os.path.join(self.place, "job.key"), os.path.join(self.place, "other.key")
        dtg("keygen", key)
        dtg("keygen", other)
        ps, target = self.serve("--cluster", "ps=127.0.0.1:0", "--key-file", key)
        self.assertIn("tls", dtg("status", target, "--key-file", key).stdout)
        self.assertEqual(dtg("status", target, "--key-file", other, "--timeout", "2").returncode, 1)
        self.assertEqual(dtg("status", target, "--key-file", key, "--clear-frames", "--timeout", "2").returncode, 1)
        self.end(ps, signal.SIGTERM)
        ps, target = self.serve("--cluster", "ps=127.0.0.1:0", "--key-file", key, "--clear-frames")
        self.assertIn("FRAMES IN THE CLEAR", dtg("status", target, "--key-file", key, "--clear-frames").stdout)
        self.end(ps, signal.SIGTERM)

    def test_the_key_of_the_environment(self):
        key, other, none = (os.path.join(self.place, name) for name in ("job.key", "other.key", "none.key"))
        dtg("keygen", key)
        dtg("keygen", other)
        # An address that others can reach asks for a key.
        ps, target = self.serve("--cluster", "ps=0.0.0.0:0", DTG_KEY_FILE=key)
        target = target.replace("0.0.0.0", "127.0.0.1")
        with_key = lambda name, *words: dtg("status", target, *words, "--timeout", "2", env={**os.environ, "DTG_KEY_FILE": name})
        self.assertIn("tls", with_key(key).stdout)
        wrong = with_key(other)
        self.assertEqual(wrong.returncode, 1)
        self.assertIn("the same job key", wrong.stderr)
        self.assertIn("none.key", with_key(none).stderr)
        # What the command line says goes before.
        self.assertIn("tls", with_key(other, "--key-file", key).stdout)
        self.end(ps, signal.SIGTERM)

    def test_mistakes(self):
        self.assertEqual(dtg("server").returncode, 2)
        self.assertEqual(dtg("status").returncode, 2)
        self.assertEqual(dtg("server", "--cluster", "ps=unix:/a", "--tf-config").returncode, 2)
        for words in (["server", "--cluster", "nonsense"], ["server", "--cluster", "ps=unix:/a", "--job", "chief"], ["status", "nonsense"]):
            told = dtg(*words)
            self.assertIn("INVALID_ARGUMENT", told.stderr)
            self.assertEqual(told.returncode, 2, told.stderr)
        self.assertIn("TF_CONFIG names no cluster", dtg("server", "--tf-config", env={k: v for k, v in os.environ.items() if k != "TF_CONFIG"}).stderr)
        self.assertIn("dtg keygen", dtg("server", "--cluster", "ps=0.0.0.0:0").stderr)
        self.assertIn("UNAVAILABLE", dtg("status", f"unix:{self.place}/none", "--timeout", "1").stderr)


class Launching(unittest.TestCase):
    def test_environment(self):
        told = dtg("run", "--local", "--ps", "1", "--workers", "2", "--", "sh", "-c", 'echo "$TF_CONFIG"; echo "progress $DTG_PROGRESS $DTG_CHANNEL"')
        self.assertEqual(told.returncode, 0, told.stderr)
        lines = dict(line.split(" | ") for line in told.stdout.splitlines() if "{" in line)
        configs = {name.strip(): json.loads(text) for name, text in lines.items()}
        self.assertEqual(sorted(configs), ["ps/0", "worker/0", "worker/1"])
        for name, config in configs.items():
            self.assertEqual(f"{config['task']['type']}/{config['task']['index']}", name)
            self.assertEqual(config["cluster"], configs["ps/0"]["cluster"])
        cluster = configs["ps/0"]["cluster"]
        addresses = cluster["worker"] + cluster["ps"]
        self.assertEqual(len(set(addresses)), 3)
        self.assertTrue(all(address.startswith("unix:/") for address in addresses))
        self.assertIn("progress 1 unix", told.stdout)
        self.assertFalse(os.path.exists(os.path.dirname(addresses[0][5:])), "the private directory is still there")

    def test_private_directory(self):
        show = 'd=${TF_CONFIG#*unix:}; d=${d%%/worker-0*}; stat -c "%a %u" "$d"; echo "$d"'
        with tempfile.TemporaryDirectory() as place:
            told = dtg("run", "--local", "--ps", "0", "--", "sh", "-c", show, env=dict(os.environ, XDG_RUNTIME_DIR=place))
            self.assertIn(f"700 {os.geteuid()}", told.stdout)
            self.assertIn(place, told.stdout)
            self.assertEqual(os.listdir(place), [], "the launch left something behind")
            # Where others may look, nothing of the cluster is kept.
            os.chmod(place, 0o755)
            told = dtg("run", "--local", "--ps", "0", "--", "sh", "-c", show, env=dict(os.environ, XDG_RUNTIME_DIR=place, TMPDIR="/tmp"))
            self.assertNotIn(place, told.stdout)
            # A path that no socket can have is passed over.
            deep = os.path.join(place, "x" * 100)
            os.mkdir(deep)
            told = dtg("run", "--local", "--ps", "0", "--", "sh", "-c", show, env=dict(os.environ, XDG_RUNTIME_DIR="", TMPDIR=deep))
            self.assertIn("worker/0 | /tmp/dtg-", told.stdout)

    def test_tcp_only_when_asked(self):
        told = dtg("run", "--local", "--workers", "2", "--channel", "tcp", "--clear-frames", "--", "sh", "-c", 'echo "$DTG_CLEAR_FRAMES $TF_CONFIG"')
        self.assertEqual(told.returncode, 0)
        ports = set(re.findall(r"127\.0\.0\.1:(\d+)", told.stdout))
        self.assertEqual(len(ports), 3)
        self.assertIn("| 1 {", told.stdout)
        self.assertNotIn("unix:", told.stdout)
        self.assertEqual(dtg("run", "--local", "--clear-frames", "--", "true").returncode, 2)
        self.assertEqual(dtg("run", "--local", "--channel", "smoke", "--", "true").returncode, 2)

    def test_mistakes(self):
        self.assertIn("--local", dtg("run", "--", "true").stderr)
        self.assertEqual(dtg("run", "--", "true").returncode, 2)
        self.assertEqual(dtg("run", "--local").returncode, 2)
        self.assertEqual(dtg("run", "--local", "--workers", "0", "--", "true").returncode, 2)
        self.assertEqual(dtg("run", "--local", "--workers", "many", "--", "true").returncode, 2)
        absent = dtg("run", "--local", "--", "/no/such/program")
        self.assertEqual(absent.returncode, 127)
        self.assertIn("/no/such/program", absent.stderr)
        self.assertEqual(dtg("run", "--local", "--", "/etc/passwd").returncode, 126)

    def test_logs(self):
        with tempfile.TemporaryDirectory() as place:
            told = dtg("run", "--local", "--workers", "2", "--log-dir", f"{place}/logs", "--",
                       *script(ps="echo serving", chief=r"printf 'half\rwhole\nlast'; echo trouble >&2"))
            self.assertEqual(told.returncode, 0)
            self.assertIn("ps/0     | serving\n", told.stdout)
            self.assertIn("worker/1 | whole\n", told.stdout)
            self.assertIn("worker/1 | last\n", told.stdout)
            self.assertNotIn("half", told.stdout)
            self.assertIn("worker/0 | trouble\n", told.stderr)
            log = pathlib.Path(place, "logs", "worker-0.log").read_text().splitlines()
            self.assertEqual(sorted(log), ["last", "trouble", "whole"])
            self.assertIn("--log-dir", dtg("run", "--local", "--log-dir", "/proc/none", "--", "true").stderr)

    def test_much_text(self):
        told = dtg("run", "--local", "--ps", "0", "--workers", "2", "--", "sh", "-c", "seq 1 50000")
        self.assertEqual(told.returncode, 0)
        for worker in ("worker/0", "worker/1"):
            self.assertEqual([line.split(" | ")[1] for line in told.stdout.splitlines() if line.startswith(worker)], [str(i) for i in range(1, 50001)])

    def test_json(self):
        told = dtg("run", "--local", "--json", "--", *script(ps="exit 0", chief="echo hello; exit 3"))
        report = json.loads(told.stdout)
        self.assertEqual((told.returncode, report["exit_code"]), (3, 3))
        self.assertEqual({task["task"]: task["exit_code"] for task in report["tasks"]}["worker/0"], 3)
        self.assertIn("hello", told.stderr)


class Ending(unittest.TestCase):
    def start(self, *words, program, place=None):
        """Starts a launch whose tasks print their process ids, and reads those."""
        if not place:
            folder = tempfile.TemporaryDirectory()  # a launcher that is killed leaves its directory behind
            self.addCleanup(folder.cleanup)
            place = folder.name
        self.place = place
        process = subprocess.Popen([DTG, "run", "--local", *words, "--", *program], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                   env=dict(os.environ, XDG_RUNTIME_DIR=place))
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.stderr.close)
        return process

    def pids(self, process, count):
        found = {}
        while len(found) < count:
            line = process.stdout.readline()
            self.assertTrue(line, "the launch ended early")
            name, text = line.rstrip().split(" | ")
            if text.startswith("pid "):
                found[name.strip()] = [int(pid) for pid in text.split()[1:]]
        return found

    def assert_gone(self, pids):
        for name, numbers in pids.items():
            for pid in numbers:
                wait_until(lambda pid=pid: gone(pid), f"the end of {name} ({pid})")

    def test_a_worker_fails(self):
        start = time.monotonic()
        told = dtg("run", "--local", "--workers", "2", "--", *script(ps="sleep 1000", chief="sleep 1000", other="exit 7"))
        self.assertEqual(told.returncode, 7)
        self.assertIn("worker/1 ended with exit code 7", told.stderr)
        self.assertLess(time.monotonic() - start, LIMIT / 2)

    def test_a_ps_fails(self):
        told = dtg("run", "--local", "--workers", "1", "--", *script(ps="kill -SEGV $$", chief="sleep 1000"))
        self.assertEqual(told.returncode, 128 + signal.SIGSEGV)
        self.assertIn("ps/0 was ended by signal 11", told.stderr)

    def test_ps_that_stays(self):
        told = dtg("run", "--local", "--grace", "1", "--", *script(ps="trap '' TERM; while :; do sleep 1; done", chief="exit 0"))
        self.assertEqual(told.returncode, 0)
        self.assertIn("the workers are done, but ps/0 still runs after 1 s", told.stderr)
        self.assertIn("killing", told.stderr)

    def test_interrupt_reaches_all_and_nothing_survives(self):
        # Each task has a child of its own, which must go too.
        program = ["sh", "-c", "trap 'echo bye; exit 0' INT; sleep 1000 & echo pid $$ $!; wait"]
        process = self.start("--workers", "2", program=program)
        pids = self.pids(process, 3)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=LIMIT)
        self.assertEqual(process.returncode, 130)
        self.assertEqual(out.count("bye"), 3, out + err)
        self.assert_gone(pids)

    def test_signals_that_end_nothing(self):
        # SIGUSR1 and SIGUSR2 reach the tasks, SIGWINCH nobody, and what comes after them is still heard.
        program = ["sh", "-c", "trap 'echo one' USR1; trap 'echo two' USR2; trap 'echo bye; exit 0' HUP; echo pid $$; while :; do sleep 0.05; done"]
        process = self.start("--ps", "0", "--workers", "2", program=program)
        pids = self.pids(process, 2)
        for number, said in ((signal.SIGUSR1, "one"), (signal.SIGWINCH, None), (signal.SIGUSR2, "two")):
            process.send_signal(number)
            if said:
                self.assertEqual({process.stdout.readline() for _ in range(2)}, {f"worker/{i} | {said}\n" for i in range(2)})
        process.send_signal(signal.SIGHUP)
        out, err = process.communicate(timeout=LIMIT)
        self.assertEqual((process.returncode, out.count("bye")), (128 + signal.SIGHUP, 2), out + err)
        self.assert_gone(pids)

    def test_terminate_then_kill(self):
        process = self.start("--grace", "1", program=["sh", "-c", "trap '' TERM; echo pid $$; while :; do sleep 1; done"])
        pids = self.pids(process, 2)
        process.terminate()
        _, err = process.communicate(timeout=LIMIT)
        self.assertEqual(process.returncode, 143)
        self.assertIn("did not end within 1 s", err)
        self.assert_gone(pids)

    def test_second_interrupt_kills(self):
        process = self.start("--grace", "600", program=["sh", "-c", "trap '' INT; echo pid $$; while :; do sleep 1; done"])
        pids = self.pids(process, 2)
        process.send_signal(signal.SIGINT)
        while "once more" not in process.stderr.readline():
            pass
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=LIMIT)
        self.assertEqual(process.returncode, 130)
        self.assert_gone(pids)

    def test_launcher_killed(self):
        process = self.start("--workers", "2", program=["sh", "-c", "echo pid $$; exec sleep 1000"])
        pids = self.pids(process, 3)
        process.kill()
        process.wait(LIMIT)
        self.assert_gone(pids)
        left = os.listdir(self.place)
        self.assertEqual(len(left), 1)
        # The next launch removes it, and not the folder of one that is alive.
        alive = self.start("--workers", "1", program=["sh", "-c", "echo pid $$; exec sleep 1000"], place=self.place)
        self.pids(alive, 2)
        told = dtg("run", "--local", "--workers", "1", "--ps", "0", "--", "true", env=dict(os.environ, XDG_RUNTIME_DIR=self.place))
        self.assertEqual(told.returncode, 0, told.stderr)
        kept = os.listdir(self.place)
        self.assertEqual(len(kept), 1)
        self.assertNotEqual(kept, left)
        alive.terminate()
        alive.communicate(timeout=LIMIT)
        self.assertEqual(os.listdir(self.place), [])

    def test_who_died_first(self):
        """A worker that follows its parameter server at once is not taken for the cause, nor the kill for the launcher's own."""
        for _ in range(5):
            with tempfile.TemporaryDirectory() as place:
                worker = f"while [ ! -s {place}/ps ]; do sleep 0.02; done; kill -KILL $(cat {place}/ps); exit 1"
                told = dtg("run", "--local", "--workers", "1", "--", *script(ps=f"echo $$ > {place}/ps; exec sleep 1000", chief=worker))
                self.assertEqual(told.returncode, 128 + signal.SIGKILL, told.stderr)
                self.assertIn("ps/0 was ended by signal 9", told.stderr)

    def test_reader_gone(self):
        process = self.start("--ps", "0", program=["sh", "-c", "echo pid $$; while :; do echo text; done"])
        pids = self.pids(process, 1)
        process.stdout.close()
        process.wait(LIMIT)
        self.assertEqual(process.returncode, 141)
        self.assert_gone(pids)


class Terminal(unittest.TestCase):
    def on_terminal(self, program, workers, go=None, **environment):
        """What a launch writes to a terminal of 80 columns. `go` = (text, file): the file is made when the text was drawn."""
        pid, fd = pty.fork()
        if pid == 0:
            env = dict(os.environ, TERM="xterm", **environment)
            os.execve(DTG, [DTG, "run", "--local", "--ps", "0", "--workers", str(workers), "--", *program], env)
        text = b""
        while True:
            try:
                part = os.read(fd, 65536)
            except OSError:  # the other end is closed
                part = b""
            if not part:
                break
            text += part
            if go and go[0] in text:
                pathlib.Path(go[1]).touch()
        os.close(fd)
        self.assertEqual(os.waitpid(pid, 0)[1], 0)
        return text.decode()

    def test_one_combined_status(self):
        with tempfile.TemporaryDirectory() as place:
            go = os.path.join(place, "go")
            # Each says what it is at until the launcher has drawn both on one line.
            say = "while [ ! -e %s ]; do printf '\\r%s'; sleep 0.05; done; printf '\\r\\033[Kdone\\n'"
            program = script(chief=say % (go, "step 5 loss 0.1"), other=say % (go, "800 images/s"))
            text = self.on_terminal(program, 2, go=(b"step 5 loss 0.1  |  worker/1: 800 images/s", go))
        self.assertIn("step 5 loss 0.1  |  worker/1: 800 images/s", text)
        self.assertRegex(text, r"worker/1\S* \| done")
        self.assertIn("\033[36m", text)
        last = text[text.rindex("\r\033[K") + 4:]
        self.assertNotIn("step 5", last, "the status stayed on the screen")

    def test_no_color(self):
        text = self.on_terminal(["sh", "-c", "printf '\\033[31mred\\033[0m\\n'"], 1, NO_COLOR="1")
        self.assertIn("worker/0 | red", text)
        self.assertNotRegex(text, r"\033\[\d*m")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
