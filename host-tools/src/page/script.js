"use strict";
// A click on a step, in the picture of the arena, the graph or the table, marks it in all three and shows its row below.
const detail = document.getElementById("detail");
function choose(step) {
  for (const old of document.querySelectorAll(".on")) old.classList.remove("on");
  for (const part of document.querySelectorAll(`[data-step="${step}"]`)) part.classList.add("on");
  const row = document.querySelector(`tr[data-step="${step}"]`);
  const names = [...document.querySelectorAll("#steps th")].map((head) => head.textContent);
  const list = document.createElement("dl");
  [...row.cells].forEach((cell, column) => {
    const pair = document.createElement("div"), term = document.createElement("dt"), value = document.createElement("dd");
    term.textContent = names[column];
    value.textContent = cell.textContent;
    pair.append(term, value);
    list.append(pair);
  });
  detail.replaceChildren(list);
  detail.dataset.shows = step;
  detail.classList.add("open");
}
function close() {
  detail.classList.remove("open");
  for (const old of document.querySelectorAll(".on")) old.classList.remove("on");
}
function sort(head) {
  const body = document.querySelector("#steps tbody"), column = head.cellIndex;
  const down = head.dataset.sort === "down";
  head.dataset.sort = down ? "up" : "down";
  const value = (row) => row.cells[column].dataset.v ?? row.cells[column].textContent;
  const rows = [...body.rows].sort((a, b) => value(a).localeCompare(value(b), "en", { numeric: true }) * (down ? -1 : 1));
  body.append(...rows);
}
document.addEventListener("click", (event) => {
  const head = event.target.closest("#steps th[data-sort]");
  if (head) return sort(head);
  const part = event.target.closest("[data-step]");
  if (part) choose(part.dataset.step);
  else if (!event.target.closest("#detail")) close();
});
document.addEventListener("keydown", (event) => { if (event.key === "Escape") close(); });
