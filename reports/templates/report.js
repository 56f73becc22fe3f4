const NARROW = 640; // px: below it a legend needs more rows than the plot can spare
const LEGEND_ROW = 15; // px: there is some room below a plot, and rows have 19
const PAGE_HEIGHT = 500; // px, of a figure on a landscape page, with its heading and its text
const MANY_TOGGLES = 6; // more than a reader wants to press one by one

const all = (selector, within = document) => [...within.querySelectorAll(selector)];
const isShown = (element) => element.offsetParent !== null;

// What the page holds is packed: deflate, then base64.

async function unpack(script) {
  const bytes = Uint8Array.from(atob(script.textContent), (one) => one.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  return new Response(stream).text();
}

const unpacked = new Map(); // by script element
async function textOf(script) {
  if (!unpacked.has(script)) unpacked.set(script, await unpack(script));
  return unpacked.get(script);
}
const documentOf = async (script) => JSON.parse(await textOf(script));

const plotly = unpack(document.querySelector("script.plotly")).then((code) => {
  const script = document.createElement("script");
  script.textContent = code;
  document.head.append(script);
});

// Figures.

const scriptOf = (plot) => plot.parentElement.querySelector("script.figure");

async function draw(plot) {
  await textOf(scriptOf(plot));
  if (plot.clientWidth) drawNow(plot); // else it was hidden meanwhile
}

// At once: a browser that prints does not wait.
function drawNow(plot) {
  const ink = getComputedStyle(document.documentElement).getPropertyValue("--ink").trim();
  const { data, layout } = JSON.parse(unpacked.get(scriptOf(plot)).replaceAll(INK, ink));
  const width = plot.clientWidth;
  if (width < NARROW) {
    layout.height += LEGEND_ROW * data.filter((one) => one.showlegend !== false).length;
    layout.legend.maxheight = 1; // else it gets a scroll bar of its own
    if (layout.legend.yref === "container") layout.legend.xref = "container";
  }
  plot.dataset.narrow = width < NARROW;
  if ("print" in document.documentElement.dataset) fitPaper(data, layout);
  const [menu] = layout.updatemenus ?? [];
  delete layout.updatemenus; // the page's own controls stand for them: a keyboard reaches those
  if (layout.meta?.toggles) Object.assign(layout.legend, { itemclick: false, itemdoubleclick: false }); // likewise
  plot.style.minHeight = `${layout.height}px`;
  Plotly.newPlot(plot, data, layout, {
    responsive: false, displaylogo: false,
    modeBarButtons: [["toImage", "resetScale2d"]], // dragging zooms
  });
  control(plot, menu);
  plot.dataset.drawn = "";
}

// As high as a page, and labels on one line, for which paper is wide enough.
function fitPaper(data, layout) {
  const share = Math.min(1, PAGE_HEIGHT / layout.height);
  layout.height *= share;
  for (const { marker } of data) { // an upright mark is as high as its row
    if (String(marker?.symbol).startsWith("line-ns")) marker.size *= share;
  }
  for (const axis of Object.values(layout)) {
    if (axis?.ticktext && axis.tickangle === undefined) {
      axis.ticktext = axis.ticktext.map((text) => text.replaceAll("<br>", " "));
    }
  }
}

// The controls of a figure as a form: what a reader chose of its menu outlives a drawing.

function control(plot, menu) {
  const place = plot.parentElement.querySelector(".controls"), chosen = place.querySelector("select")?.value;
  place.replaceChildren(...(menu ? [menuOf(plot, menu)] : []), ...togglesOf(plot));
  const select = place.querySelector("select");
  if (chosen === undefined || chosen === select.value) return;
  select.value = chosen;
  select.dispatchEvent(new Event("input"));
}

const plainText = (html) =>
  new DOMParser().parseFromString(String(html).replaceAll("<br>", "; "), "text/html").body.textContent;

function menuOf(plot, { buttons, active = 0 }) {
  const label = element("label", "", "Show "), select = element("select");
  label.append(select);
  select.append(...buttons.map(({ label }, number) => new Option(plainText(label), number)));
  select.value = active;
  select.addEventListener("input", () => Plotly.update(plot, ...structuredClone(buttons[select.value].args)));
  return label;
}

// Buttons that turn names on and off: a trace is shown while all names that it needs are on.
function* togglesOf(plot) {
  const off = new Set(), buttons = new Map();
  const turn = (names, isOn) => {
    for (const name of names) off[isOn ? "delete" : "add"](name);
    for (const [name, button] of buttons) button.setAttribute("aria-pressed", String(!off.has(name)));
    Plotly.restyle(plot, { visible: plot.data.map(({ meta }) => !meta?.needs?.some((name) => off.has(name))) });
  };
  for (const names of plot.layout.meta?.toggles ?? []) {
    if (names.length > MANY_TOGGLES) {
      yield pressable("all", "all", () => turn(names, true));
      yield pressable("all", "none", () => turn(names, false));
    }
    for (const name of names) {
      buttons.set(name, pressable("toggle", plainText(name), () => turn([name], off.has(name))));
      buttons.get(name).setAttribute("aria-pressed", "true");
      yield buttons.get(name);
    }
  }
}

function pressable(className, content, act) {
  const button = element("button", className, content);
  button.type = "button";
  button.addEventListener("click", act);
  return button;
}

const visible = () => all(".plot").filter(isShown);
const nextTask = () => new Promise((done) => setTimeout(done));

// The figures nearest to what the reader sees come first; between two, the page answers.
let turn = 0;
async function drawAll({ again = false } = {}) {
  const mine = ++turn;
  await Promise.all([plotly, ...visible().map((plot) => textOf(scriptOf(plot)))]); // for drawNow
  const distance = (plot) => Math.abs(plot.getBoundingClientRect().top - innerHeight / 3);
  const wanted = visible().filter((plot) => again || plot.dataset.drawn === undefined);
  for (const plot of wanted.sort((one, other) => distance(one) - distance(other))) {
    await nextTask();
    if (mine !== turn) return;
    if (again || plot.dataset.drawn === undefined) await draw(plot); // else it was printed
  }
}

function resize() {
  for (const plot of visible().filter((one) => one.dataset.drawn !== undefined)) {
    const crossed = plot.dataset.narrow !== String(plot.clientWidth < NARROW);
    if (crossed) draw(plot); else Plotly.Plots.resize(plot);
  }
}

// Parts of the page that are made when they are wanted.

function element(name, className = "", content = "") {
  const made = document.createElement(name);
  if (className) made.className = className;
  made.textContent = content;
  return made;
}

function header(title, scope = "col", className = "") {
  const made = element("th", className, title);
  made.scope = scope;
  return made;
}

function scrolling(content, label) {
  const box = element("div", "scroll");
  box.tabIndex = 0;
  box.setAttribute("role", "region");
  box.setAttribute("aria-label", label);
  box.append(content);
  return box;
}

// The annotated source.

const TITLES = ["line", "warp instructions", "share", "sectors per request / needed", "bank conflicts per access", "source"];
const WIDE = ["", "wide", "", "wide", "wide", ""]; // a telephone has no room for these columns

async function showSource(chapter) {
  const place = chapter.querySelector(".source");
  if (!place) return;
  const label = state.variant;
  const counts = (await documentOf(chapter.querySelector("script.counts")))[label];
  const listing = (await documentOf(document.querySelector("script.listings"))).find((one) => one.label === counts.listing);
  if (label !== state.variant) return; // another was chosen meanwhile
  place.replaceChildren(scrolling(sourceTable(listing, counts), `Source of ${label}`), element("p", "quiet", `${listing.file}: ${counts.basis}.`));
  showHottest(place.querySelector(".scroll"), counts);
}

// The head of a file says what it does, but where its time goes is further down.
function showHottest(box, counts) {
  const hottest = counts.lines.reduce((one, other) => (other[2] > one[2] ? other : one), [0, 0, 0])[0];
  const row = hottest && box.querySelector("tbody").rows[hottest - 1];
  if (row) box.scrollTop = row.offsetTop - box.clientHeight / 2;
}

function sourceTable(listing, counts) {
  const table = element("table", "code");
  const head = table.createTHead().insertRow();
  TITLES.forEach((title, place) => head.append(header(title, "col", WIDE[place])));
  const body = table.createTBody(), known = new Map(counts.lines.map((line) => [line[0], line]));
  listing.source.forEach((source, place) => body.append(sourceRow(listing, counts, place + 1, source, known.get(place + 1))));
  return table;
}

function sourceRow(listing, counts, number, source, line) {
  const row = element("tr");
  const name = header(String(number), "row");
  const code = element("td", "text");
  code.append(element("code", "", source));
  if (!line) {
    row.append(name, ...WIDE.slice(1, -1).map((one) => element("td", one)), code);
    return row;
  }
  const [, issued, share, shareText, sectors, wasted, conflicts, conflictShare, reasons] = line;
  row.append(name, element("td", "number wide", issued), heat(share, shareText),
    heat(wasted, sectors, "wide"), heat(conflictShare, conflicts, "wide"), code);
  for (const reason of reasons) code.append(element("p", "reason", `⚠ ${reason}`));
  const button = element("button", "line", String(number));
  button.type = "button";
  button.setAttribute("aria-expanded", "false");
  button.setAttribute("aria-label", `Line ${number}: machine code`);
  name.replaceChildren(button);
  row.addEventListener("click", (event) => { if (!getSelection().toString()) openLine(row, button, listing, counts, number); event.stopPropagation(); });
  return row;
}

// A number with a bar behind it, as long as its part of a whole.
function heat(part, content, className = "") {
  const cell = element("td", `number heat ${className}`, content);
  cell.style.setProperty("--heat", part);
  return cell;
}

function openLine(row, button, listing, counts, number) {
  const isOpen = button.getAttribute("aria-expanded") === "true";
  button.setAttribute("aria-expanded", String(!isOpen));
  if (isOpen) return void row.nextElementSibling.remove();
  const opened = element("tr", "sass"), cell = element("td");
  cell.colSpan = TITLES.length;
  const most = Math.max(...counts.executed), list = element("table", "code");
  const head = list.createTHead().insertRow();
  for (const title of ["address", "SASS", "issued by warps"]) head.append(header(title));
  const body = list.createTBody();
  listing.sass.forEach((text, place) => {
    if (listing.lines[place] !== number) return;
    const one = body.insertRow(), sass = element("td"), count = counts.executed[place];
    sass.append(element("code", "", text));
    one.append(element("td", "number", `0x${(16 * place).toString(16).padStart(4, "0")}`), sass,
      heat(count / most, count.toLocaleString("en")));
  });
  cell.append(list);
  opened.append(cell);
  row.after(opened);
}

// What the reader chose: a shape, a variant.

const state = { shape: "", variant: "" };
const chapters = all(".chapter");
const chapterOf = () => chapters.find((one) => one.dataset.name === state.shape) ?? chapters[0];

function show() {
  const chosen = chapterOf();
  for (const one of chapters) one.hidden = one !== chosen;
  if (chosen) showChapter(chosen);
  drawAll();
}

function showChapter(chapter) {
  state.shape = chapter.dataset.name;
  for (const link of all("a[data-section]")) {
    const id = `${link.dataset.section}-${chapter.dataset.shape}`;
    link.href = `#${id}`;
    link.parentElement.hidden = !document.getElementById(id); // a section without data is left out
  }
  const choices = all(".variant-choice", chapter), labels = [...choices[0]?.options ?? []].map((one) => one.value);
  if (!labels.includes(state.variant)) {
    state.variant = labels.includes(chapter.dataset.variant) ? chapter.dataset.variant : labels.at(-1) ?? "";
  }
  for (const choice of choices) choice.value = state.variant;
  for (const one of all(".of-variant", chapter)) one.hidden = one.dataset.variant !== state.variant;
  showSource(chapter);
}

// A link to a section shows the shape that it is of; a choice keeps the section.
function follow() {
  const target = document.getElementById(decodeURIComponent(location.hash.slice(1)));
  const owner = target?.closest(".chapter");
  if (!owner) return;
  if (owner.hidden) {
    state.shape = shapeChoice.value = owner.dataset.name;
    show();
  }
  target.scrollIntoView();
}

function keepSection() {
  const section = location.hash.slice(1).replace(/-\d+$/, "");
  const target = section && document.getElementById(`${section}-${chapterOf()?.dataset.shape}`);
  if (target) history.replaceState(null, "", `#${target.id}`);
}

const shapeChoice = document.getElementById("shape");
shapeChoice?.addEventListener("change", () => {
  state.shape = shapeChoice.value;
  show();
  keepSection();
});
for (const choice of all(".variant-choice")) {
  choice.addEventListener("change", () => { state.variant = choice.value; show(); });
}

if (shapeChoice) state.shape = shapeChoice.value; // a browser may restore an earlier choice
show();
follow();
addEventListener("hashchange", follow);
addEventListener("resize", resize);
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => drawAll({ again: true }));
addEventListener("beforeprint", () => {
  document.documentElement.dataset.print = "";
  if (window.Plotly) visible().filter((plot) => unpacked.has(scriptOf(plot))).forEach(drawNow);
});
addEventListener("afterprint", () => {
  delete document.documentElement.dataset.print;
  visible().filter((plot) => plot.dataset.drawn !== undefined).forEach(drawNow);
});
