let entryName = settings.entry || "api", serverTitle = settings.title || "";

/** Shows how to connect a client: in the page if there is nothing else on it, else behind a button. */
function showConnect(isAlone) {
  const panel = $("connect");
  $("sign-in").textContent = settings.oauth ? "Clients sign in with OAuth; they find the authorization server by themselves."
    : settings.auth ? "Clients send a bearer token, which the operator of this server gives out." : "Clients need no token.";
  const hosted = ["Claude Desktop", "claude.ai", "ChatGPT"].map(client => ({ client, hosted: true }));
  const snippets = [...(settings.snippets || []), ...hosted, { client: "Another client", text: "", other: true }];
  if (!$("clients").children.length) snippets.forEach((snippet, index) => {
    const input = make("input");
    input.type = "radio";
    input.name = "client";
    input.value = index;
    input.checked = !index;
    input.addEventListener("change", () => showEntry(snippet));
    $("clients").append(wrap("label", "", input, make("span", snippet.client)));
  });
  const current = document.querySelector("[name=client]:checked") || { value: 0 };
  showEntry(snippets[current.value]);
  $("connect-open").hidden = isAlone;
  if (isAlone) { $("welcome").append(panel); $("welcome").hidden = false; }
  else $("connect-dialog").append(panel);
}

function showEntry({ client, command, text, file, note, hosted, other }) {
  const shown = template => template.replaceAll("https://endpoint.invalid/mcp", endpoint).replaceAll("name-of-the-entry", entryName);
  const step = words => make("p", words, "step");
  if (other) {
    const header = settings.auth && !settings.oauth ? ["With the header:", "Authorization: Bearer $MCP_TOKEN"] : null;
    fill($("entry"), step("Add a server with the transport “streamable HTTP” and this address:"), paste(endpoint, "the endpoint"), ...(header ? [step(header[0]), paste(header[1], "the header")] : []));
    return;
  }
  if (hosted) {
    const isPublic = endpoint.startsWith("https:"), needs = [];
    if (!isPublic) needs.push(step("It needs a public https address."));
    if (settings.auth && !settings.oauth) needs.push(step("It cannot send a token that the operator gives out. It signs users in with OAuth."));
    if (client === "ChatGPT") {
      fill($("entry"), step("In the settings for apps and connectors, turn on developer mode, and create a connector with this address:"), paste(endpoint, "the endpoint"), ...needs);
      return;
    }
    const form = make("a", "Open the form in claude.ai, filled in");
    form.href = `https://claude.ai/customize/connectors?modal=add-custom-connector&connectorName=${encodeURIComponent(serverTitle || entryName)}&connectorUrl=${encodeURIComponent(endpoint)}`;
    form.target = "_blank";
    form.rel = "noreferrer";
    fill($("entry"), ...(isPublic ? [wrap("p", "step", form)] : []), step("In the settings for connectors, add a custom connector with this address:"), paste(endpoint, "the endpoint"), ...needs);
    return;
  }
  const parts = [];
  if (command) parts.push(step("Run in a terminal:"), paste(shown(command), "the command"));
  parts.push(step(`${command ? "Or put" : "Put"} this into ${file} (on Linux)${note ? ". " + note : ":"}`), paste(shown(text).trimEnd(), "the entry for " + client));
  fill($("entry"), ...parts);
}

const paste = (text, what) => wrap("div", "paste", scrolling(text, what.charAt(0).toUpperCase() + what.slice(1)), copyButton(what, () => text));

$("endpoint").textContent = endpoint;
$("endpoint").after(copyButton("the endpoint", () => endpoint));
$("connect-open").addEventListener("click", () => $("connect-dialog").showModal());
$("connect-close").addEventListener("click", () => $("connect-dialog").close());
$("connect-dialog").addEventListener("click", event => { if (event.target === $("connect-dialog")) $("connect-dialog").close(); });
