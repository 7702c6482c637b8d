"use strict";
(() => {
  const ledger = document.getElementById("ledger");
  if (!ledger) return;
  const body = ledger.tBodies[0];
  const heads = Array.from(ledger.tHead.rows[0].cells);
  const names = heads.map((head) => head.textContent);
  const rows = Array.from(body.rows);

  // Cells with data-v hold a number, empty where nothing is known; all cells of a column are alike.
  const { compare } = new Intl.Collator("en", { numeric: true });
  const valueOf = ({ dataset: { v }, textContent }) => (v === undefined ? textContent : v === "" ? -1 : Number(v));
  const sortBy = (head, column) => {
    const sign = head.getAttribute("aria-sort") === "ascending" ? -1 : 1;
    for (const other of heads) other.removeAttribute("aria-sort");
    head.setAttribute("aria-sort", sign < 0 ? "descending" : "ascending");
    const order = rows.map((row) => ({ row, value: valueOf(row.cells[column]) }));
    order.sort(({ value: a }, { value: b }) => sign * (typeof a === "number" ? a - b : compare(a, b)));
    body.append(...order.map((item) => item.row));
  };
  heads.forEach((head, column) => {
    const button = document.createElement("button");
    button.type = "button";
    button.append(...head.childNodes);
    head.append(button);
    button.addEventListener("click", () => sortBy(head, column));
  });

  const search = document.getElementById("search");
  const onlyBusts = document.getElementById("only-busts");
  const count = document.getElementById("shown");
  const filter = () => {
    const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
    let shown = 0;
    for (const row of rows) {
      const text = words.length ? row.textContent.toLowerCase() : "";
      row.hidden = (onlyBusts.checked && !row.classList.contains("hit")) || !words.every((word) => text.includes(word));
      shown += !row.hidden;
    }
    count.textContent = `${shown} of ${rows.length} shown`;
  };
  search.addEventListener("input", filter);
  onlyBusts.addEventListener("change", filter);
  document.getElementById("ledger-tools").hidden = false;
  filter();
  // A link to a row that the filter hides shows it.
  document.addEventListener("click", (event) => {
    const link = event.target.closest?.('a[href^="#r"]');
    const row = link && document.getElementById(link.hash.slice(1));
    if (row) row.hidden = false;
  });

  const chart = document.getElementById("chart");
  const left = Number(chart.dataset.left);
  const width = Number(chart.dataset.width);
  const cursor = chart.querySelector(".cursor");
  const readout = document.getElementById("readout");
  readout.textContent = "Point at the chart, or focus it and use the arrow keys, to read out a request.";
  let current = -1;
  const show = (place) => {
    const next = Math.max(0, Math.min(rows.length - 1, place));
    if (next === current) return;
    current = next;
    cursor.setAttribute("transform", `translate(${left + ((current + 0.5) * width) / rows.length})`);
    cursor.classList.add("on");
    const cells = Array.from(rows[current].cells, (cell, column) => [names[column], cell.textContent]);
    const link = document.createElement("a");
    link.href = `#${rows[current].id}`;
    link.textContent = `Request ${cells[0][1]}`;
    const told = cells.slice(1).filter(([, text]) => text && text !== "–");
    readout.replaceChildren(link, `: ${told.map(([name, text]) => `${name} ${text}`).join(", ")}`);
  };
  const point = (event) => {
    const box = chart.getBoundingClientRect();
    const x = ((event.clientX - box.left) / box.width) * chart.viewBox.baseVal.width;
    show(Math.floor(((x - left) / width) * rows.length));
  };
  chart.addEventListener("pointermove", point);
  chart.addEventListener("pointerdown", point);
  chart.addEventListener("keydown", (event) => {
    const step = { ArrowLeft: -1, ArrowRight: 1, PageUp: -10, PageDown: 10, Home: -Infinity, End: Infinity }[event.key];
    if (step === undefined) return;
    event.preventDefault();
    show(current + step);
  });
})();
