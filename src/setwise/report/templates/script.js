"use strict";
(() => {
  const byId = (id) => document.getElementById(id);
  const root = document.documentElement;
  const data = JSON.parse(byId("data").textContent);
  root.dataset.scripted = "";

  // Colour scheme: the reader's own until the button says otherwise, then remembered if it may be.
  const button = byId("scheme");
  const remembered = (value) => {
    try {
      return value ? localStorage.setItem("setwise-scheme", value) : localStorage.getItem("setwise-scheme");
    } catch {
      return null;
    }
  };
  const prefersDark = matchMedia("(prefers-color-scheme: dark)");
  const isDark = () => (root.dataset.scheme || (prefersDark.matches ? "dark" : "light")) === "dark";
  const label = () => { button.textContent = isDark() ? "Light colours" : "Dark colours"; };
  const before = remembered();
  if (before === "dark" || before === "light") root.dataset.scheme = before;
  button.addEventListener("click", () => {
    root.dataset.scheme = isDark() ? "light" : "dark";
    remembered(root.dataset.scheme);
    label();
  });
  prefersDark.addEventListener("change", label);
  button.hidden = false;
  label();

  // One panel of several, chosen by radio buttons.
  for (const chooser of document.querySelectorAll("[data-panels]")) {
    const show = () => {
      const chosen = `${chooser.dataset.panels}-${chooser.querySelector("input:checked").value}`;
      for (const panel of document.querySelectorAll(`[data-panel^="${chooser.dataset.panels}-"]`))
        panel.hidden = panel.dataset.panel !== chosen;
    };
    chooser.hidden = false;
    chooser.addEventListener("change", show);
    show();
  }
  if (!data.outcomes) return;

  const element = (tag, text, attributes = {}, space) => {
    const made = space ? document.createElementNS(space, tag) : document.createElement(tag);
    if (text !== null) made.textContent = text;
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    return made;
  };
  const options = (select, names, places) =>
    select.replaceChildren(...places.map((i) => element("option", [...names[i]].slice(0, 80).join(""), { value: i, dir: "auto" })));
  const share = (value) => (value === null ? "–" : value.toFixed(3).replace(/^0/, ""));
  const whole = (value) => value.toLocaleString("en");
  const ratio = (above, below) => (below ? above / below : null);

  // The table of labels: one outcome, its columns, an order, a page.
  const columns = (outcome) => {
    const { predicted, both, belief } = outcome;
    const average = belief === null ? null : data.beliefs[belief].average;
    return {
      label: data.labels,
      support: data.support,
      predicted,
      precision: both.map((hits, i) => ratio(hits, predicted[i])),
      recall: both.map((hits, i) => ratio(hits, data.support[i])),
      f1: both.map((hits, i) => ratio(2 * hits, predicted[i] + data.support[i])),
      average: data.labels.map((_, i) => (average === null || average[i] < 0 ? null : average[i] / 1e4)),
    };
  };
  const size = 25;
  const table = byId("label-table");
  const heads = [...table.querySelectorAll("th[data-key]")];
  const names = data.labels.map((name) => name.toLocaleLowerCase());
  const collator = new Intl.Collator(undefined, { numeric: true });
  const methodBox = byId("label-method");
  const targetBox = byId("label-target");
  const state = { outcome: data.outcomes[data.first], key: "support", up: false, page: 0, places: [] };

  const arrange = () => {
    const values = state.columns[state.key];
    const wanted = byId("label-search").value.trim().toLocaleLowerCase();
    const compare = state.key === "label" ? (a, b) => collator.compare(a, b) : (a, b) => a - b;
    const sign = state.up ? 1 : -1;
    state.places = names.flatMap((name, i) => (name.includes(wanted) ? [i] : []));
    state.places.sort((a, b) => {
      if (values[a] === null || values[b] === null) return (values[a] === null) - (values[b] === null) || a - b;
      return sign * compare(values[a], values[b]) || a - b;
    });
    state.page = 0;
    draw();
  };
  const draw = () => {
    const { places, page } = state;
    const colour = data.methods[state.outcome.method][1];
    const rows = places.slice(page * size, (page + 1) * size).map((i) => {
      const row = document.createElement("tr");
      const name = element("th", null, { scope: "row", title: data.labels[i] });
      name.append(element("bdi", data.labels[i]));
      row.append(name);
      for (const key of ["support", "predicted"]) row.append(element("td", whole(state.columns[key][i]), { class: "number" }));
      for (const key of ["precision", "recall", "f1", "average"]) {
        const value = state.columns[key][i];
        const cell = element("td", share(value), { class: key === "f1" ? `number f1 ${colour}` : "number" });
        if (key === "f1") cell.style.setProperty("--part", value || 0);
        row.append(cell);
      }
      return row;
    });
    table.tBodies[0].replaceChildren(...rows);
    for (const head of heads)
      head.setAttribute("aria-sort", head.dataset.key === state.key ? (state.up ? "ascending" : "descending") : "none");
    const last = Math.min((page + 1) * size, places.length);
    byId("label-where").textContent = places.length
      ? `${whole(page * size + 1)} to ${whole(last)} of ${whole(places.length)}`
      : "No label has that in its name";
    byId("label-back").disabled = page === 0;
    byId("label-on").disabled = last >= places.length;
  };
  // What the table holds, in its order, as a file; what a spreadsheet would run gets an apostrophe.
  byId("label-csv").addEventListener("click", () => {
    const quoted = (text) => `"${(/^[=+@\-\t\r]/.test(text) ? `'${text}` : text).replaceAll('"', '""')}"`;
    const keys = heads.map((head) => head.dataset.key);
    const lines = state.places.map((i) => keys.map((key) => {
      const value = state.columns[key][i];
      return key === "label" ? quoted(value) : value === null ? "" : value;
    }).join(","));
    const text = encodeURIComponent([keys.join(","), ...lines, ""].join("\n"));
    element("a", null, { href: `data:text/csv;charset=utf-8,${text}`, download: "labels.csv" }).click();
  });
  const choose = () => {
    const of = data.outcomes.filter((one) => one.target === Number(targetBox.value));
    const chosen = of.find((one) => one.method === Number(methodBox.value)) || of[0];
    options(methodBox, data.methods.map((method) => method[0]), of.map((one) => one.method));
    methodBox.value = chosen.method;
    state.outcome = chosen;
    state.columns = columns(chosen);
    arrange();
  };
  const present = data.targets.map((_, i) => i).filter((i) => data.outcomes.some((one) => one.target === i));
  options(targetBox, data.targets, present);
  options(methodBox, data.methods.map((method) => method[0]), data.methods.map((_, i) => i));
  targetBox.value = state.outcome.target;
  methodBox.value = state.outcome.method;
  for (const head of heads)
    head.querySelector("button").addEventListener("click", () => {
      state.up = state.key === head.dataset.key ? !state.up : head.dataset.key === "label";
      state.key = head.dataset.key;
      arrange();
    });
  byId("label-search").addEventListener("input", arrange);
  methodBox.addEventListener("change", choose);
  targetBox.addEventListener("change", choose);
  byId("label-back").addEventListener("click", () => { state.page -= 1; draw(); });
  byId("label-on").addEventListener("click", () => { state.page += 1; draw(); });
  for (const id of ["label-controls", "label-table", "label-pages", "label-csv"]) byId(id).hidden = false;
  choose();

  // Precision over recall of one label: two letters a point, in base 64.
  const curveBox = byId("curve-label");
  if (!curveBox) return;
  const letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
  const place = byId("label-curves");
  const svg = place.namespaceURI;
  const [left, right, bottom, top] = data.frame;
  const path = (text) => {
    const last = text.length / 2 - 1;
    return Array.from({ length: last + 1 }, (_, i) => {
      const value = (64 * letters.indexOf(text[2 * i]) + letters.indexOf(text[2 * i + 1])) / 4095;
      const x = left + ((right - left) * i) / last;
      return `${i ? "L" : "M"}${x.toFixed(1)} ${(bottom + (top - bottom) * value).toFixed(1)}`;
    }).join("");
  };
  const believed = data.targets.map((_, i) => i).filter((i) => data.outcomes.some((one) => one.target === i && one.belief !== null));
  const drawCurves = () => {
    const chosen = document.querySelector('[name="precision_recall-panel"]:checked');
    const target = believed[chosen ? Number(chosen.value) : 0];
    const label = Number(curveBox.value);
    const shown = data.outcomes.filter((one) => one.target === target && one.belief !== null);
    place.replaceChildren(...shown.map((one) => {
      const [name, colour, , dash] = data.methods[one.method];
      const attributes = { class: `curve ${colour}`, "stroke-dasharray": dash, d: path(data.beliefs[one.belief].curves[label]) };
      const curve = element("path", null, attributes, svg);
      curve.append(element("title", name, {}, svg));
      return curve;
    }));
    const note = byId("curve-note");
    note.replaceChildren(`True in ${whole(data.support[label])} rows. Average precision: `);
    shown.forEach((one, i) => {
      const average = data.beliefs[one.belief].average[label];
      note.append(i ? ", " : "", element("bdi", data.methods[one.method][0]), ` ${share(average < 0 ? null : average / 1e4)}`);
    });
    note.append(".", few);
  };
  const n = data.beliefs[0].curves.length;
  const few = n < data.labels.length ? ` Curves are kept of the ${whole(n)} most frequent labels.` : "";
  options(curveBox, data.labels, data.labels.slice(0, n).map((_, i) => i));
  curveBox.addEventListener("change", drawCurves);
  byId("precision_recall").addEventListener("change", drawCurves);
  byId("label-figure").hidden = false;
  drawCurves();
})();
