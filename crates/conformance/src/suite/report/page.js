const detail = document.getElementById("detail");
const map = document.getElementById("map");
let chosen = null;
function show(button) {
  detail.textContent = button.dataset.detail;
  detail.hidden = false;
}
map.addEventListener("mouseover", (event) => {
  const button = event.target.closest("button");
  if (button) show(button);
  else if (chosen) show(chosen);
});
map.addEventListener("click", (event) => {
  const button = event.target.closest("button");
  if (!button) return;
  if (chosen) chosen.classList.remove("chosen");
  chosen = button;
  chosen.classList.add("chosen");
  show(button);
});
document.getElementById("filter").addEventListener("input", (event) => {
  for (const row of map.tBodies[0].rows) row.hidden = !row.dataset.op.includes(event.target.value);
});
