// Tables that sort by the column whose title is pressed. Without scripts they stay as they are.
function makeSortable(table) {
  const body = table.tBodies[0];
  const titles = [...table.tHead.rows[0].cells];
  titles.forEach((title, place) => {
    const button = document.createElement("button");
    button.type = "button";
    button.append(...title.childNodes);
    title.append(button);
    button.onclick = () => {
      const ascends = title.getAttribute("aria-sort") === "descending";
      titles.forEach((other) => other.removeAttribute("aria-sort"));
      title.setAttribute("aria-sort", ascends ? "ascending" : "descending");
      const key = (row) => {
        const cell = row.cells[place];
        return cell.dataset.v === undefined ? cell.textContent : Number(cell.dataset.v);
      };
      const order = (a, b) => (key(a) < key(b) ? -1 : key(a) > key(b) ? 1 : 0);
      const rows = [...body.rows].sort((a, b) => (ascends ? order(a, b) : order(b, a)));
      rows.forEach((row) => body.append(row));
    };
  });
}
document.querySelectorAll("table.sort").forEach(makeSortable);
