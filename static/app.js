// What pages gain with script: times that stay true, modal dialogs, copying, keys.
// Every page works without it; an element that needs it is hidden until it has run.
"use strict";

const TICK_MILLISECONDS = 10_000;

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
  nameKeys(root);
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

// ── keys ── one switch turns them off (WCAG 2.1.4); none of them commits a decision. Pages know a
// key by its usual name, data-key="a"; the sheet says which key this person has for it.
const keySheet = document.getElementById("keys");
const keyOf = JSON.parse(keySheet?.dataset.keys ?? "{}");
const ownKey = (usual) => Object.keys(keyOf).find((key) => keyOf[key] === usual) ?? "";
const typing = (target) => target.closest("input:not([type=checkbox], [type=radio]), textarea, select, [contenteditable]");
const keysRest = (event) => event.ctrlKey || event.metaKey || event.altKey || typing(event.target)
  || keySheet?.dataset.keysOn !== "yes" || document.querySelector("dialog[open]") !== null;
// The usual key of what was pressed, or nothing.
const usualKey = (event) => (keysRest(event) ? "" : keyOf[event.key] ?? "");

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

// An element with data-key="a" is pressed by its key; a radio button is only chosen, a field focused.
const press = (usual) => {
  const element = document.querySelector(`[data-key="${CSS.escape(usual)}"]:not(:disabled)`);
  if (!element) return false;
  if (element.type === "radio") { element.checked = true; element.dispatchEvent(new Event("change", { bubbles: true })); }
  else if (!element.matches("textarea, input")) element.click();
  for (let around = element.parentElement?.closest("details:not([open])"); around; around = around.parentElement?.closest("details:not([open])")) around.open = true;
  element.focus();
  return true;
};

let afterG = false;
document.addEventListener("keydown", (event) => {
  // Inside a dialog its form is sent by two keys at once, never by one.
  if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
    const form = event.target.closest?.("dialog[open] form[method=post]") ?? document.querySelector("dialog[open] form[method=post]");
    if (form) { event.preventDefault(); form.requestSubmit(form.querySelector("footer button[type=submit]") ?? undefined); }
    return;
  }
  if (keysRest(event)) return;
  if (afterG) { afterG = false; goTo(event.key); return; }
  const usual = usualKey(event);
  if (usual === "g") afterG = true;
  else if (usual === "?") keySheet.showModal();
  else if (usual === "/") {
    const field = [...document.querySelectorAll("input[type=search]")].find((one) => one.offsetParent !== null);
    if (field) { event.preventDefault(); field.focus(); field.select(); }
  } else if (usual === "j") moveCursor(1);
  else if (usual === "k") moveCursor(-1);
  else if (usual && press(usual)) event.preventDefault();
});

// The switch on the sheet is the same as on the page of keys, and is remembered there.
document.querySelector("[data-keys-switch]")?.addEventListener("change", (event) => {
  const form = event.currentTarget;
  keySheet.dataset.keysOn = event.target.checked ? "yes" : "no";
  fetch(form.action, { method: "POST", body: new FormData(form), redirect: "manual" }).catch(() => say("The switch could not be kept"));
});

// Hints beside buttons name the key that this person has.
const nameKeys = (root) => {
  for (const hint of root.querySelectorAll("[data-key-hint]")) { hint.textContent = ownKey(hint.dataset.keyHint); hint.hidden = !hint.textContent; }
  for (const element of root.querySelectorAll("[data-key]")) {
    const key = keySheet?.dataset.keysOn === "yes" ? ownKey(element.dataset.key) : "";
    const hint = element.querySelector("kbd") ?? element.closest("label")?.querySelector("kbd");
    if (hint) { hint.textContent = key; hint.hidden = !key; }
    if (element.hasAttribute("aria-keyshortcuts")) {
      if (key) element.setAttribute("aria-keyshortcuts", key); else element.removeAttribute("aria-keyshortcuts");
    }
  }
};

prepare(document);
document.addEventListener("htmx:afterSettle", (event) => { prepare(event.target); tick(); });
document.addEventListener("visibilitychange", tick);
setInterval(tick, TICK_MILLISECONDS);
setInterval(countDown, 1000);
