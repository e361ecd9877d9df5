"""Looks at the page that a fit has left: nothing in it leads out of it, and its script, run by Node over a stand-in for a browser's document,
draws the curves of the fit's own rows. The stand-in is small: the script makes texts of HTML and SVG, and puts them into elements by id.

Usage: report_check.py RUN_DIRECTORY. Exits 0 when everything is as expected, 1 with a reason per line otherwise, 77 without node.
"""

import html.parser
import json
import os
import re
import shutil
import subprocess
import sys

STAND_IN = """
const elements = {};
const element = id => elements[id] = elements[id] || {id, innerHTML: "", value: "0", handlers: [], addEventListener(kind, call) { this.handlers.push(call); }};
globalThis.document = {getElementById: id => id === "data" ? {textContent: DATA} : element(id)};
"""
ASK = """
const first = Object.fromEntries(Object.entries(elements).map(([id, one]) => [id, one.innerHTML]));
element("smooth").value = "0.9";
element("smooth").handlers.forEach(call => call());
console.log(JSON.stringify({first, smooth: element("charts").innerHTML, names: runs.map(run => run.name)}));
"""


class Page(html.parser.HTMLParser):
    """Ids, what leads to elsewhere, and the contents of its scripts."""

    def __init__(self):
        super().__init__()
        self.ids, self.links, self.scripts, self.inside, self.tags = set(), [], [], False, []

    def handle_starttag(self, tag, attrs):
        attrs = dict(attrs)
        self.tags.append(tag)
        self.ids.add(attrs.get("id"))
        self.links += [value for key, value in attrs.items() if key in ("src", "href", "action", "data")]
        self.inside = tag == "script"
        if self.inside:
            self.scripts.append("")

    def handle_endtag(self, tag):
        self.inside = False

    def handle_data(self, data):
        if self.inside:
            self.scripts[-1] += data


def drawn(page, data):
    """What the page shows, with that as its data."""
    program = f"const DATA = {json.dumps(data)};\n" + STAND_IN + page.scripts[1] + ASK
    told = subprocess.run(["node", "-"], input=program, capture_output=True, text=True, check=False, timeout=60)
    if told.returncode != 0:
        raise AssertionError(told.stderr)
    return json.loads(told.stdout)


def main():
    if not shutil.which("node"):
        print("report_check: no node here")
        return 77
    root, problems = sys.argv[1], []
    with open(os.path.join(root, "report.html"), encoding="utf-8") as file:
        text = file.read()
    with open(os.path.join(root, "metrics.jsonl"), encoding="utf-8") as lines:
        rows = [json.loads(line) for line in lines]
    page = Page()
    page.feed(text)

    def expect(condition, message):
        if not condition:
            problems.append(message)

    expect(not page.links and not re.search(r"https?:|//[a-z]|@import|url\(", text), f"it leads elsewhere: {page.links}")
    expect(len(page.scripts) == 2, f"{len(page.scripts)} scripts")
    expect("<" not in page.scripts[0], "a name could end the element that it stands in")
    data = json.loads(page.scripts[0])
    expect(data[0]["history"] == rows, "the rows are not those of metrics.jsonl")
    expect(data[0]["outcome"] == "done" and len(data[0]["times"]) > 0, f"the run is {data[0]}")
    for one in data[0]["times"]:
        expect(0 < one["data"] + one["compute"] <= one["seconds"], f"the times are {one}")
    seen = drawn(page, page.scripts[0])
    charts = seen["first"]["charts"]
    for name in ("loss", "accuracy", "learning_rate"):
        expect(f"<figcaption>{name}</figcaption>" in charts, f"no curve of {name}")
    # Loss and accuracy with their validation, and the rate.
    expect(charts.count("<polyline") == 5 and charts.count("stroke-dasharray") == 2, f"the curves are {charts}")
    expect(charts.count("<circle") == 5 * len(rows), "a point per epoch and curve")
    expect(seen["smooth"].count("<polyline") == 5 and seen["smooth"] != charts, "smoothing changes nothing")
    for words in ("adam", "parameters", "cpus"):
        expect(words in seen["first"]["settings"], f"the settings are {seen['first']['settings']}")
    expect("compute" in seen["first"]["times"] and "not measured" not in seen["first"]["times"], "no times")
    # Names are texts, whatever is in them; runs that tell little are drawn as far as that goes.
    nasty = "</script><img src=x onerror=alert(1)>"
    odd = [{"name": nasty, "outcome": nasty, "why": nasty, "history": [{"epoch": 1, "step": 3, nasty: 1.5, "loss": None}]}, {"name": "empty"}]
    shown = drawn(page, json.dumps(odd))
    expect("<img" not in json.dumps(shown["first"]) and "&#60;img" in shown["first"]["runs"], f"names are not texts: {shown['first']}")
    print("\n".join(problems))
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
