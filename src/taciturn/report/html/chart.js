// The two kinds of chart: curves by round, and dots by site.

// The legend has one row per run: its swatch, its name and its value at the cursor. If there are several runs, a click on a row shows or hides its run.
function legend(box, names, line) {
  const when = html("p", { class: "when" });
  const rows = new Map();
  const list = html("ul", {});
  for (const name of names) {
    const reading = html("span", { class: "reading" });
    const inside = [swatch(name, line), html("span", { class: "name" }, name), reading];
    const row = data.names.length > 1 ? html("button", { type: "button", class: "key" }, ...inside) : html("div", { class: "key" }, ...inside);
    if (row.tagName === "BUTTON") row.addEventListener("click", () => toggle(name));
    rows.set(name, { row, reading });
    list.append(html("li", {}, row));
  }
  box.replaceChildren(when, list);
  return {
    mark() {
      for (const [name, { row }] of rows) if (row.tagName === "BUTTON") row.setAttribute("aria-pressed", String(!state.hidden.has(name)));
    },
    read(text, values, form) {
      when.textContent = text;
      for (const [name, { reading }] of rows) {
        const value = values.get(name);
        reading.replaceChildren(...(value ? readingOf(value, form) : ["ended"]));
      }
    },
  };
}

function readingOf({ value, low, high }, form) {
  const parts = [html("data", { value: String(value) }, written(value, form))];
  if (low !== undefined && written(low, form) !== written(high, form)) {
    parts.push(html("span", { class: "range" }, " (", html("data", { value: String(low) }, written(low, form)), " to ", html("data", { value: String(high) }, written(high, form)), ")"));
  }
  return parts;
}

function spoken(values, form) {
  return [...values].filter(([name]) => !state.hidden.has(name)).map(([name, { value }]) => `${name} ${written(value, form)}`).join(", ");
}

// Curves by round. `source()` returns the curves to draw; `chart.log` says whether the axis is logarithmic at first; the reader can switch it.
function lineChart(figure, chart, source) {
  const plot = figure.querySelector(".plot");
  const names = chart.curves.map((curve) => curve.name);
  const keys = legend(figure.querySelector(".legend"), names, true);
  let log = chart.log;
  let xs = () => [];
  let rounds = [];
  let cursor = () => {};

  function draw() {
    const all = source();
    const curves = all.filter((curve) => !state.hidden.has(curve.name));
    rounds = [...new Set(all.flatMap((curve) => curve.rounds))].sort((a, b) => a - b);
    const values = curves.flatMap((curve) => [...curve.mean, ...curve.low, ...curve.high].map(number));
    const wide = (Number(plot.dataset.width) || plot.clientWidth || 640) >= 560 && all.length > 1;
    const right = wide ? 22 + Math.min(190, Math.max(...names.map(textWidth))) : 12;
    const { root, box, y, height } = frame(plot, { label: chart.label, form: chart.format, log, values, bottom: 40, right });
    const x = scaleOf([rounds[0], rounds[rounds.length - 1]], [box.left + 4, box.right - 4], false);
    for (const t of roundTicks(rounds[0], rounds[rounds.length - 1], (box.right - box.left) / 70)) {
      root.append(svg("line", { class: "axis", x1: x(t), x2: x(t), y1: box.bottom, y2: box.bottom + 4 }));
      root.append(svg("text", { x: x(t), y: box.bottom + 18, "text-anchor": "middle" }, String(t)));
    }
    root.append(svg("text", { x: (box.left + box.right) / 2, y: height - 4, "text-anchor": "middle" }, "round"));
    curves.forEach((curve) => drawBand(root, curve, x, y, log));
    curves.forEach((curve, k) => drawCurve(root, curve, x, y, k));
    if (wide) endLabels(root, curves.map((curve) => ({ name: curve.name, x: x(curve.rounds[curve.rounds.length - 1]), y: y(number(curve.mean[curve.mean.length - 1])) })), box);
    if (!curves.length) root.append(svg("text", { x: (box.left + box.right) / 2, y: (box.top + box.bottom) / 2, "text-anchor": "middle" }, "All curves are hidden."));
    const overlay = svg("g", {});
    root.append(overlay);
    plot.replaceChildren(root);
    xs = () => rounds.map(x);
    cursor = () => drawCursor(overlay, curves, x, y, box);
    point();
    keys.mark();
  }

  function point() {
    const t = rounds.includes(state.round) ? state.round : rounds[rounds.length - 1];
    cursor();
    const values = new Map(source().map((curve) => [curve.name, valueAt(curve, t)]).filter(([, value]) => value));
    keys.read(t === rounds[rounds.length - 1] ? `Round ${t}, the last` : `Round ${t}`, values, chart.format);
    plot.setAttribute("aria-valuemin", rounds[0]);
    plot.setAttribute("aria-valuemax", rounds[rounds.length - 1]);
    plot.setAttribute("aria-valuenow", t);
    plot.setAttribute("aria-valuetext", `Round ${t}: ${spoken(values, chart.format)}`);
  }

  scrub(plot, { xs: () => xs(), value: () => rounds.indexOf(rounds.includes(state.round) ? state.round : rounds[rounds.length - 1]), move: (k) => setRound(rounds[k]), pick: (k) => setRound(rounds[k]), leave: () => setRound(null) });
  logSwitch(figure, chart, () => log, (on) => { log = on; draw(); });
  return { draw, point };
}

