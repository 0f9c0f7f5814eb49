"use strict";
const settings = JSON.parse(document.getElementById("settings").textContent);
const $ = id => document.getElementById(id);

/** Makes an element. Its text stays text, whatever a document wrote. */
function make(name, text, classes) {
  const node = document.createElement(name);
  if (text !== undefined) node.textContent = text;
  if (classes) node.className = classes;
  return node;
}

/** Makes an element that holds other nodes. */
function wrap(name, classes, ...children) {
  const node = make(name, undefined, classes);
  node.append(...children);
  return node;
}

const fill = (node, ...children) => node.replaceChildren(...children);
const icon = name => $("icon-" + name).content.firstElementChild.cloneNode(true);
const counted = (number, word) => `${number.toLocaleString("en")} ${word}${number === 1 ? "" : "s"}`;
const announce = text => { $("announcer").textContent = text; };

/** A text in an element that scrolls, which the keyboard reaches. */
function scrolling(text, label, classes) {
  const pre = make("pre", text, ("foreign " + (classes || "")).trim());
  pre.tabIndex = 0;
  pre.setAttribute("role", "group");
  pre.setAttribute("aria-label", label);
  return pre;
}

async function copy(text) {
  try { await navigator.clipboard.writeText(text); return true; } catch { /* Only pages from loopback or over TLS have a clipboard. */ }
  const area = make("textarea", text, "unseen"), from = document.activeElement;
  (document.querySelector("dialog[open]") || document.body).append(area);
  area.select();
  const done = document.execCommand("copy");
  area.remove();
  if (from) from.focus();
  return done;
}

/** A button that copies what `text` returns; `what` names it for screen readers. */
function copyButton(what, text) {
  const button = make("button", undefined, "copy");
  button.type = "button";
  button.setAttribute("aria-label", "Copy " + what);
  button.title = "Copy " + what;
  button.append(icon("copy"));
  button.addEventListener("click", async () => {
    const done = await copy(text());
    announce(done ? "Copied." : "It cannot be copied here; select it and use the keyboard.");
    if (!done) return;
    fill(button, icon("done"));
    setTimeout(() => fill(button, icon("copy")), 1600);
  });
  return button;
}

const EFFECTS = {
  read: { word: "read-only", plural: "read-only", choice: "Read-only" },
  write: { word: "adds", plural: "add", choice: "Adds" },
  destructive: { word: "changes or removes", plural: "change or remove", choice: "Changes or removes" },
};
