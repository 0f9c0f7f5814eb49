const ROW = 40, PAGE_SIZE = 200;
/** What is listed: the tools that are known, by index, the number of all, and the lines between them by the index of the next tool. */
let listed = { wanted: {}, total: 0, tools: [], asked: new Set(), lines: [] };
let active = -1, generation = 0, all = 0, opening = 0;

/** Lists the tools that fit the choices of the reader, best first. */
async function search() {
  const mine = ++generation, wanted = { query: $("filter").value.trim() };
  if ($("effect").value) wanted.effect = $("effect").value;
  if ($("tag").value) wanted.tag = $("tag").value;
  let found;
  try { found = await source.list({ ...wanted, offset: 0 }); } catch (error) {
    if (mine === generation) $("problem").textContent = "The tools cannot be listed: " + error.message;
    throw error;
  }
  if (mine !== generation) return null;
  $("problem").textContent = "";
  listed = { wanted, total: found.total, tools: found.tools, asked: new Set([0]), lines: linesOf(found) };
  const isNarrowed = wanted.query || wanted.effect || wanted.tag;
  if (!isNarrowed) all = found.total;
  $("count").textContent = !isNarrowed ? "" : found.total ? `${found.total.toLocaleString("en")} of ${counted(all, "tool")}` : "No tool fits. Try other words.";
  active = chosen ? listed.tools.findIndex(tool => tool.name === chosen.name) : -1;
  $("list").scrollTop = 0;
  rows();
  return found;
}

/** The headings of groups, or the line under the good hits of a search. */
function linesOf({ total, groups, good }) {
  let at = 0;
  if (groups && groups.length) return groups.map(([text, count]) => { const line = { at, text: `${text} (${count.toLocaleString("en")})` }; at += count; return line; });
  return good && good < total ? [{ at: good, text: "Less likely" }] : [];
}

/** The row of a tool, among the tools and the lines. */
const rowOf = index => index + listed.lines.filter(line => line.at <= index).length;

/** What is in a row: a line, or a tool. */
function inRow(row) {
  let above = 0;
  for (const line of listed.lines) {
    if (line.at + above === row) return { line };
    if (line.at + above > row) break;
    above++;
  }
  return { index: row - above };
}

/** Asks for the tools that are scrolled to. */
async function want(index) {
  const page = Math.floor(index / PAGE_SIZE), mine = generation;
  if (listed.asked.has(page)) return;
  listed.asked.add(page);
  try {
    const { tools } = await source.list({ ...listed.wanted, offset: page * PAGE_SIZE });
    if (mine !== generation) return;
    tools.forEach((tool, at) => { listed.tools[page * PAGE_SIZE + at] = tool; });
    rows();
  } catch { listed.asked.delete(page); }
}

/** Draws the rows that can be seen. The others are empty space. */
function rows() {
  const list = $("list"), first = Math.max(0, Math.floor(list.scrollTop / ROW) - 4), all = listed.total + listed.lines.length;
  const last = Math.min(all, first + Math.ceil((list.clientHeight || 800) / ROW) + 9);
  const made = [];
  for (let at = first; at < last; at++) {
    const { line, index } = inRow(at);
    if (line) { made.push(lineRow(line.text)); continue; }
    if (!listed.tools[index]) want(index);
    made.push(row(listed.tools[index], index));
  }
  if (made.length) {
    made[0].style.marginTop = `${first * ROW}px`;
    made.at(-1).style.marginBottom = `${(all - last) * ROW}px`;
  }
  fill(list, ...made);
  const at = active < 0 ? -1 : rowOf(active);
  if (at >= first && at < last) list.setAttribute("aria-activedescendant", "row-" + active);
  else list.removeAttribute("aria-activedescendant");
}

/** A line between rows. Screen readers skip it, because a list box holds options. */
function lineRow(text) {
  const line = make("li", text, "heading foreign");
  line.setAttribute("role", "presentation");
  line.setAttribute("aria-hidden", "true");
  return line;
}