function logSwitch(figure, chart, get, set) {
  const place = figure.querySelector(".tools");
  const positive = chart.curves.every((curve) => [...curve.mean, ...curve.low].map(number).every((v) => v > 0));
  if (!place || !positive || chart.format === "percent") return;
  const box = html("input", { type: "checkbox" });
  box.checked = get();
  box.addEventListener("change", () => set(box.checked));
  place.replaceChildren(html("label", { class: "switch" }, box, "log axis"));
}

function valueAt(curve, t) {
  const k = curve.rounds.indexOf(t);
  if (k < 0) return null;
  const ranged = curve.low.length > 0;
  return { value: number(curve.mean[k]), low: ranged ? number(curve.low[k]) : undefined, high: ranged ? number(curve.high[k]) : undefined };
}

function drawBand(root, curve, x, y, log) {
  if (!curve.low.length) return;
  const at = (values) => curve.rounds.map((t, k) => [x(t), y(number(values[k]))]).filter(([, v]) => Number.isFinite(v));
  const upper = at(curve.high);
  const lower = at(curve.low);
  if (upper.length < 2 || lower.length < 2) return;
  root.append(svg("path", { class: `band ${styleOf(curve.name)}`, d: `${pathOf(upper)}${pathOf(lower.reverse()).replace("M", "L")}Z` }));
  root.append(svg("path", { class: `edge-of-band ${styleOf(curve.name)}`, d: pathOf(upper) }));
  root.append(svg("path", { class: `edge-of-band ${styleOf(curve.name)}`, d: pathOf(lower) }));
}

function drawCurve(root, curve, x, y, shift) {
  const points = curve.rounds.map((t, k) => [x(t), y(number(curve.mean[k]))]);
  root.append(svg("path", { class: `curve ${styleOf(curve.name)}`, d: pathOf(points), "data-name": curve.name }));
  const every = Math.max(1, Math.round(points.length / 8));
  points.forEach(([px, py], k) => {
    const last = k === points.length - 1;
    if ((last || (k % every === (shift * Math.ceil(every / 4)) % every && points.length - k > every / 2)) && Number.isFinite(py)) root.append(marker(curve.name, px, py, 3.5));
  });
}

function drawCursor(overlay, curves, x, y, box) {
  overlay.replaceChildren();
  if (state.round === null) return;
  overlay.append(svg("line", { class: "cursor", x1: x(state.round), x2: x(state.round), y1: box.top, y2: box.bottom }));
  for (const curve of curves) {
    const found = valueAt(curve, state.round);
    if (found && Number.isFinite(y(found.value))) overlay.append(marker(curve.name, x(state.round), y(found.value), 4.5, "now"));
  }
}

