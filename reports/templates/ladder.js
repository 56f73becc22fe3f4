// Figures.

const NARROW = 720; // px: below it texts of a row stand above its bar
const state = { chosen: "", shape: 0 };
const isMain = (plot) => plot.parentElement.matches(".rows");
const isNarrow = (plot) => (plot.clientWidth || plot.parentElement.clientWidth) < NARROW;

figures.scriptOf = (plot) => isMain(plot)
  ? first(isNarrow(plot) ? "script.narrow" : "script.wide", plot.parentElement)
  : first("script.figure", plot.parentElement);
figures.change = (plot, data, layout) => {
  if (isMain(plot)) mark(layout);
  else highlight(data);
  plot.dataset.narrow = isNarrow(plot);
};

function mark(layout) {
  const row = layout.meta.labels.indexOf(state.chosen);
  for (const shape of layout.shapes) Object.assign(shape, { y0: row - 0.5, y1: row + 0.5 });
}

// The chosen rung stands out in the other figures too; cuBLAS keeps its colour.
function highlight(data) {
  const style = getComputedStyle(document.documentElement);
  const [chosen, grey, cublas] = ["--gain", "--s2", "--cost"].map((name) => style.getPropertyValue(name).trim());
  const colourOf = (label, now) => (now === cublas ? cublas : label === state.chosen ? chosen : grey);
  for (const trace of data) {
    const { meta, marker, line } = trace;
    if (meta?.label !== undefined) {
      const colour = colourOf(meta.label, marker.color);
      marker.color = colour;
      line.color = colour;
      trace.zorder = meta.label === state.chosen ? 1 : 0;
    }
    if (meta?.labels) {
      marker.size = meta.labels.map((label) => (label === state.chosen ? 14 : 10));
      marker.color = meta.labels.map((label, place) => colourOf(label, marker.color[place]));
      marker.line.color = marker.color;
    }
  }
}

const shown = () => all(".plot").filter((plot) => isMain(plot) || plot.closest("details").open);
const drawAgain = () => shown().forEach(draw);

// Rungs.

let rungs = {}; // [pane, sections] by label
const labels = () => Object.keys(rungs);

function choose(label, { isSeen = false } = {}) {
  if (!rungs[label] || label === state.chosen) return;
  state.chosen = label;
  [first("#pane").innerHTML, first("#detail").innerHTML] = rungs[label];
  all("#detail table.sort").forEach(makeSortable);
  linkSections();
  tellRow();
  drawAgain();
  history.replaceState(null, "", `#rung=${encodeURIComponent(label)}`);
  if (isSeen) first("#pane").scrollIntoView({ block: "nearest" });
}

// Some rungs, such as those that were not simulated, lack sections.
function linkSections() {
  for (const link of all("nav a")) link.hidden = !first(link.hash);
}

// A list for readers of screens: arrow keys choose a rung.
function listRungs() {
  const rows = first(".rows");
  rows.tabIndex = 0;
  rows.setAttribute("role", "listbox");
  rows.setAttribute("aria-label", "Rungs");
  const options = document.createElement("div");
  options.className = "options";
  for (const [place, label] of labels().entries()) {
    const option = document.createElement("span");
    option.id = `rung-${place}`;
    option.setAttribute("role", "option");
    option.textContent = label;
    options.append(option);
  }
  rows.append(options);
  rows.addEventListener("keydown", onKey);
  rows.addEventListener("click", onClick);
}

function tellRow() {
  const row = labels().indexOf(state.chosen);
  all(".options > *").forEach((option, place) => option.setAttribute("aria-selected", String(place === row)));
  first(".rows").setAttribute("aria-activedescendant", `rung-${row}`);
  for (const mark of all(".still .sel")) {
    mark.setAttribute("transform", `translate(0 ${(row - rowOfStill) * mark.getAttribute("height")})`);
  }
}
let rowOfStill = 0;

function onKey(event) {
  const row = labels().indexOf(state.chosen), last = labels().length - 1;
  const next = { ArrowDown: Math.min(row + 1, last), ArrowUp: Math.max(row - 1, 0), Home: 0, End: last }[event.key];
  if (next === undefined) return;
  event.preventDefault();
  choose(labels()[next]);
}

function onClick(event) {
  const plot = first(".rows .plot");
  const { margin, height } = plot.layout ?? {};
  if (!margin) return;
  const rowPx = (height - margin.t - margin.b) / labels().length;
  const row = Math.floor((event.clientY - plot.getBoundingClientRect().top - margin.t) / rowPx);
  if (labels()[row] !== undefined) choose(labels()[row], { isSeen: true });
}

// Shapes.

async function begin() {
  const main = first(".lad");
  for (const details of all("details.drawing")) {
    details.addEventListener("toggle", () => { if (details.open) draw(first(".plot", details)); });
  }
  state.chosen = main?.dataset.chosen ?? "";
  if (!main) return;
  draw(first(".rows .plot"));
  rungs = await documentOf(first("script.rungs"));
  rowOfStill = labels().indexOf(state.chosen);
  listRungs();
  tellRow();
}

async function showShape(place) {
  const htmls = await documentOf(first("script.shapes")), before = state.chosen;
  first("#of-shape").innerHTML = htmls[place];
  all("#of-shape table.sort").forEach(makeSortable);
  linkSections();
  await begin();
  choose(before);
}

const shapeChoice = first("#shape");
shapeChoice?.addEventListener("change", () => showShape(Number(shapeChoice.value)));
const wanted = () => decodeURIComponent((location.hash.match(/^#rung=(.+)/) ?? [])[1] ?? "");
const begun = begin().then(async () => {
  const label = wanted();
  if (shapeChoice && Number(shapeChoice.value)) await showShape(Number(shapeChoice.value)); // a browser restored it
  choose(label);
});
addEventListener("hashchange", () => choose(wanted()));
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", drawAgain);
