// Selecting rows of the queue. Without it every row still has its checkbox, and the bar its buttons.
"use strict";

(() => {
  const list = () => document.querySelector("[data-live-part=list]");
  const boxes = () => [...document.querySelectorAll("tr[data-row] input[name=call]")];
  const bar = () => document.querySelector("[data-bulk]");
  const pageBox = () => document.querySelector("[data-select-page]");
  const wholeBox = () => bar()?.querySelector("input[name=scope]");
  let last = null;

  const show = () => {
    if (!bar()) return;
    const all = boxes();
    const many = all.filter((box) => box.checked).length;
    for (const box of all) box.closest("tr").setAttribute("aria-selected", String(box.checked));
    const page = pageBox();
    page.checked = many > 0 && many === all.length;
    page.indeterminate = many > 0 && many < all.length;
    const whole = wholeBox();
    // All that match can be taken once this page is: whoever deselects a row means fewer.
    if (whole && !page.checked) whole.checked = false;
    const wholeWords = bar().querySelector("[data-whole]");
    if (wholeWords) wholeWords.hidden = !page.checked;
    const words = whole?.checked ? "All that match are selected" : `${many} selected`;
    const said = bar().querySelector("[data-selected]");
    if (said.textContent !== words) said.textContent = words;
    bar().hidden = many === 0;
  };

  const select = (box, checked) => { box.checked = checked; last = box; };

  // From the row that was selected last to this one, both included, as lists do it everywhere.
  const selectRange = (box) => {
    const all = boxes();
    const from = Math.max(0, all.indexOf(last));
    const to = all.indexOf(box);
    for (const one of all.slice(Math.min(from, to), Math.max(from, to) + 1)) one.checked = true;
    last = box;
  };

  document.addEventListener("change", (event) => {
    if (event.target.matches("[data-select-page]")) for (const box of boxes()) box.checked = event.target.checked;
    if (event.target.matches("[data-select-page], input[name=call], [data-bulk] input[name=scope]")) show();
  });

  document.addEventListener("click", (event) => {
    const box = event.target.closest?.("tr[data-row] input[name=call]");
    if (!box) return;
    if (event.shiftKey && last && box.checked) selectRange(box);
    last = box;
    show();
  });

  const cursorBox = () => (document.activeElement.closest?.("tr[data-row]") ?? document.querySelector("tr[data-row].cursor"))?.querySelector("input[name=call]");
  document.addEventListener("keydown", (event) => {
    const ranged = event.shiftKey && event.key !== event.key.toLowerCase();
    if (keysRest(event) || keyOf[ranged ? event.key.toLowerCase() : event.key] !== "x") return;
    const box = cursorBox();
    if (!box) return;
    if (ranged) selectRange(box);
    else select(box, !box.checked);
    show();
  });

  // Without a selection a button of the bar means the row that one stands on.
  document.addEventListener("click", (event) => {
    const button = event.target.closest?.("[data-bulk] button[data-key]");
    if (!button || boxes().some((box) => box.checked)) return;
    const box = cursorBox();
    if (!box) { event.preventDefault(); say("No row is selected"); return; }
    select(box, true);
    show();
  });

  // The bar is in front of the list: a row that takes the focus behind it is brought out (SC 2.4.11).
  document.addEventListener("focusin", (event) => {
    const front = bar();
    if (!front || front.hidden || front.contains(event.target) || !list()?.contains(event.target)) return;
    requestAnimationFrame(() => {
      const over = event.target.getBoundingClientRect().bottom + 8 - front.getBoundingClientRect().top;
      if (over > 0 && event.target.offsetHeight < 200) window.scrollBy(0, over);
    });
  });

  // A list that is shown anew keeps what is as it was; a row that changed is looked at again first.
  const kept = new Map();
  document.addEventListener("click", (event) => {
    if (!event.target.closest("[data-live-news] button")) return;
    kept.clear();
    for (const box of boxes()) if (box.checked) kept.set(box.value, true);
  }, true);
  document.addEventListener("htmx:afterSettle", (event) => {
    if (event.target !== list()) return;
    for (const element of list().querySelectorAll("[data-needs-script]")) element.hidden = false;
    for (const box of boxes()) box.checked = kept.has(box.value);
    last = null;
    show();
  });

  for (const element of document.querySelectorAll("[data-needs-script]")) element.hidden = false;
  show();
})();