function row(tool, index) {
  const item = make("li", undefined, "row");
  item.id = "row-" + index;
  item.dataset.index = index;
  item.setAttribute("role", "option");
  item.setAttribute("aria-setsize", listed.total);
  item.setAttribute("aria-posinset", index + 1);
  item.setAttribute("aria-selected", String(index === active));
  if (!tool) { item.setAttribute("aria-label", "Loading"); return item; }
  const title = make("span", tool.title || tool.name, "row-title foreign");
  title.dir = "auto";
  const name = make("code", tool.name, "foreign"), method = make("span", tool.method, "row-method " + toneOf(tool));
  // Screen readers hear what the colour says; the style has the commas between the parts.
  method.setAttribute("aria-hidden", "true");
  item.append(title, name, make("span", EFFECTS[tool.effect].word, "unseen"), method);
  return item;
}

/** Opens the tool of a row. On a narrow screen it takes the place of the list only if the reader chose it. */
async function choose(index, isReady) {
  const tool = listed.tools[index];
  if (!tool) return;
  active = index;
  rows();
  if (!chosen || chosen.name !== tool.name || wantedTool !== tool.name) if (!await openTool(tool.name)) return;
  if (isReady) show(tool.name);
}

/** Shows the open tool, and leads to it. */
function show(name) {
  const isNarrow = getComputedStyle($("back")).display !== "none" || document.body.dataset.view === "tool";
  if (matchMedia("(max-width: 44rem)").matches && document.body.dataset.view === "list") history.pushState(null, "", "#" + encodeURIComponent(name));
  else history.replaceState(null, "", "#" + encodeURIComponent(name));
  document.body.dataset.view = "tool";
  fold();
  $("tool-title").focus({ preventScroll: !isNarrow });
}

function move(index) {
  active = Math.min(listed.total - 1, Math.max(0, index));
  const list = $("list"), top = rowOf(active) * ROW;
  if (top < list.scrollTop) list.scrollTop = top;
  else if (top + ROW > list.scrollTop + list.clientHeight) list.scrollTop = top + ROW - list.clientHeight;
  rows();
  clearTimeout(opening);
  // Who holds a key down passes by.
  opening = setTimeout(() => choose(active, false), 120);
}

$("list").addEventListener("click", event => {
  const item = event.target.closest("[data-index]");
  if (item) choose(Number(item.dataset.index), true);
});
$("list").addEventListener("scroll", () => requestAnimationFrame(rows), { passive: true });
$("list").addEventListener("keydown", event => {
  const page = Math.max(1, Math.floor($("list").clientHeight / ROW) - 1);
  const to = { ArrowDown: active + 1, ArrowUp: active - 1, PageDown: active + page, PageUp: active - page, Home: 0, End: listed.total - 1 }[event.key];
  if (event.key === "Enter" || event.key === " ") { event.preventDefault(); clearTimeout(opening); choose(active, true); }
  if (to === undefined || !listed.total || event.ctrlKey || event.metaKey || event.altKey) return;
  event.preventDefault();
  move(to);
});
let typing = 0;
$("filter").addEventListener("input", () => { clearTimeout(typing); typing = setTimeout(() => search().catch(() => {}), 120); });
$("filter").addEventListener("keydown", event => {
  if (event.key === "ArrowDown" && listed.total) { event.preventDefault(); $("list").focus(); move(Math.max(0, active)); }
  if (event.key === "Enter" && listed.total) { event.preventDefault(); choose(0, true); }
});
$("effect").addEventListener("change", () => search().catch(() => {}));
$("tag").addEventListener("change", () => search().catch(() => {}));
addEventListener("resize", () => requestAnimationFrame(rows));
$("back").addEventListener("click", () => { document.body.dataset.view = "list"; history.replaceState(null, "", location.pathname + location.search); rows(); $("list").focus(); });
addEventListener("popstate", () => {
  const name = nameInAddress();
  if (name && (!chosen || chosen.name !== name)) openTool(name);
  document.body.dataset.view = name ? "tool" : "list";
  rows();
});
