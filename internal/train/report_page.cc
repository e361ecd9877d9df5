// The page of a report: its layout and the script that draws it from the data in its middle. Constants. The script makes texts of names by
// `esc` alone, and every drawing is a text of SVG, so that a test can look at it without a browser.
#include "train/report.h"

namespace dtg {

const char* const kReportHead = R"page(<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><title>dtg report</title>
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'">
<style>
body { font: 15px/1.45 system-ui, sans-serif; margin: 2em auto; max-width: 1100px; padding: 0 1em; color: #222; background: #fff }
h1 { font-size: 1.5em } h2 { font-size: 1.15em; margin-top: 1.8em }
table { border-collapse: collapse; font-size: 14px } td, th { border-bottom: 1px solid #ddd; padding: 4px 10px; text-align: left }
td.n { text-align: right; font-variant-numeric: tabular-nums }
.charts { display: grid; grid-template-columns: repeat(auto-fill, minmax(480px, 1fr)); gap: 1em } figure { margin: 0 }
figcaption { font-weight: 600 } svg { width: 100%; height: auto } svg text { font-size: 11px; fill: #555 }
.key span { margin-right: 1.2em } .bar { display: inline-block; height: 12px }
@media (prefers-color-scheme: dark) { body { color: #ddd; background: #1b1b1b } td, th { border-color: #444 } svg text { fill: #aaa } }
</style></head><body>
<h1>dtg report</h1>
<div id="runs"></div>
<h2>Curves</h2>
<label>smoothing <input id="smooth" type="range" min="0" max="0.98" step="0.02" value="0"> <output id="level">0</output></label>
<div class="key" id="key"></div><div class="charts" id="charts"></div>
<h2>Where the time went</h2><div id="times"></div>
<h2>Settings and environment</h2><div id="settings"></div>
<script id="data" type="application/json">)page";

const char* const kReportTail = R"page(</script>
<script>
"use strict";
const runs = JSON.parse(document.getElementById("data").textContent);
const colors = ["#1f77b4", "#d62728", "#2ca02c", "#9467bd", "#ff7f0e", "#17becf", "#8c564b", "#e377c2"];
const color = i => colors[i % colors.length];
const esc = x => String(x).replace(/[&<>"']/g, c => "&#" + c.charCodeAt(0) + ";");
const show = x => typeof x === "number" ? (Number.isInteger(x) ? String(x) : x.toPrecision(5)) : esc(x === null || x === undefined ? "" : x);
const rows = run => Array.isArray(run.history) ? run.history : [];

// A mean that forgets, without a lean to its first value.
function smoothed(points, keep) {
  let sum = 0, weight = 0;
  return points.map(([x, y]) => { sum = keep * sum + (1 - keep) * y; weight = keep * weight + (1 - keep); return [x, sum / weight]; });
}
function series(run, name) {
  return rows(run).filter(row => typeof row[name] === "number").map(row => [row.step, row[name]]);
}
// lines: {points, color, dashed}
function chart(name, lines) {
  const W = 520, H = 260, L = 62, R = 10, T = 10, B = 26, all = lines.flatMap(line => line.points);
  if (!all.length) return "";
  let [x0, x1, y0, y1] = [Infinity, -Infinity, Infinity, -Infinity];
  for (const [x, y] of all) { x0 = Math.min(x0, x); x1 = Math.max(x1, x); y0 = Math.min(y0, y); y1 = Math.max(y1, y); }
  if (x0 === x1) { x0 -= 1; x1 += 1; }
  if (y0 === y1) { const d = Math.abs(y0) * 0.1 || 1; y0 -= d; y1 += d; }
  const X = x => L + (x - x0) / (x1 - x0) * (W - L - R), Y = y => H - B - (y - y0) / (y1 - y0) * (H - T - B);
  let svg = `<svg viewBox="0 0 ${W} ${H}" role="img" aria-label="${esc(name)}">`;
  for (let i = 0; i <= 4; i++) {
    const y = y0 + (y1 - y0) * i / 4, x = x0 + (x1 - x0) * i / 4;
    svg += `<line x1="${L}" x2="${W - R}" y1="${Y(y)}" y2="${Y(y)}" stroke="#8884"/><text x="${L - 6}" y="${Y(y) + 4}" text-anchor="end">${y.toPrecision(3)}</text>`;
    svg += `<text x="${X(x)}" y="${H - 8}" text-anchor="middle">${Math.round(x)}</text>`;
  }
  for (const line of lines) {
    const at = line.points.map(([x, y]) => X(x).toFixed(1) + "," + Y(y).toFixed(1));
    if (at.length > 1) svg += `<polyline fill="none" stroke="${line.color}" stroke-width="2"${line.dashed ? ' stroke-dasharray="5 4"' : ""} points="${at.join(" ")}"/>`;
    for (const point of at.length > 40 ? at.slice(-1) : at) { const [cx, cy] = point.split(","); svg += `<circle cx="${cx}" cy="${cy}" r="2.5" fill="${line.color}"/>`; }
  }
  return svg + "</svg>";
}
function charts(keep) {
  const names = [];
  for (const run of runs) for (const row of rows(run)) for (const key of Object.keys(row)) {
    const name = key.replace(/^val_/, "");
    if (key !== "epoch" && key !== "step" && !names.includes(name)) names.push(name);
  }
  return names.map(name => {
    const lines = [];
    runs.forEach((run, i) => {
      lines.push({points: smoothed(series(run, name), keep), color: color(i), dashed: false});
      lines.push({points: smoothed(series(run, "val_" + name), keep), color: color(i), dashed: true});
    });
    const svg = chart(name, lines.filter(line => line.points.length));
    return svg && `<figure><figcaption>${esc(name)}</figcaption>${svg}</figure>`;
  }).join("");
}
function table(head, body) {
  return `<table><tr>${head.map(x => `<th>${esc(x)}</th>`).join("")}</tr>` + body.map(cells => "<tr>" +
    cells.map(x => `<td${typeof x === "number" ? ' class="n"' : ""}>${show(x)}</td>`).join("") + "</tr>").join("") + "</table>";
}
function overview() {
  const values = [];
  for (const run of runs) for (const key of Object.keys(rows(run).at(-1) || {})) if (!["epoch", "step"].includes(key) && !values.includes(key)) values.push(key);
  return table(["run", "outcome", "why", "epochs", "steps", "best", "of", "in epoch", ...values], runs.map(run => {
    const last = rows(run).at(-1) || {};
    return [run.name, run.outcome, run.why, run.epochs, run.steps ?? last.step, run.best, run.monitor, run.best_epoch, ...values.map(key => last[key])];
  }));
}
const parts = [["data", "#ff7f0e"], ["compute", "#1f77b4"], ["validation", "#2ca02c"], ["files", "#9467bd"], ["other", "#999999"]];
function times() {
  let html = `<div class="key">` + parts.map(([name, fill]) => `<span><span class="bar" style="width:12px;background:${fill}"></span> ${name}</span>`).join("") + "</div>";
  for (const run of runs) {
    if (!Array.isArray(run.times) || !run.times.length) { html += `<p>${esc(run.name)}: not measured</p>`; continue; }
    const sum = name => run.times.reduce((all, one) => all + (one[name] || 0), 0);
    const whole = sum("seconds") || 1;
    html += `<p>${esc(run.name)}, ${show(sum("seconds"))} s in ${run.times.length} epochs<br>` + parts.map(([name, fill]) => {
      const share = name === "other" ? Math.max(0, 1 - (sum("data") + sum("compute") + sum("validation") + sum("files")) / whole) : sum(name) / whole;
      return `<span class="bar" title="${name}" style="width:${(share * 90).toFixed(1)}%;background:${fill}"></span>`;
    }).join("") + "</p>" + table(["epoch", "seconds", "data", "compute", "validation", "files", "examples/s"], run.times.map(one => [one.epoch, one.seconds, one.data, one.compute, one.validation, one.files, one.examples_per_s]));
  }
  return html;
}
function settings() {
  const keys = [];
  for (const run of runs) for (const key of [...Object.keys(run.settings || {}), ...Object.keys(run.environment || {})]) if (!keys.includes(key)) keys.push(key);
  return table(["", ...runs.map(run => run.name)], keys.map(key => [key, ...runs.map(run => (run.settings || {})[key] ?? (run.environment || {})[key])]));
}
const put = (id, html) => { document.getElementById(id).innerHTML = html; };
function draw() {
  const keep = Number(document.getElementById("smooth").value);
  put("level", String(keep));
  put("charts", charts(keep));
}
put("runs", overview());
put("key", runs.map((run, i) => `<span style="color:${color(i)}">&#9632; ${esc(run.name)}</span>`).join("") + "<span>dashed: validation</span>");
put("times", times());
put("settings", settings());
document.getElementById("smooth").addEventListener("input", draw);
draw();
</script></body></html>
)page";

}  // namespace dtg
