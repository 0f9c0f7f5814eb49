"use strict";
const $ = id => document.getElementById(id);
const EFFECTS = { read: "It only reads.", write: "It adds something.", destructive: "It may change or remove what exists." };
let token = "", hash = "", end = 0, timer = 0;

/** Sends a request to the address of this page. A proxy may sign the person in by a cookie of its own. */
async function send(method, body) {
  const headers = { accept: "application/json" };
  if (token) headers.authorization = "Bearer " + token;
  if (body) headers["content-type"] = "application/json";
  try {
    return await fetch(location.pathname, { method, headers, body: body && JSON.stringify(body), redirect: "error", credentials: "same-origin", cache: "no-store", referrerPolicy: "no-referrer" });
  } catch { return new Response("The server does not answer.", { status: 502 }); }
}

function say(text, isBad) {
  $("state").textContent = text;
  $("state").className = isBad ? "bad" : "";
}

function close(text, isBad) {
  clearInterval(timer);
  $("question").hidden = $("sign-in").hidden = true;
  say(text, isBad);
}

function fact(name, value) {
  const term = document.createElement("dt"), text = document.createElement("dd");
  term.textContent = name;
  text.textContent = value;
  $("facts").append(term, text);
}

function count() {
  const left = Math.max(0, Math.round((end - Date.now()) / 1000));
  $("left").textContent = `${Math.floor(left / 60)} min ${left % 60} s left`;
  if (!left) close("The time to answer is over.", true);
}

async function load() {
  const reply = await send("GET");
  if (reply.status === 401) {
    $("sign-in").hidden = false;
    $("token").focus();
    return say(token ? "The token is not accepted." : "", true);
  }
  if (!reply.ok) return close(await reply.text(), true);
  const { question, hash: shown, seconds } = await reply.json();
  hash = shown;
  end = Date.now() + 1000 * seconds;
  $("title").textContent = question.title;
  for (const [name, value] of [["API", question.api], ["Tool", question.tool], ["Operation", question.operation], ["Effect", EFFECTS[question.effect]],
    ["Hints", question.hints.map(([hint, value]) => `${hint}: ${value}`).join(", ")], ["Caller", question.caller]]) fact(name, value);
  $("arguments").textContent = question.arguments;
  $("request").textContent = question.request;
  $("sign-in").hidden = true;
  $("question").hidden = false;
  say("");
  timer = setInterval(count, 1000);
  count();
}

async function answer(agree) {
  $("approve").disabled = $("decline").disabled = true;
  const reply = await send("POST", { hash, agree });
  if (!reply.ok) return close(await reply.text(), true);
  close(agree ? "Approved. The call is made when the client calls again." : "Declined. The call is not made.");
}

$("sign-in").addEventListener("submit", event => { event.preventDefault(); token = $("token").value.trim(); load(); });
$("approve").addEventListener("click", () => answer(true));
$("decline").addEventListener("click", () => answer(false));
load();
