let running = null, shownRequest = 0, hasRequests = false, kind = "http";

/** A call of the chosen tool: by its name, or in search mode as clients make it. */
function callOf(given) {
  const { name, calledThrough } = chosen;
  return calledThrough ? { name: calledThrough, arguments: { operation: name, arguments: given } } : { name, arguments: given };
}

/** Shows the request that a call would make now. */
async function showRequest() {
  const mine = ++shownRequest, given = await readArguments(false);
  if (mine !== shownRequest || !chosen) return;
  const call = callOf(given);
  if (!hasRequests || kind === "mcp") { $("curl").textContent = curl(call); return; }
  // Who types on asks once.
  await new Promise(resolve => setTimeout(resolve, 120));
  if (mine !== shownRequest) return;
  let text;
  try {
    const shown = await request("openapi-mcp/request", call);
    text = shown.curl || shown.problem;
  } catch (error) { text = error.message; }
  if (mine === shownRequest && chosen) $("curl").textContent = text;
}

/** Shows the request to the API, or the one to this server. */
function showKind(wanted) {
  kind = wanted;
  for (const name of ["http", "mcp"]) {
    const tab = $("kind-" + name);
    tab.setAttribute("aria-selected", String(name === kind));
    tab.tabIndex = name === kind ? 0 : -1;
  }
  showRequest();
}
for (const name of ["http", "mcp"]) {
  $("kind-" + name).addEventListener("click", () => showKind(name));
  $("kind-" + name).addEventListener("keydown", event => {
    if (event.key !== "ArrowLeft" && event.key !== "ArrowRight") return;
    event.preventDefault();
    showKind(name === "http" ? "mcp" : "http");
    $("kind-" + kind).focus();
  });
}

function ask(title, text, detail, yes, isDangerous) {
  $("question-title").textContent = title;
  $("question-text").textContent = text;
  $("question-detail").textContent = detail;
  $("question-detail").hidden = detail === "{}";
  $("yes").textContent = yes;
  $("yes").classList.toggle("danger", isDangerous);
  const dialog = $("question");
  dialog.returnValue = "no";
  dialog.showModal();
  $("no").focus();
  return new Promise(resolve => dialog.addEventListener("close", () => resolve(dialog.returnValue === "yes"), { once: true }));
}

function say(text, isBad) {
  $("state").textContent = text;
  $("state").className = isBad ? "bad" : "";
}

async function attempt(event) {
  event.preventDefault();
  if (running || !chosen) return;
  say("");
  if (!areArgumentsGood()) { say("Nothing was sent; see above.", true); return; }
  const tool = chosen, title = tool.title || tool.name, given = await readArguments(true), shown = JSON.stringify(given, null, 2);
  const isDangerous = tool.effect === "destructive";
  const effect = isDangerous ? "This call may change or remove what exists." : "This call adds something, or starts it.";
  if (tool.effect !== "read" && !await ask(`${title}?`, effect, shown, title, isDangerous)) { say("Not called."); return; }
  running = new AbortController();
  $("try").disabled = true;
  $("cancel").hidden = false;
  say("Calling…");
  const call = callOf(given), begun = performance.now();
  try {
    const result = await answered(call, shown, title);
    if (chosen !== tool) return;
    say(result.isError ? "The call failed." : "Done.", result.isError);
    showResult(result, performance.now() - begun);
    if (matchMedia("(max-width: 75rem)").matches) $("answer").scrollIntoView({ block: "nearest" });
  } catch (error) {
    if (chosen === tool) say(error.name === "AbortError" ? "Stopped." : error.message, error.name !== "AbortError");
  } finally {
    running = null;
    $("try").disabled = false;
    $("cancel").hidden = true;
  }
}

/** The result of a call, after all questions of the server. */
async function answered(call, shown, title) {
  let params = call;
  for (let round = 0; round < 5; round++) {
    const result = await request("tools/call", params, running.signal);
    if (result.resultType !== "input_required") return result;
    const answers = {};
    for (const [key, asked] of Object.entries(result.inputRequests || {})) {
      const question = (asked.params || asked).message || "The server asks for your consent.";
      answers[key] = await ask("The server asks", question, shown, title, false) ? { action: "accept", content: {} } : { action: "decline" };
    }
    params = { ...call, inputResponses: answers, requestState: result.requestState };
  }
  throw new Error("The server keeps asking.");
}
