let chosen = null, wantedTool = "", isReachSaid = false;

const HINT_WORDS = {
  readOnly: ["Only reads", "Changes something"],
  destructive: ["May change or remove what exists", "Only adds"],
  idempotent: ["Safe to repeat", "A repeat acts again"],
  openWorld: ["Reaches an external API", "Stays inside"],
};

/** Opens a tool of the list. */
async function openTool(name) {
  if (running) running.abort();
  wantedTool = name;
  let detail;
  try { detail = await source.detail(name); } catch (error) {
    if (wantedTool === name) $("problem").textContent = "The tool cannot be shown: " + error.message;
    return false;
  }
  if (wantedTool !== name) return false;
  chosen = detail;
  $("problem").textContent = "";
  $("tool-title").textContent = detail.title || detail.name;
  $("method").textContent = detail.method;
  $("method").className = toneOf(detail);
  $("path").textContent = detail.path;
  $("tool-name").textContent = detail.name;
  fill($("tool-extra"), copyButton("the name of the tool", () => detail.name), ...(detail.calledThrough ? [make("span", "called through", "remark"), make("code", detail.calledThrough, "foreign")] : []));
  showHints(detail);
  showDescription(detail);
  showFields(detail);
  $("actions").hidden = $("request").hidden = Boolean(settings.tools);
  $("try").textContent = detail.title || detail.name;
  $("try").classList.toggle("danger", toneOf(detail) === "destructive");
  $("answer").hidden = true;
  showReturns(detail);
  say("");
  if (!settings.tools) {
    fill($("curl-copy"), copyButton("the command", () => $("curl").textContent));
    showRequest();
  }
  $("detail").hidden = false;
  $("tool").scrollTop = 0;
  fold();
  return true;
}

/** The hints in words, and why each is as it is. */
function showHints(detail) {
  const { hints, confirmed } = detail;
  const is = Object.fromEntries(hints.map(({ hint, value }) => [hint, value]));
  // What all tools have in common is said once, above the list.
  const words = hints.filter(({ hint }) => hint === "readOnly" ? is.readOnly : hint === "openWorld" ? !isReachSaid : !is.readOnly);
  const colour = { readOnly: "read", destructive: is.destructive ? toneOf(detail) : "write" };
  fill($("badges"), ...words.flatMap(({ hint, value }) => [make("span", HINT_WORDS[hint][value ? 0 : 1], "badge " + (colour[hint] || "")), make("span", ", ", "unseen")]), make("span", "Why?", "why"));
  const rows = hints.flatMap(({ hint, value, because }) => [make("dt", HINT_WORDS[hint][value ? 0 : 1]), wrap("dd", "foreign", sentence(because), " ", make("code", `${hint}Hint: ${value}`))]);
  if (confirmed) rows.push(make("dt", "Asks first"), make("dd", "The server asks a person before each call."));
  fill($("reasons"), ...rows);
  $("hints").open = false;
}
const sentence = text => text.charAt(0).toUpperCase() + text.slice(1) + (/[.!?]$/.test(text) ? "" : ".");

/** The description without the title, which stands above it. */
function showDescription({ title, tool }) {
  let text = String(tool.description || "").trim();
  const [first] = text.split("\n");
  if (title && first.replace(/\.$/, "").trim() === title.replace(/\.$/, "").trim()) text = text.slice(first.length).trim();
  $("description").hidden = !text;
  $("description-text").className = "prose foreign";
  fill($("description-text"), markdown(text));
}

/** The members of a result, if the document describes them. */
function showReturns({ tool }) {
  const schema = resolved(tool.outputSchema, tool.outputSchema || {}), members = Object.entries(schema.properties || {}).slice(0, 60);
  fill($("return-members"), ...members.flatMap(([name, member]) => [make("dt", name, "foreign"), make("dd", member.description || typeInWords(member, schema), "foreign")]));
  $("returns").hidden = !members.length;
}

/** Folds a description of more than four lines. */
function fold() {
  const box = $("description-text");
  box.classList.add("folded");
  const isLong = box.scrollHeight > box.clientHeight + 8;
  box.classList.toggle("folded", isLong);
  $("fold").hidden = !isLong;
  $("fold").textContent = "Show more";
  $("fold").setAttribute("aria-expanded", "false");
}

$("fold").addEventListener("click", () => {
  const isFolded = $("description-text").classList.toggle("folded");
  $("fold").textContent = isFolded ? "Show more" : "Show less";
  $("fold").setAttribute("aria-expanded", String(!isFolded));
});
$("call").addEventListener("submit", attempt);
$("cancel").addEventListener("click", () => running && running.abort());
