const all = (selector, within = document) => [...within.querySelectorAll(selector)];
const first = (selector, within = document) => within.querySelector(selector);

// What the page holds is packed: deflate, then base64.
const unpacked = new Map(); // by script element
async function unpack(script) {
  const bytes = Uint8Array.from(atob(script.textContent), (one) => one.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  return new Response(stream).text();
}
function textOf(script) {
  if (!unpacked.has(script)) unpacked.set(script, unpack(script));
  return unpacked.get(script);
}
const documentOf = async (script) => JSON.parse(await textOf(script));

const plotly = textOf(first("script.plotly")).then((code) => {
  const script = document.createElement("script");
  script.textContent = code;
  document.head.append(script);
});

// The colours of a figure are those of the light scheme.
function coloured(json) {
  const style = getComputedStyle(document.documentElement);
  return Object.entries(COLOURS).reduce(
    (found, [name, colour]) => found.replaceAll(`"${colour}"`, `"${style.getPropertyValue(`--${name}`).trim()}"`), json);
}

// What a page may set: where the JSON of a figure is, and what changes in it before it is drawn.
const figures = {
  scriptOf: (plot) => first("script.figure", plot.parentElement),
  change: () => {},
};

// A figure is drawn once at a time: Plotly fails on one that it is still drawing.
const drawing = new WeakMap();
function draw(plot) {
  const next = (drawing.get(plot) ?? Promise.resolve()).then(() => drawNow(plot));
  drawing.set(plot, next);
  return next;
}

async function drawNow(plot) {
  if (!plot.isConnected) return; // of a shape that is no longer shown
  const json = await textOf(figures.scriptOf(plot));
  await plotly;
  const { data, layout } = JSON.parse(coloured(json));
  figures.change(plot, data, layout);
  plot.hidden = false;
  plot.style.minHeight = `${layout.height}px`;
  layout.width = plot.clientWidth; // a figure keeps the width that it had
  await Plotly.react(plot, data, layout, { responsive: false, displayModeBar: false });
  plot.parentElement.classList.add("drawn");
  plot.dataset.drawn = "";
}

addEventListener("resize", () => all(".plot[data-drawn]").filter((plot) => plot.checkVisibility()).forEach(draw));
