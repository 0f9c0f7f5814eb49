const VERSION = "2026-07-28";
let token = "", nextId = 1;

/** The endpoint at this origin. */
const target = (() => {
  // The address becomes a part of commands. A path behind a proxy may hold what a shell reads.
  const here = location.origin + location.pathname.replace(/[^\w./~%-]/g, mark => "%" + mark.charCodeAt(0).toString(16).toUpperCase());
  return here.endsWith("/mcp") ? here : new URL("mcp", here).href;
})();
/** The endpoint as clients use it. */
const endpoint = settings.endpoint || target;

function message(method, params, capabilities) {
  const meta = { "io.modelcontextprotocol/protocolVersion": VERSION, "io.modelcontextprotocol/clientCapabilities": capabilities };
  return { jsonrpc: "2.0", id: nextId++, method, params: { ...params, _meta: meta } };
}

async function request(method, params, signal) {
  const body = message(method, params, { elicitation: {} });
  const headers = { "content-type": "application/json", accept: "application/json, text/event-stream", "mcp-protocol-version": VERSION, "mcp-method": method };
  if (params.name) headers["mcp-name"] = params.name;
  if (token) headers.authorization = "Bearer " + token;
  let reply;
  try {
    reply = await fetch(target, { method: "POST", headers, body: JSON.stringify(body), signal, redirect: "error", credentials: "omit", cache: "no-store", referrerPolicy: "no-referrer" });
  } catch (error) {
    throw error.name === "AbortError" ? error : new Error("The server does not answer. Is it still running?");
  }
  return read(reply, await reply.text());
}

/** The result of a reply: one JSON message, or the last of a stream of events. */
function read(reply, text) {
  const events = () => text.split("\n").filter(line => line.startsWith("data:")).map(line => line.slice(5));
  const line = text.startsWith("{") ? text : events().findLast(event => event.includes('"id"')) || "";
  let answer;
  try { answer = JSON.parse(line); } catch {
    throw new Error(reply.status === 401 ? "The token is missing or not accepted (401)." : `The server answered ${reply.status}.`);
  }
  if (answer.error) throw new Error(answer.error.message || "The server refused the request.");
  return answer.result;
}

/** The colour of a tool: amber for what changes something, red for what removes it. */
const toneOf = ({ effect, method }) => (effect === "destructive" && /^(PUT|PATCH)$/.test(method) ? "write" : effect);

/** The MCP request of a call, as a command. A token is never part of it. */
function curl(params) {
  const quote = text => "'" + text.replaceAll("'", "'\\''") + "'";
  const body = { ...message("tools/call", params, {}), id: 1 };
  nextId -= 1;
  const lines = [`curl ${quote(endpoint)}`, "--header 'content-type: application/json'", "--header 'accept: application/json, text/event-stream'",
    `--header 'mcp-protocol-version: ${VERSION}'`, "--header 'mcp-method: tools/call'", `--header ${quote("mcp-name: " + params.name)}`];
  if (token || settings.auth) lines.push('--header "authorization: Bearer $MCP_TOKEN"');
  lines.push(`--data-raw ${quote(prettyJson(JSON.stringify(body)).replaceAll("\n", "\n  "))}`);
  return lines.join(" \\\n  ");
}
