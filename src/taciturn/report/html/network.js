// The network: sites and links. The worst site of the chosen accounting is marked; a text describes the chosen site.

function networkChart(figure) {
  const { names, edges, places, samples } = data.network;
  const plot = figure.querySelector(".plot");
  const about = figure.querySelector(".about");
  let mark = () => {};

  function draw() {
    const width = Math.max(260, Number(plot.dataset.width) || plot.clientWidth || 640);
    const many = names.length > 24;
    const span = places.map(([, y]) => y).reduce(([a, b], y) => [Math.min(a, y), Math.max(b, y)], [1, 0]);
    const side = Math.min(width - 110, many ? 420 : 320);
    const height = Math.round(Math.max(110, side * (span[1] - span[0]) + 90));
    const r = many ? 5 : 10;
    const at = places.map(([x, y]) => [width / 2 + (x - 0.5) * side, height / 2 + (y - 0.5) * side]);
    const root = svg("svg", { viewBox: `0 0 ${width} ${height}`, "aria-hidden": "true", focusable: "false" });
    const links = edges.map(([i, j]) => svg("line", { class: many ? "link many" : "link", x1: at[i][0], y1: at[i][1], x2: at[j][0], y2: at[j][1], "data-ends": `${i} ${j}` }));
    root.append(...links);
    const sites = at.map(([x, y], i) => drawSite(i, x, y, r, !many, [width / 2, height / 2]));
    root.append(...sites);
    plot.replaceChildren(root);
    mark = () => markSites(sites, links, many);
    point();
  }

  function point() {
    mark();
    about.replaceChildren(...describe(seen()));
  }

  function drawSite(i, x, y, r, named, centre) {
    const group = svg("g", { class: "site", "data-site": String(i) }, svg("circle", { class: "ring", cx: x, cy: y, r: r + 4, fill: "none", stroke: "none" }), svg("circle", { cx: x, cy: y, r }));
    const [dx, dy] = away(x - centre[0], y - centre[1]);
    const anchor = dx > 0.35 ? "start" : dx < -0.35 ? "end" : "middle";
    group.append(svg("text", { class: "strong halo", x: x + dx * (r + 9), y: y + dy * (r + 12) + 4, "text-anchor": anchor, "data-always": named ? "yes" : "no" }, names[i]));
    group.addEventListener("pointerenter", () => peek(i));
    group.addEventListener("pointerleave", () => peek(null));
    group.addEventListener("click", () => setSite(i));
    return group;
  }

  function describe(site) {
    const worst = worstSites();
    if (site === null) {
      const which = (runs) => (worst.size > 1 ? ` (${runs.join("; ")})` : "");
      const lines = [...worst].map(([i, runs]) => names[i] + which(runs));
      return [html("p", {}, lines.length ? `Marked: the site that spent most, ${lines.join(", ")}.` : severalCosts() ? "No site spent more than another." : "")];
    }
    const degree = edges.filter((edge) => edge.includes(site)).length;
    const facts = [`${names[site]}: ${degree} ${degree === 1 ? "neighbour" : "neighbours"}`];
    if (samples.length) facts.push(`${samples[site].toLocaleString("en-GB")} records`);
    const accounting = chosen();
    const spent = accounting ? accounting.sites.map((costs) => `${data.names.length > 1 ? `${costs.name} ` : ""}${written(number(costs.totals[site]), "bound")}`) : [];
    return [html("p", {}, `${facts.join(", ")}.${spent.length ? ` Spent (${accounting.short}): ${spent.join("; ")}.` : ""}`)];
  }

  return { draw, point };
}

function away(dx, dy) {
  const length = Math.hypot(dx, dy);
  return length < 1e-6 ? [0, -1] : [dx / length, dy / length];
}

const finite = (costs) => costs.totals.map(number).filter(Number.isFinite);

// Whether the page knows the cost of more than one site: the report of a single site does not.
function severalCosts() {
  return (chosen()?.sites ?? []).some((costs) => finite(costs).length > 1);
}

// For each worst site, the runs in which it is the worst; empty if all sites spent the same.
function worstSites() {
  const found = new Map();
  for (const costs of chosen()?.sites ?? []) {
    const totals = finite(costs);
    if (state.hidden.has(costs.name) || totals.length < 2) continue;
    if (Math.max(...totals) <= Math.min(...totals) * (1 + 1e-9)) continue;
    const site = worstOf(costs);
    found.set(site, [...(found.get(site) || []), costs.name]);
  }
  return found;
}

function markSites(sites, links, many) {
  const worst = worstSites();
  const site = seen();
  sites.forEach((group, i) => {
    group.setAttribute("class", `site${worst.has(i) ? " worst" : ""}${site === i ? " chosen" : ""}`);
    const label = group.querySelector("text");
    label.setAttribute("visibility", label.dataset.always === "yes" || worst.has(i) || site === i ? "visible" : "hidden");
  });
  for (const link of links) {
    const near = site !== null && link.dataset.ends.split(" ").includes(String(site));
    link.setAttribute("class", `link${many ? " many" : ""}${near ? " near" : ""}`);
  }
}
