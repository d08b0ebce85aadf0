// What pages gain with script: times that stay true, modal dialogs, copying, keys.
// Every page works without it; an element that needs it is hidden until it has run.
"use strict";

const TICK_MILLISECONDS = 10_000;
const KEYS_SETTING = "counterfoil-keys";

const remembered = {
  get(name) { try { return localStorage.getItem(name); } catch { return null; } },
  set(name, value) { try { localStorage.setItem(name, value); } catch { /* Storage may be off. */ } },
};

const live = document.getElementById("live");
const say = (sentence) => { if (live) live.textContent = sentence; };

// ── times ──
// Deadlines are judged by the server's clock, so this computer's clock is only used for what has
// passed since the page was made.
const madeAt = performance.now();
const serverNow = Date.parse(document.querySelector("meta[name=desk-now]")?.content ?? "");
const now = () => (Number.isNaN(serverNow) ? Date.now() : serverNow + performance.now() - madeAt);

// The same words as effects/times.py: two units, cut and never rounded up.
const durationWords = (seconds) => {
  const whole = Math.max(0, Math.floor(seconds));
  const two = (big, word, small, smallWord, pad) => {
    const rest = Math.floor((whole % big) / small);
    const head = `${Math.floor(whole / big)} ${word}`;
    return rest ? `${head} ${String(rest).padStart(pad, "0")} ${smallWord}` : head;
  };
  if (whole < 60) return `${whole} s`;
  if (whole < 3600) return `${Math.floor(whole / 60)} m`;
  if (whole < 86_400) return two(3600, "h", 60, "m", 2);
  if (whole < 14 * 86_400) return two(86_400, "d", 3600, "h", 1);
  return `${Math.floor(whole / 86_400)} d`;
};

const relativeWords = (instant) => {
  const seconds = (instant - now()) / 1000;
  if (Math.abs(seconds) < 1) return "now";
  return seconds > 0 ? `in ${durationWords(seconds)}` : `${durationWords(-seconds)} ago`;
};

const tick = () => {
  if (document.hidden) return;
  for (const time of document.querySelectorAll("time[data-relative]")) {
    const words = relativeWords(Date.parse(time.dateTime));
    if (time.textContent !== words) time.textContent = words;
  }
};

const countDown = () => {
  for (const time of document.querySelectorAll("time[data-countdown]")) {
    const seconds = Math.max(0, Math.ceil((Date.parse(time.dateTime) - now()) / 1000));
    if (time.textContent !== String(seconds)) time.textContent = String(seconds);
  }
};

// ── dialogs, copying, small switches ──
const openAsModal = (dialog) => { dialog.close(); dialog.showModal(); };

const copyFrom = (id) => {
  const text = document.getElementById(id)?.textContent.trim() ?? "";
  navigator.clipboard.writeText(text).then(() => say("Copied"), () => say("The browser refused to copy"));
};

const prepare = (root) => {
  for (const element of root.querySelectorAll("[data-copy][hidden], [data-open][hidden], [data-dismiss][hidden]")) {
    element.hidden = false;
  }
  for (const dialog of root.querySelectorAll("dialog[open][data-modal]")) if (!dialog.matches(":modal")) openAsModal(dialog);
  for (const field of root.querySelectorAll("[data-zone-of-browser]")) {
    field.value ||= Intl.DateTimeFormat().resolvedOptions().timeZone;
  }
  root.querySelector("[data-focus]")?.focus();
};

document.addEventListener("click", (event) => {
  const element = event.target.closest("[data-copy], [data-open], [data-close], [data-dismiss]");
  if (!element) return;
  if (element.dataset.copy) copyFrom(element.dataset.copy);
  else if (element.dataset.open) {
    element.closest("[popover]")?.hidePopover();
    document.getElementById(element.dataset.open)?.showModal();
  } else if ("dismiss" in element.dataset) element.closest(".toast-s")?.remove();
  // A dialog that has an address is closed by following the link, so the address is right again.
  else if (!element.hasAttribute("href")) element.closest("dialog")?.close();
});

document.addEventListener("cancel", (event) => {
  const way = event.target.querySelector?.("a[data-close][href]");
  if (way) { event.preventDefault(); way.click(); }
}, true);

// ── keys ── one switch turns them off (WCAG 2.1.4); none of them commits a decision.
const rows = () => [...document.querySelectorAll("tr[data-row]")];
const moveCursor = (step) => {
  const all = rows();
  if (!all.length) return;
  const at = all.findIndex((row) => row.classList.contains("cursor"));
  const next = Math.max(0, Math.min(all.length - 1, at + step));
  all[at]?.classList.remove("cursor");
  all[next].classList.add("cursor");
  all[next].querySelector("a.main")?.focus();
};

const goTo = (key) => document.querySelector(`.rail a[data-go="${CSS.escape(key)}"]`)?.click();

// An element with data-key="a" is pressed by its key; a radio button is only chosen and focused.
const press = (key) => {
  const element = document.querySelector(`[data-key="${CSS.escape(key)}"]:not(:disabled)`);
  if (!element) return;
  if (element.type === "radio") { element.checked = true; element.dispatchEvent(new Event("change", { bubbles: true })); }
  else element.click();
  element.focus();
};

const typing = (target) => target.closest("input:not([type=checkbox], [type=radio]), textarea, select, [contenteditable]");
let afterG = false;

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || typing(event.target)) return;
  if (remembered.get(KEYS_SETTING) === "off" || document.querySelector("dialog[open]")) return;
  if (afterG) { afterG = false; goTo(event.key); return; }
  if (event.key === "g") afterG = true;
  else if (event.key === "?") document.getElementById("keys")?.showModal();
  else if (event.key === "/") {
    const field = document.querySelector("input[type=search]");
    if (field) { event.preventDefault(); field.focus(); }
  } else if (event.key === "j") moveCursor(1);
  else if (event.key === "k") moveCursor(-1);
  else if (/^[1-9a-z]$/.test(event.key)) press(event.key);
});

const keysSwitch = document.getElementById("keys-on");
if (keysSwitch) {
  keysSwitch.checked = remembered.get(KEYS_SETTING) !== "off";
  keysSwitch.addEventListener("change", () => remembered.set(KEYS_SETTING, keysSwitch.checked ? "on" : "off"));
}

prepare(document);
document.addEventListener("htmx:afterSettle", (event) => { prepare(event.target); tick(); });
document.addEventListener("visibilitychange", tick);
setInterval(tick, TICK_MILLISECONDS);
setInterval(countDown, 1000);
