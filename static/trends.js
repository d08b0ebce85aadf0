// Draws each chart from the table beside it, which is the same without script. Colours are those that the page has at the moment, so they follow
// the theme and the system's own colours; lines differ by their dashes as well. Left and right arrow read the days out.
"use strict";

(() => {
  const DASHES = [[], [7, 4], [2, 3], [10, 4, 2, 4], [5, 2], [1, 5]];
  const STEPS = [1, 2, 5, 7, 10, 14, 30];
  const TENS = [1, 10, 100, 1_000, 10_000, 100_000, 1_000_000].flatMap((ten) => [ten, 2 * ten, 5 * ten]);
  const MINUTES = [1, 5, 15, 30, 60, 120, 360, 720, 1_440, 2_880, 7_200, 14_400, 43_200];
  const Y_STEPS = { percent: [0.01, 0.02, 0.05, 0.1, 0.2, 0.5, ...TENS], calls: TENS, seconds: [1, 5, 10, 30, ...MINUTES.map((one) => 60 * one)] };
  const TEXT_PIXELS = 11;

  const percent = (value) => `${Number(value.toPrecision(2))} %`;
  const duration = (seconds) => {
    const units = [[86_400, "d"], [3_600, "h"], [60, "m"]];
    for (const [size, word] of units) if (seconds >= size) return `${Number((seconds / size).toPrecision(2))} ${word}`;
    return `${Math.round(seconds)} s`;
  };
  const FORMATS = { percent, seconds: duration, calls: (value) => value.toLocaleString("en-GB") };

  const read = (table) => {
    const headings = [...table.tHead.rows[0].cells].slice(1).map((cell) => cell.textContent.trim());
    const rows = [...table.tBodies[0].rows];
    const number = (cell) => (cell.dataset.v === undefined ? null : Number(cell.dataset.v));
    return {
      headings,
      days: rows.map((row) => row.cells[0].textContent.trim()),
      said: rows.map((row) => [...row.cells].slice(1).map((cell) => cell.firstChild.textContent.trim())),
      lines: headings.map((_, line) => rows.map((row) => number(row.cells[line + 1]))),
    };
  };

  const swatch = (dash) => {
    const space = "http://www.w3.org/2000/svg";
    const svg = document.createElementNS(space, "svg");
    const path = document.createElementNS(space, "path");
    svg.setAttribute("viewBox", "0 0 26 8");
    svg.setAttribute("aria-hidden", "true");
    path.setAttribute("d", "M0 4h26");
    path.setAttribute("stroke", "currentColor");
    path.setAttribute("stroke-width", "2");
    if (dash.length) path.setAttribute("stroke-dasharray", dash.join(" "));
    svg.append(path);
    return svg;
  };

  const key = (list, headings) => list.replaceChildren(...headings.map((heading, line) => {
    const item = document.createElement("li");
    const mark = document.createElement("span");
    mark.className = `c-${line + 1}`;
    mark.append(swatch(DASHES[line]));
    item.append(mark, heading);
    return item;
  }));

  const options = (box, said, list, tell) => {
    const colours = [...list.querySelectorAll("[class^=c-]")].map((mark) => getComputedStyle(mark).color);
    const ink = getComputedStyle(list).color;
    const grid = { stroke: getComputedStyle(box).color, width: 1 };
    const format = FORMATS[box.dataset.unit];
    const font = `${TEXT_PIXELS}px ${getComputedStyle(box).fontFamily}`;
    const axis = { stroke: ink, font, grid, ticks: { ...grid, size: 4 } };
    return {
      width: box.clientWidth,
      height: box.clientHeight,
      legend: { show: false },
      cursor: { drag: { x: false, y: false }, y: false },
      scales: { x: { time: false }, y: { range: (_, _low, high) => [0, high > 0 ? high * 1.08 : 1] } },
      axes: [
        { ...axis, incrs: STEPS, size: 24, space: 52, values: (_, places) => places.map((place) => said.days[place]?.replace(/^\w+ /, "") ?? "") },
        { ...axis, incrs: Y_STEPS[box.dataset.unit], size: 50, space: 32, values: (_, values) => values.map(format) },
      ],
      series: [{}, ...said.headings.map((label, line) => ({
        label, stroke: colours[line], width: 2, dash: DASHES[line], points: { fill: colours[line], size: 5 },
      }))],
      hooks: { setCursor: [(chart) => tell(chart.cursor.idx)] },
    };
  };

  const draw = (box) => {
    const said = read(document.getElementById(box.dataset.chart));
    const hint = box.nextElementSibling;
    const list = hint.nextElementSibling;
    const title = box.closest("section").querySelector("h2").textContent;
    key(list, said.headings);
    const tell = (place) => {
      const words = said.headings.map((heading, line) => `${heading} ${said.said[place]?.[line]}`).join(", ");
      hint.textContent = place === null || place === undefined ? "" : `${said.days[place]}: ${words}`;
    };
    const data = [said.days.map((_, place) => place), ...said.lines];
    let chart = new uPlot(options(box, said, list, tell), data, box);
    const again = () => { chart.destroy(); chart = new uPlot(options(box, said, list, tell), data, box); };

    let place = null;
    box.tabIndex = 0;
    box.setAttribute("role", "group");
    box.setAttribute("aria-label", `${title}, chart. Left and right arrow read the days.`);
    box.addEventListener("keydown", (event) => {
      const step = { ArrowLeft: -1, ArrowRight: 1, Home: -Infinity, End: Infinity }[event.key];
      if (step === undefined || event.ctrlKey || event.metaKey || event.altKey) return;
      event.preventDefault();
      const last = said.days.length - 1;
      place = Math.min(last, Math.max(0, place === null ? last : place + step));
      hint.setAttribute("aria-live", "polite");
      chart.setCursor({ left: chart.valToPos(place, "x"), top: 0 }, false);
      tell(place);
    });
    box.addEventListener("blur", () => { place = null; chart.setCursor({ left: -10, top: -10 }, false); tell(null); });
    // What the pointer passes over is for those who see it.
    box.addEventListener("pointermove", () => hint.setAttribute("aria-live", "off"), { passive: true });
    new ResizeObserver(() => chart.setSize({ width: box.clientWidth, height: box.clientHeight })).observe(box);
    return again;
  };

  const redraw = [...document.querySelectorAll("[data-chart]")].map(draw);
  const all = () => redraw.forEach((again) => again());
  for (const query of ["(prefers-color-scheme: dark)", "(forced-colors: active)"]) matchMedia(query).addEventListener("change", all);
  new MutationObserver(all).observe(document.documentElement, { attributeFilter: ["data-bs-theme"] });
})();
