// What the pages of a call gain with script.
// Keeps a call with the person who works on its page: a take of ten minutes is renewed while the tab
// is in sight and something was done on it. It warns before it ends, and takes nothing by itself.
"use strict";

(() => {
  const EVERY_MILLISECONDS = 120_000;
  const WARN_MILLISECONDS = 60_000;
  const LOOK_MILLISECONDS = 5_000;

  // Its end is judged by the server's clock; this computer's only says what has passed since.
  const madeAt = Date.parse(document.querySelector("meta[name=desk-now]")?.content ?? "");
  const ahead = Number.isNaN(madeAt) ? 0 : madeAt - Date.now();
  let keptAt = Date.now();
  let doneAt = Date.now();
  let until = null;
  const own = () => document.querySelector("[data-take]");
  const warning = () => document.querySelector("[data-take-warning]");

  for (const kind of ["keydown", "pointerdown", "input", "wheel"]) {
    document.addEventListener(kind, () => { doneAt = Date.now(); }, { passive: true });
  }

  const keep = async () => {
    keptAt = Date.now();
    const headers = JSON.parse(document.body.getAttribute("hx-headers") ?? "{}");
    try {
      const response = await fetch(own().dataset.take, { method: "POST", headers, redirect: "manual" });
      if (response.ok) until = Date.parse((await response.json()).until);
    } catch { /* Away for a moment: the next look tries again. */ }
  };

  const look = () => {
    if (!own()) return;
    const ends = Math.max(until ?? 0, Date.parse(own().dataset.until));
    const busy = !document.hidden && doneAt > keptAt;
    if (busy && Date.now() - keptAt >= EVERY_MILLISECONDS) keep();
    const left = ends - Date.now() - ahead;
    warning().hidden = left > WARN_MILLISECONDS || left <= 0;
  };
  setInterval(look, LOOK_MILLISECONDS);

  // ── a held decision's ring, reasons of the runbook, printing ──
  const now = () => Date.now() + ahead;
  const turn = () => {
    for (const ring of document.querySelectorAll("[data-ring]")) {
      const ends = Date.parse(ring.closest(".ringbox").querySelector("time").dateTime);
      const share = Math.max(0, Math.min(100, (ends - now()) / 10 / Number(ring.dataset.ring)));
      ring.setAttribute("stroke-dasharray", `${share.toFixed(1)} 100`);
    }
  };
  setInterval(turn, 1000);

  const unhide = () => { for (const button of document.querySelectorAll("[data-fill][hidden], [data-print][hidden]")) button.hidden = false; };
  unhide();
  document.addEventListener("htmx:afterSettle", unhide);
  document.addEventListener("click", (event) => {
    const button = event.target.closest("[data-fill], [data-print]");
    if (!button) return;
    if ("print" in button.dataset) { window.print(); return; }
    const field = document.getElementById(button.dataset.fill);
    field.value = field.value.trim() ? `${field.value.trimEnd()} ${button.textContent.trim()}` : button.textContent.trim();
    field.focus();
  });
})();