// Dots by site: the total of every site, with the runs side by side.
function siteChart(figure, accounting) {
  const plot = figure.querySelector(".plot");
  const bounded = accounting.sites.filter((costs) => costs.totals.map(number).some(Number.isFinite));
  const keys = legend(figure.querySelector(".legend"), bounded.map((costs) => costs.name), false);
  const labels = siteNames(accounting);
  let xs = () => [];
  let cursor = () => {};

  function draw() {
    const shown = bounded.filter((costs) => !state.hidden.has(costs.name));
    const { root, box, y, height } = frame(plot, { label: accounting.chart.label, form: "bound", log: false, values: shown.flatMap((costs) => costs.totals.map(number)), bottom: 40 });
    const slot = (box.right - box.left) / labels.length;
    const centre = (i) => box.left + (i + 0.5) * slot;
    const longest = Math.max(...labels.map(textWidth));
    const short = longest + 8 > slot;
    const every = short ? Math.max(1, Math.ceil(labels.length / ((box.right - box.left) / 34))) : 1;
    labels.forEach((label, i) => {
      if (i % every === 0) root.append(svg("text", { x: centre(i), y: box.bottom + 18, "text-anchor": "middle" }, short ? String(i) : label));
    });
    if (short) root.append(svg("text", { x: (box.left + box.right) / 2, y: height - 4, "text-anchor": "middle" }, "site number"));
    const spread = Math.min(14, slot / (shown.length + 1));
    shown.forEach((costs, k) => costs.totals.forEach((total, i) => {
      const px = centre(i) + (k - (shown.length - 1) / 2) * spread;
      if (!Number.isFinite(number(total))) return;
      root.append(svg("line", { class: `stem ${styleOf(costs.name)}`, x1: px, x2: px, y1: box.bottom, y2: y(total) }));
      root.append(marker(costs.name, px, y(total), labels.length > 40 ? 2.5 : 4));
    }));
    const overlay = svg("g", {});
    root.append(overlay);
    plot.replaceChildren(root);
    xs = () => labels.map((_, i) => centre(i));
    cursor = (site) => {
      overlay.replaceChildren();
      if (site !== null) overlay.append(svg("line", { class: "cursor", x1: centre(site), x2: centre(site), y1: box.top, y2: box.bottom }));
    };
    point();
    keys.mark();
  }

  function point() {
    const site = seen();
    cursor(site);
    const values = new Map(bounded.map((costs) => [costs.name, { value: number(costs.totals[site === null ? worstOf(costs) : site]) }]));
    keys.read(site === null ? "The worst site of each run" : labels[site], values, "bound");
    plot.setAttribute("aria-valuemin", 0);
    plot.setAttribute("aria-valuemax", labels.length - 1);
    plot.setAttribute("aria-valuenow", site === null ? 0 : site);
    plot.setAttribute("aria-valuetext", `${site === null ? "Worst site" : labels[site]}: ${spoken(values, "bound")}`);
  }

  scrub(plot, { xs: () => xs(), value: () => (state.site === null ? -1 : state.site), move: (i) => peek(i), pick: (i) => setSite(i), leave: () => peek(null) });
  return { draw, point };
}

// The names of the network's sites. If a run has more sites than the network, they get numbers as names.
function siteNames(accounting) {
  const known = data.network ? data.network.names : [];
  const most = Math.max(0, ...accounting.sites.map((costs) => costs.totals.length));
  return [...known, ...Array.from({ length: Math.max(0, most - known.length) }, (_, k) => `site ${known.length + k}`)];
}

// The site with the largest total; sites without a known total are ignored.
function worstOf(costs) {
  const totals = costs.totals.map(number);
  return totals.reduce((best, v, i) => (v > totals[best] || Number.isNaN(totals[best]) ? i : best), 0);
}
