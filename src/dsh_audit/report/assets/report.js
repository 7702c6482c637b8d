"use strict";
(() => {
  const ledger = document.getElementById("ledger");
  const rows = ledger ? Array.from(ledger.tBodies[0].rows) : [];

  const valueOf = (row, column) => {
    const cell = row.cells[column];
    const number = cell.dataset.v;
    return number === undefined ? cell.textContent : number === "" ? -Infinity : Number(number);
  };
  const sortBy = (head, column) => {
    const down = head.getAttribute("aria-sort") === "ascending";
    for (const other of ledger.tHead.rows[0].cells) other.removeAttribute("aria-sort");
    head.setAttribute("aria-sort", down ? "descending" : "ascending");
    const sign = down ? -1 : 1;
    const order = rows.map((row, place) => ({ row, place, value: valueOf(row, column) }));
    order.sort((a, b) => (a.value < b.value ? -sign : a.value > b.value ? sign : a.place - b.place));
    ledger.tBodies[0].append(...order.map((item) => item.row));
  };

  const search = document.getElementById("search");
  const onlyBusts = document.getElementById("only-busts");
  const count = document.getElementById("shown");
  const filter = () => {
    const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
    let shown = 0;
    for (const row of rows) {
      const text = row.textContent.toLowerCase();
      const fits = (!onlyBusts.checked || row.classList.contains("hit")) && words.every((word) => text.includes(word));
      row.hidden = !fits;
      shown += fits;
    }
    count.textContent = `${shown} of ${rows.length} requests`;
  };
  if (ledger) {
    Array.from(ledger.tHead.rows[0].cells).forEach((head, column) => {
      const button = document.createElement("button");
      button.type = "button";
      button.append(...head.childNodes);
      head.append(button);
      button.addEventListener("click", () => sortBy(head, column));
    });
    document.getElementById("ledger-tools").hidden = false;
    search.addEventListener("input", filter);
    onlyBusts.addEventListener("change", filter);
    filter();
  }

  const chart = document.getElementById("chart");
  if (chart && rows.length) {
    const plot = { left: Number(chart.dataset.left), width: Number(chart.dataset.width) };
    const cursor = chart.querySelector(".cursor");
    const readout = document.getElementById("readout");
    const byIndex = rows.slice();
    let current = -1;
    const show = (place) => {
      current = Math.max(0, Math.min(byIndex.length - 1, place));
      const x = plot.left + ((current + 0.5) * plot.width) / byIndex.length;
      cursor.setAttribute("x1", x);
      cursor.setAttribute("x2", x);
      cursor.style.visibility = "visible";
      readout.textContent = byIndex[current].dataset.say;
    };
    chart.addEventListener("pointermove", (event) => {
      const box = chart.getBoundingClientRect();
      const x = ((event.clientX - box.left) / box.width) * chart.viewBox.baseVal.width;
      show(Math.floor(((x - plot.left) / plot.width) * byIndex.length));
    });
    chart.addEventListener("keydown", (event) => {
      const step = { ArrowLeft: -1, ArrowRight: 1, PageUp: -10, PageDown: 10, Home: -1e9, End: 1e9 }[event.key];
      if (step === undefined) return;
      event.preventDefault();
      show(current + step);
    });
    chart.addEventListener("click", () => {
      if (current < 0) return;
      const row = byIndex[current];
      row.hidden = false;
      row.scrollIntoView({ block: "center" });
    });
  }
})();
