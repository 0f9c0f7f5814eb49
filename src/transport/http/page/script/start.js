/** The head of the page: what is served, and how much of it. */
function introduce({ title, version, effects, tags, entry, isSearchMode, isMock, baseUrl, showsRequests, allReachOut }) {
  if (title) { name(title); serverTitle = title; }
  $("version").textContent = version ? "v" + version.replace(/^v(?=\d)/, "") : "";
  $("version").hidden = !version;
  $("mock").hidden = !isMock;
  $("upstream").hidden = !baseUrl;
  $("upstream").textContent = baseUrl || "";
  hasRequests = Boolean(showsRequests);
  isReachSaid = Boolean(allReachOut);
  $("kinds").hidden = !hasRequests;
  if (entry) entryName = entry;
  const number = Object.values(effects).reduce((sum, count) => sum + count, 0);
  const kinds = Object.entries(effects).filter(([, count]) => count);
  const said = [make("b", number.toLocaleString("en")), number === 1 ? " tool" : " tools"];
  fill($("counts"), wrap("span", "", ...said), ...kinds.flatMap(([effect, count]) => [make("span", ", ", "unseen"), wrap("span", "dot " + effect, make("span", `${count.toLocaleString("en")} ${EFFECTS[effect].plural}`, "remark"))]),
    ...(allReachOut ? [make("span", ", ", "unseen"), make("span", "all reach an external API", "remark")] : []));
  if (isSearchMode) $("mode").textContent = `Clients see a few tools, which search, describe and call the ${number.toLocaleString("en")} on this page.`;
  $("counts").hidden = false;
  for (const [effect, count] of kinds) option($("effect"), effect, `${EFFECTS[effect].choice} (${count.toLocaleString("en")})`);
  for (const [tag, count] of tags) option($("tag"), tag, `${tag} (${count.toLocaleString("en")})`);
  $("tag-choice").hidden = !tags.length;
}

/** Puts the server's title on the page. */
function name(title) {
  $("title").textContent = title;
  document.title = title + " – MCP server";
}

function option(select, value, text) {
  if ([...select.options].some(known => known.value === value)) return;
  const made = make("option", text);
  made.value = value;
  select.append(made);
}

/** The tool that the address names after `#`. */
function nameInAddress() {
  try { return decodeURIComponent(location.hash.slice(1)); } catch { return ""; }
}

/** Lists the tools, and opens the one that the address names, or the first. */
async function load() {
  const wanted = nameInAddress();
  $("loading").hidden = false;
  let found;
  try { found = await search(); } catch {
    if (settings.auth) $("token").focus();
    return;
  } finally { $("loading").hidden = true; }
  introduce(found.server);
  $("welcome").hidden = true;
  $("tools").hidden = false;
  if (!settings.tools) showConnect(false);
  document.body.dataset.view = wanted ? "tool" : "list";
  rows();
  const at = Math.max(0, found.tools.findIndex(tool => tool.name === wanted));
  if (wanted && !(found.tools[at] && found.tools[at].name === wanted) && await openTool(wanted)) return;
  if (found.total) choose(at, false);
}

$("logo").src = settings.icon || $("icon").href;
if (settings.icon) $("icon").href = settings.icon;
if (settings.tools) { $("address").hidden = true; load(); }
else if (settings.page === "full" && !settings.auth) { load(); }
else {
  if (settings.title) name(settings.title);
  showConnect(true);
  $("token-form").hidden = !settings.auth || settings.page !== "full";
  if (settings.auth && settings.page !== "full") $("sign-in").append(" This page lists no tools. With page: full in the configuration file, it has a field for a token.");
}
$("token-form").addEventListener("submit", event => { event.preventDefault(); token = $("token").value.trim(); load(); });
