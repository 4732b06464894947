// Drawing: SVG elements, the axes of a chart, and the colour and marker of each run.

function svg(name, attributes, ...children) {
  const node = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes || {})) node.setAttribute(key, typeof value === "number" ? Number(value.toFixed(2)) : value);
  node.append(...children.filter((child) => child !== null && child !== undefined));
  return node;
}

function html(name, attributes, ...children) {
  const node = document.createElement(name);
  for (const [key, value] of Object.entries(attributes || {})) node.setAttribute(key, value);
  node.append(...children.filter((child) => child !== null && child !== undefined));
  return node;
}

function styleOf(name) {
  return `s${Math.max(0, data.names.indexOf(name)) % 8}`;
}

const SHAPES = [
  (x, y, r) => svg("circle", { cx: x, cy: y, r }),
  (x, y, r) => svg("rect", { x: x - r * 0.9, y: y - r * 0.9, width: r * 1.8, height: r * 1.8 }),
  (x, y, r) => svg("path", { d: polygon(x, y, r * 1.25, 3, -90) }),
  (x, y, r) => svg("path", { d: polygon(x, y, r * 1.25, 4, 0) }),
  (x, y, r) => svg("path", { d: polygon(x, y, r * 1.25, 3, 90) }),
  (x, y, r) => svg("path", { d: polygon(x, y, r * 1.15, 6, 0) }),
  (x, y, r) => svg("rect", { x: x - r * 1.2, y: y - r * 0.6, width: r * 2.4, height: r * 1.2 }),
  (x, y, r) => svg("rect", { x: x - r * 0.6, y: y - r * 1.2, width: r * 1.2, height: r * 2.4 }),
];

function polygon(x, y, r, corners, from) {
  const points = [];
  for (let k = 0; k < corners; k++) {
    const angle = ((from + (360 * k) / corners) * Math.PI) / 180;
    points.push(`${(x + r * Math.cos(angle)).toFixed(2)},${(y + r * Math.sin(angle)).toFixed(2)}`);
  }
  return `M${points.join("L")}Z`;
}

function marker(name, x, y, r, extra) {
  const shape = SHAPES[Math.max(0, data.names.indexOf(name)) % 8](x, y, r);
  shape.setAttribute("class", `marker ${styleOf(name)} ${extra || ""}`.trim());
  return shape;
}

function swatch(name, line) {
  const parts = [marker(name, 15, 6, 3.5)];
  if (line) parts.unshift(svg("path", { class: `curve ${styleOf(name)}`, d: "M0,6L30,6" }));
  return svg("svg", { viewBox: "0 0 30 12", "aria-hidden": "true" }, ...parts);
}

function textWidth(text) {
  return text.length * 6.6;
}

function pathOf(points) {
  let d = "";
  let pen = "M";
  for (const [x, y] of points) {
    if (!Number.isFinite(x) || !Number.isFinite(y)) { pen = "M"; continue; }
    d += `${pen}${x.toFixed(2)},${y.toFixed(2)}`;
    pen = "L";
  }
  return d;
}

// The value axis: the range of the data with a margin. It begins at zero for bounds, and never has zero height.
function valueAxis(values, form, log, count) {
  const finite = values.filter((v) => Number.isFinite(v) && (!log || v > 0));
  let low = finite.length ? Math.min(...finite) : 1;
  let high = finite.length ? Math.max(...finite) : 2;
  if (log) {
    const air = Math.max(1.5 / Math.sqrt(high / low), (high / low) ** 0.04);
    return { domain: [low / air, high * air], ticks: logTicks(low / air, high * air, count) };
  }
  if (form === "bound") low = 0;
  const air = Math.max(0.04 * (high - low), 0.02 * Math.abs(high) * (high - low < 0.02 * Math.abs(high)), 1e-9);
  low = form === "bound" ? 0 : low - air;
  high = high + air;
  if (form === "percent") { low = Math.max(0, low); high = Math.min(1, high); }
  return { domain: [low, high], ticks: linearTicks(low, high, count) };
}

// Draws axes into a new SVG and returns the box for the data.
function frame(plot, { label, form, log, values, bottom, right }) {
  const width = Math.max(260, plot.dataset.width ? Number(plot.dataset.width) : plot.clientWidth || 640);
  const height = Math.round(Math.min(360, Math.max(230, width * (Number(plot.dataset.ratio) || 0.55))));
  const axis = valueAxis(values, form, log, height < 260 ? 4 : 6);
  const texts = axis.ticks.map((tick) => tickText(tick, axis.ticks, form, log));
  const left = 14 + Math.max(20, ...texts.map(textWidth));
  const box = { left, right: width - Math.max(12, right || 0), top: 26, bottom: height - bottom };
  const y = scaleOf(axis.domain, [box.bottom, box.top], log);
  const root = svg("svg", { viewBox: `0 0 ${width} ${height}`, preserveAspectRatio: "xMinYMid meet", "aria-hidden": "true", focusable: "false" });
  root.append(svg("text", { x: 0, y: 12 }, label));
  axis.ticks.forEach((tick, k) => {
    root.append(svg("line", { class: "gridline", x1: box.left, x2: box.right, y1: y(tick), y2: y(tick) }));
    root.append(svg("text", { x: box.left - 8, y: y(tick) + 4, "text-anchor": "end" }, texts[k]));
  });
  root.append(svg("line", { class: "axis", x1: box.left, x2: box.right, y1: box.bottom, y2: box.bottom }));
  return { root, box, y, width, height };
}

// Labels at the ends of the curves, moved apart so that no label covers another label.
function endLabels(root, ends, box) {
  const gap = 15;
  const placed = ends.filter((end) => Number.isFinite(end.y)).sort((a, b) => a.y - b.y);
  placed.forEach((end, k) => { end.at = Math.max(end.y, k ? placed[k - 1].at + gap : box.top + 4); });
  for (let k = placed.length - 1, floor = box.bottom; k >= 0; k--) {
    placed[k].at = Math.min(placed[k].at, floor);
    floor = placed[k].at - gap;
  }
  for (const end of placed) {
    root.append(svg("line", { class: `stem ${styleOf(end.name)}`, x1: end.x + 5, y1: end.y, x2: end.x + 12, y2: end.at }));
    root.append(svg("text", { class: "strong", x: end.x + 15, y: end.at + 4 }, end.name));
  }
}

// Makes a plot act as a slider over the items at `xs`, for pointer, touch and arrow keys. `move` is called when the
// pointer moves, `pick` on a click, a touch or a key.
function scrub(plot, { xs, value, move, pick, leave }) {
  const nearest = (event) => {
    const rect = plot.getBoundingClientRect();
    const viewBox = plot.querySelector("svg").viewBox.baseVal;
    const x = ((event.clientX - rect.left) / rect.width) * viewBox.width;
    let best = 0;
    xs().forEach((at, k, all) => { if (Math.abs(at - x) < Math.abs(all[best] - x)) best = k; });
    return best;
  };
  plot.addEventListener("pointermove", (event) => move(nearest(event)));
  plot.addEventListener("pointerdown", (event) => pick(nearest(event)));
  plot.addEventListener("pointerleave", (event) => { if (event.pointerType === "mouse") leave(); });
  plot.addEventListener("keydown", (event) => {
    const last = xs().length - 1;
    const steps = { ArrowLeft: -1, ArrowDown: -1, ArrowRight: 1, ArrowUp: 1, PageDown: -10, PageUp: 10, Home: -Infinity, End: Infinity };
    if (!(event.key in steps)) return;
    event.preventDefault();
    pick(Math.min(last, Math.max(0, value() + steps[event.key])));
  });
}
