const NARROW = 640; // px: below it a legend needs more rows than the plot can spare
const LEGEND_ROW = 19; // px

function draw(plot) {
  const ink = getComputedStyle(document.documentElement).getPropertyValue("--ink").trim();
  const source = plot.parentElement.querySelector("script").textContent;
  const figure = JSON.parse(source.replaceAll(INK, ink));
  const width = plot.clientWidth;
  if (width < NARROW) {
    figure.layout.height += LEGEND_ROW * figure.data.filter((one) => one.showlegend !== false).length / 2;
  }
  plot.dataset.narrow = width < NARROW;
  const drawn = Plotly.newPlot(plot, figure.data, figure.layout, {
    responsive: false, displaylogo: false,
    modeBarButtons: [["toImage", "resetScale2d"]], // dragging zooms
  });
  if (figure.data.some((one) => one.meta?.toggles)) {
    plot.removeAllListeners("plotly_legendclick"); // of an earlier drawing
    plot.removeAllListeners("plotly_legenddoubleclick");
    plot.on("plotly_legendclick", ({ curveNumber }) => toggle(plot, curveNumber));
    plot.on("plotly_legenddoubleclick", () => false);
  }
  return drawn;
}

// Where keys of the legend toggle names, a trace is shown while no name that it needs is off;
// of `needs_any`, one that is on is enough.
function toggle(plot, number) {
  const name = plot.data[number].meta?.toggles;
  if (!name) return false;
  const keys = plot.data.filter((one) => one.meta?.toggles);
  const off = new Set(keys.filter((one) => one.visible === "legendonly").map((one) => one.meta.toggles));
  if (!off.delete(name)) off.add(name);
  Plotly.restyle(plot, { visible: plot.data.map(({ meta }) => {
    if (meta?.toggles) return off.has(meta.toggles) ? "legendonly" : true;
    const isOff = (one) => off.has(one);
    return !meta?.needs?.some(isOff) && !(meta?.needs_any?.every(isOff) ?? false);
  }) });
  return false;
}

const visible = () => [...document.querySelectorAll(".chapter:not([hidden]) .plot")];
const drawAll = () => visible().forEach(draw);

function resize() {
  for (const plot of visible()) {
    const crossed = plot.dataset.narrow !== String(plot.clientWidth < NARROW);
    if (crossed) draw(plot); else Plotly.Plots.resize(plot);
  }
}

function show(shape) {
  for (const chapter of document.querySelectorAll(".chapter")) {
    chapter.hidden = chapter.dataset.shape !== shape;
  }
  drawAll();
}

const choice = document.getElementById("shape");
if (choice) {
  show(choice.value); // a browser may restore an earlier choice
  choice.addEventListener("change", () => show(choice.value));
} else {
  drawAll();
}
addEventListener("resize", resize);
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", drawAll);
addEventListener("beforeprint", () => { document.documentElement.dataset.print = ""; drawAll(); });
addEventListener("afterprint", () => { delete document.documentElement.dataset.print; drawAll(); });
