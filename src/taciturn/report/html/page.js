// The page: what the reader has chosen, and the charts that depend on it.

const data = JSON.parse(document.getElementById("report-data").textContent);
const state = { round: null, site: null, peeked: null, hidden: new Set(), accounting: data.accountings.length ? data.accountings[0].key : null };
const byRound = [];
const bySite = [];
const all = [];

function chosen() {
  return data.accountings.find((accounting) => accounting.key === state.accounting);
}

// The site whose numbers are shown: the site under the pointer, else the chosen site, else null for the worst site.
function seen() {
  return state.peeked !== null ? state.peeked : state.site;
}

function setRound(t) {
  state.round = t;
  byRound.forEach((part) => part.point());
}

function peek(site) {
  state.peeked = site;
  bySite.forEach((part) => part.point());
}

function setSite(site) {
  state.site = site;
  state.peeked = null;
  for (const select of document.querySelectorAll("select.site-choice")) select.value = site === null ? "" : String(site);
  bySite.forEach((part) => part.point());
  byRound.forEach((part) => part.follows && part.draw());
}

function toggle(name) {
  if (!state.hidden.delete(name)) state.hidden.add(name);
  all.forEach((part) => part.draw());
}

function setAccounting(key) {
  state.accounting = key;
  for (const panel of document.querySelectorAll("[data-accounting]")) panel.hidden = panel.dataset.accounting !== key;
  all.forEach((part) => part.draw());
}

function chartOf(figure) {
  const [kind, index] = figure.dataset.chart.split(".");
  if (kind === "network") return [networkChart(figure), bySite];
  if (kind === "sites") return [siteChart(figure, data.accountings[index]), bySite];
  if (kind === "charts") return [lineChart(figure, data.charts[index], () => data.charts[index].curves), byRound];
  const accounting = data.accountings[index];
  const part = lineChart(figure, accounting.chart, () => curvesOf(accounting));
  part.follows = true;
  return [part, byRound];
}

// The curves of the chosen site if the report contains them, else the curves of the worst site.
function curvesOf(accounting) {
  if (state.site === null) return accounting.chart.curves;
  return accounting.chart.curves.map((curve) => {
    const costs = accounting.sites.find((entry) => entry.name === curve.name);
    return costs && costs.by_round.length > state.site ? { ...curve, mean: costs.by_round[state.site], low: [], high: [] } : curve;
  });
}

function controls() {
  for (const input of document.querySelectorAll("input[name=accounting]")) {
    input.addEventListener("change", () => setAccounting(input.value));
    if (input.checked) state.accounting = input.value;
  }
  for (const select of document.querySelectorAll("select.site-choice")) {
    select.addEventListener("change", () => setSite(select.value === "" ? null : Number(select.value)));
  }
}

// Hidden panels have no width, so they use the width of the first visible panel of the same size.
function widths() {
  for (const plot of document.querySelectorAll(".plot")) {
    delete plot.dataset.ratio;
    if (!plot.clientWidth) {
      const twin = [...document.querySelectorAll(`.plot.${plot.dataset.size}`)].find((other) => other.clientWidth);
      plot.dataset.width = twin ? twin.clientWidth : 640;
    } else delete plot.dataset.width;
  }
}

function redraw() {
  widths();
  all.forEach((part) => part.draw());
}

function start() {
  document.documentElement.classList.add("js");
  controls();
  for (const place of document.querySelectorAll("[data-swatch]")) place.replaceChildren(swatch(place.dataset.swatch, true));
  for (const figure of document.querySelectorAll("[data-chart]")) {
    const [part, group] = chartOf(figure);
    group.push(part);
    all.push(part);
  }
  if (state.accounting !== null) setAccounting(state.accounting);
  redraw();
  let width = document.documentElement.clientWidth;
  window.addEventListener("resize", () => {
    if (document.documentElement.clientWidth === width) return;
    width = document.documentElement.clientWidth;
    redraw();
  });
  window.addEventListener("beforeprint", () => {
    for (const words of document.querySelectorAll("details.words")) words.open = true;
    for (const plot of document.querySelectorAll(".plot")) Object.assign(plot.dataset, plot.dataset.size === "half" ? { width: 400 } : { width: 720, ratio: 0.33 });
    all.forEach((part) => part.draw());
  });
  window.addEventListener("afterprint", redraw);
}

start();
