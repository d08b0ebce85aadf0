// Keeps a page true while it is open. The socket only says "look"; what is shown comes from the
// page's own address, so the server asks every permission again. Rows never move by themselves.
"use strict";

(() => {
  const bar = document.querySelector("[data-live]");
  if (!bar) return;

  const PAUSED_SETTING = "counterfoil-live";
  const BETWEEN_LOOKS_MILLISECONDS = 1_000;
  const SILENCE_MILLISECONDS = 60_000;
  const HIDDEN_MILLISECONDS = 300_000;
  const AGAIN_MILLISECONDS_MAX = 30_000;
  const ENDED = {
    4401: "You are signed out. Reload the page to sign in.",
    4403: "You are no longer a member of this workspace.",
    4404: "This call is not in your workspace.",
    4429: "Too many pages of yours are live. Close some, then reload.",
  };
  const word = bar.querySelector("[data-live-word]");
  const news = bar.querySelector("[data-live-news]");
  const pause = bar.querySelector("[data-live-pause]");
  const isQueue = bar.dataset.live === "queue";

  let socket = null;
  let tries = 0;
  let heardAt = 0;
  let lookedAt = -BETWEEN_LOOKS_MILLISECONDS;
  let lookTimer = 0;
  let againTimer = 0;
  let hiddenTimer = 0;
  let looking = false;
  let lookOnceMore = false;
  let ended = false;
  let fetched = null;

  const remember = (value) => { try { localStorage.setItem(PAUSED_SETTING, value); } catch { /* Storage may be off. */ } };
  const remembered = () => { try { return localStorage.getItem(PAUSED_SETTING); } catch { return null; } };
  let paused = remembered() === "paused";

  const say = (state, why = "") => {
    word.textContent = why ? `${state}. ${why}` : state;
    bar.dataset.state = state.toLowerCase();
    pause.textContent = paused ? "Resume" : "Pause";
    pause.hidden = ended;
  };
  const end = (why) => { ended = true; disconnect(); say("Off", why); };

  // ── what is shown beside what the server says ──
  const parts = (root) => new Map([...root.querySelectorAll("[data-live-part]")].map((part) => [part.dataset.livePart, part]));
  const marks = (root) => new Map([...root.querySelectorAll("tr[data-row]")].map((row) => [row.dataset.row, row.dataset.mark]));

  // Without what script changes and what differs from one answer to the next without meaning.
  const bare = (part) => {
    const copy = part.cloneNode(true);
    for (const field of copy.querySelectorAll("input[name=csrfmiddlewaretoken]")) field.remove();
    for (const field of copy.querySelectorAll("[data-live-ignore], time, svg.ring")) field.replaceChildren();
    for (const element of copy.querySelectorAll("*")) for (const name of ["hidden", "open", "data-focus", "class", "aria-label"]) element.removeAttribute(name);
    return copy.textContent.replace(/\s+/g, " ") + [...copy.querySelectorAll("[id], [name], [href], [value]")].map((element) => `${element.id} ${element.getAttribute("name")} ${element.getAttribute("href")?.split("?")[0]}`).join(" ");
  };

  const changedRows = (doc) => {
    const [here, there] = [marks(document), marks(doc)];
    const ids = new Set([...here.keys(), ...there.keys()]);
    return [...ids].filter((id) => here.get(id) !== there.get(id)).length;
  };

  const writing = () => {
    if (document.querySelector("dialog[open]")) return true;
    const main = document.getElementById("main");
    if (main.contains(document.activeElement) && document.activeElement.matches("input:not([type=radio], [type=checkbox]), textarea, select")) return true;
    return [...main.querySelectorAll("input, textarea, select")].some((field) => {
      if (field.type === "hidden") return false;
      if (field.type === "checkbox" || field.type === "radio") return field.checked !== field.defaultChecked;
      if (field.tagName === "SELECT") return [...field.options].some((option) => option.selected !== option.defaultSelected) && field.selectedIndex > 0;
      return field.value !== field.defaultValue;
    });
  };

  const swap = (old, part) => {
    const focused = old.contains(document.activeElement) ? document.activeElement : null;
    const way = focused && (focused.id ? `#${CSS.escape(focused.id)}` : focused.getAttribute("href") ? `[href="${CSS.escape(focused.getAttribute("href"))}"]` : focused.name ? `[name="${CSS.escape(focused.name)}"]` : "");
    const open = [...old.querySelectorAll("details")].map((details) => details.open);
    const fresh = document.importNode(part, true);
    for (const element of fresh.querySelectorAll("[data-focus]")) element.removeAttribute("data-focus");
    const details = [...fresh.querySelectorAll("details")];
    if (details.length === open.length) details.forEach((element, at) => { element.open = open[at]; });
    old.replaceWith(fresh);
    window.htmx?.process(fresh);
    fresh.dispatchEvent(new CustomEvent("htmx:afterSettle", { bubbles: true }));
    if (focused) ((way && fresh.querySelector(way)) || document.getElementById("main")).focus({ preventScroll: true });
  };

  const swapChanged = (doc, wanted) => {
    const there = parts(doc);
    for (const [name, part] of parts(document)) {
      const fresh = there.get(name);
      if (fresh && wanted(part) && bare(part) !== bare(fresh)) swap(part, fresh);
    }
    document.title = doc.title;
    const [icon, fresh] = [document, doc].map((page) => page.querySelector("link[rel=icon]"));
    if (icon && fresh && icon.getAttribute("href") !== fresh.getAttribute("href")) icon.setAttribute("href", fresh.getAttribute("href"));
  };

  const offer = (sentence) => {
    if (news.querySelector("button")?.firstChild?.textContent === sentence) return;
    const button = document.createElement("button");
    button.type = "button";
    button.className = "btn btn-quiet sm";
    button.textContent = sentence;
    button.addEventListener("click", show);
    news.replaceChildren(button);
  };

  const clear = () => {
    const had = news.contains(document.activeElement);
    news.replaceChildren();
    if (had) pause.focus();
  };

  const show = () => {
    if (!fetched) return;
    const doc = fetched;
    fetched = null;
    clear();
    if (isQueue) {
      const [old, fresh] = [parts(document).get("list"), parts(doc).get("list")];
      if (old && fresh) swap(old, fresh);
    }
    swapChanged(doc, () => true);
  };

  const apply = (doc) => {
    if (doc.querySelector("[data-live]")?.dataset.workspace !== bar.dataset.workspace) {
      end("You changed the workspace in another tab. Reload the page.");
      return;
    }
    for (const message of doc.querySelectorAll("#messages > *")) document.getElementById("messages").append(document.importNode(message, true));
    fetched = doc;
    if (isQueue) {
      swapChanged(doc, (part) => part.dataset.livePart !== "list");
      const count = changedRows(doc);
      if (count) offer(`${count} ${count === 1 ? "change" : "changes"}: show`);
      else clear();
      return;
    }
    const there = parts(doc);
    const differs = [...parts(document)].some(([name, part]) => there.has(name) && bare(part) !== bare(there.get(name)));
    if (!differs) clear();
    else if (writing()) offer("This call changed: show");
    else show();
  };

  // ── looking ──
  const look = () => {
    if (paused || ended || lookTimer) return;
    const wait = Math.max(0, lookedAt + BETWEEN_LOOKS_MILLISECONDS - performance.now());
    lookTimer = setTimeout(fetchPage, wait + Math.random() * 200);
  };

  const fetchPage = async () => {
    lookTimer = 0;
    if (looking) { lookOnceMore = true; return; }
    looking = true;
    lookedAt = performance.now();
    try {
      const response = await fetch(location.href, { redirect: "manual", headers: { "X-Live": "1" }, cache: "no-store" });
      if (response.type === "opaqueredirect") end(ENDED[4401]);
      else if (response.status === 403 || response.status === 404) end("You may no longer see this page.");
      else if (response.ok) {
        const doc = new DOMParser().parseFromString(await response.text(), "text/html");
        if (!paused && !ended) apply(doc);
      } else lookAgainLater();
    } catch { lookAgainLater(); }
    looking = false;
    if (lookOnceMore) { lookOnceMore = false; look(); }
  };
  const lookAgainLater = () => { lookOnceMore = false; setTimeout(look, 5_000 + Math.random() * 5_000); };

  // ── the socket ──
  const disconnect = () => {
    clearTimeout(againTimer);
    const old = socket;
    socket = null;
    old?.close();
  };

  const connect = () => {
    clearTimeout(againTimer);
    if (paused || ended || socket) return;
    say(tries ? "Reconnecting" : "Connecting");
    const mine = new WebSocket(`${location.protocol === "https:" ? "wss" : "ws"}://${location.host}${bar.dataset.liveAddress}`);
    socket = mine;
    heardAt = performance.now();
    mine.addEventListener("message", (event) => {
      if (mine !== socket) return;
      heardAt = performance.now();
      // Live is said once the server has spoken: a socket that is refused opens first, too.
      if (event.data === "look") look();
      tries = 0;
      say("Live");
    });
    mine.addEventListener("close", (event) => {
      if (mine !== socket) return;
      socket = null;
      if (ENDED[event.code]) { end(ENDED[event.code]); return; }
      tries += 1;
      say("Reconnecting");
      const longest = Math.min(AGAIN_MILLISECONDS_MAX, 500 * 2 ** Math.min(tries, 6));
      againTimer = setTimeout(connect, longest / 2 + Math.random() * longest / 2);
    });
  };

  pause.addEventListener("click", () => {
    paused = !paused;
    remember(paused ? "paused" : "live");
    if (paused) { disconnect(); clearTimeout(lookTimer); lookTimer = 0; say("Paused"); } else connect();
  });
  document.addEventListener("visibilitychange", () => {
    clearTimeout(hiddenTimer);
    if (document.hidden) hiddenTimer = setTimeout(disconnect, HIDDEN_MILLISECONDS);
    else connect();
  });
  window.addEventListener("pagehide", disconnect);
  window.addEventListener("pageshow", (event) => { if (event.persisted) connect(); });
  setInterval(() => {
    if (!socket || performance.now() - heardAt < SILENCE_MILLISECONDS) return;
    disconnect();
    tries += 1;
    connect();
  }, 10_000);

  bar.hidden = false;
  if (paused) say("Paused"); else connect();
})();
