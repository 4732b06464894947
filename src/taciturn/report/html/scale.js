// Numbers: scales, ticks, and the same formats as in numbers.py.

const SUPERSCRIPT = { "-": "⁻", 0: "⁰", 1: "¹", 2: "²", 3: "³", 4: "⁴", 5: "⁵", 6: "⁶", 7: "⁷", 8: "⁸", 9: "⁹" };

function number(value) {
  if (value === null || value === undefined) return NaN;
  if (value === "inf") return Infinity;
  if (value === "-inf") return -Infinity;
  return value;
}

function tenTo(exponent) {
  return "10" + String(exponent).replace(/[-0-9]/g, (c) => SUPERSCRIPT[c]);
}

function plain(value) {
  if (value === 0) return "0";
  const size = Math.abs(value);
  const sign = value < 0 ? "−" : "";
  if (size < 1e-3 || size >= 1e6) {
    const [mantissa, exponent] = size.toExponential(2).split("e");
    return `${sign}${mantissa} × ${tenTo(Number(exponent))}`;
  }
  return sign + size.toFixed(Math.max(0, 3 - Math.floor(Math.log10(size))));
}

function bound(value) {
  if (value <= 0) return "0";
  const digits = 2 - Math.floor(Math.log10(value));
  return (Math.ceil(value * 10 ** digits * (1 - 1e-15)) / 10 ** digits).toFixed(Math.max(digits, 0));
}

function written(value, form) {
  if (Number.isNaN(value)) return "not known";
  if (!Number.isFinite(value)) return value > 0 ? "∞" : "−∞";
  if (form === "percent") return `${(100 * value).toFixed(2)}%`.replace("-", "−");
  return form === "bound" ? bound(value) : plain(value);
}

function niceStep(span, count, steps = [1, 2, 2.5, 5, 10]) {
  const raw = span / Math.max(1, count);
  const ten = 10 ** Math.floor(Math.log10(raw));
  const far = (m) => Math.abs(Math.log((m * ten) / raw));
  return ten * steps.reduce((best, m) => (far(m) < far(best) ? m : best));
}

function linearTicks(low, high, count) {
  const step = niceStep(high - low || 1, count);
  const ticks = [];
  for (let k = Math.ceil(low / step - 1e-9); k * step <= high + step * 1e-9; k++) ticks.push(k * step);
  return ticks;
}

// The rounds to label on an axis: the first, the last, and multiples of a round step between them.
function roundTicks(first, last, count) {
  const step = Math.max(1, niceStep(last - first || 1, count, [1, 2, 5, 10]));
  const between = [];
  for (let t = Math.ceil(first / step) * step; t <= last; t += step) between.push(t);
  const clear = between.filter((t) => t - first >= step / 2 && last - t >= step / 2);
  return first === last ? [first] : [first, ...clear, last];
}

function logTicks(low, high, count) {
  const first = Math.floor(Math.log10(low));
  const last = Math.ceil(Math.log10(high));
  const sets = [[1, 2, 5], [1, 3], [1]];
  const within = (v) => v >= low * (1 - 1e-9) && v <= high * (1 + 1e-9);
  for (const set of sets) {
    const ticks = [];
    for (let k = first; k <= last; k++) for (const m of set) ticks.push(Number(`${m}e${k}`));
    const kept = ticks.filter(within);
    if (kept.length <= count + 1) return kept.length > 1 ? kept : linearTicks(low, high, count);
  }
  const stride = Math.ceil((last - first + 1) / count);
  const ticks = [];
  for (let k = first; k <= last; k += stride) ticks.push(Number(`1e${k}`));
  return ticks.filter(within);
}

function tickText(value, ticks, form, log) {
  if (value === 0) return form === "percent" ? "0%" : "0";
  if (log) {
    const size = Math.abs(value);
    if (size >= 0.01 && size < 1e5) return form === "percent" ? `${Number((100 * value).toPrecision(3))}%` : String(Number(value.toPrecision(3)));
    const [mantissa, exponent] = size.toExponential(0).split("e");
    return (mantissa === "1" ? "" : `${mantissa}·`) + tenTo(Number(exponent));
  }
  const step = ticks.length > 1 ? ticks[1] - ticks[0] : Math.abs(value);
  if (Math.abs(value) >= 1e6 || step < 1e-5) return plain(value);
  const factor = form === "percent" ? 100 : 1;
  const decimals = Math.max(0, Math.min(6, -Math.floor(Math.log10(step * factor * 1.0000001))));
  const exact = Math.abs(step * factor * 10 ** decimals - Math.round(step * factor * 10 ** decimals)) > 1e-6 ? decimals + 1 : decimals;
  return (factor * value).toFixed(exact).replace("-", "−") + (form === "percent" ? "%" : "");
}

function scaleOf(domain, range, log) {
  const f = log ? Math.log10 : (v) => v;
  const [a, b] = domain.map(f);
  const [p, q] = range;
  return (v) => p + ((f(v) - a) / (b - a || 1)) * (q - p);
}
