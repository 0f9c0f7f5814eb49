// Starts servers and a browser, and looks at a page. Arguments of the process: the binary, the folder of the project.
"use strict";
const { spawn } = require("node:child_process");
const { createHash } = require("node:crypto");
const fs = require("node:fs");
const os = require("node:os");
const path = require("node:path");
const assert = require("node:assert/strict");
const { chromium } = require("playwright-core");
const axe = fs.readFileSync(require.resolve("axe-core/axe.min.js"), "utf8");

const [binary, root] = process.argv.slice(2);
const pictures = path.join(root, "docs/pictures");
const renewing = process.env.RENEW_PICTURES === "1";
const petstore = path.join(root, "examples/petstore/petstore.yaml");
const running = [];
let passed = 0;

const launch = () => chromium.launch({ executablePath: process.env.BROWSER, args: ["--no-sandbox"] });

/** The arguments for a configuration file with these keys. */
function withKeys(keys) {
  const file = path.join(fs.mkdtempSync(path.join(os.tmpdir(), "openapi-mcp-page-")), "config.json");
  fs.writeFileSync(file, JSON.stringify(keys));
  return ["--config", file];
}

/** Starts a server on a free port, and gives its address. */
function serve(args, variables = {}) {
  return new Promise((resolve, reject) => {
    const child = spawn(binary, ["serve", "--transport", "http", "--bind", "127.0.0.1:0", ...args], { env: { PATH: process.env.PATH, ...variables }, stdio: ["ignore", "ignore", "pipe"] });
    running.push(child);
    let log = "";
    child.stderr.on("data", data => {
      log += data;
      const found = /listening on (http:\/\/[^/\s]+)\/mcp/.exec(log);
      // The tools are there when both lines are.
      if (found && / tools? \(/.test(log)) resolve(found[1]);
    });
    child.on("exit", code => reject(new Error(`the server ended with ${code}: ${log}`)));
  });
}

/** Ends the servers. */
function stop() {
  for (const child of running) { child.removeAllListeners("exit"); child.kill(); }
}

/** A page on which every message of the console and every violation is recorded. */
async function open(browser, address, options = {}) {
  const context = await browser.newContext({ viewport: { width: 1280, height: 800 }, ...options });
  const page = await context.newPage();
  const messages = [];
  page.on("console", message => messages.push(`${message.type()}: ${message.text()}`));
  page.on("pageerror", error => messages.push(`error: ${error.message}`));
  const origin = new URL(address).protocol === "file:" ? address : new URL(address).origin;
  page.on("request", request => { const url = request.url(); if (!url.startsWith(origin) && !url.startsWith("data:") && !url.startsWith("blob:")) messages.push(`request elsewhere: ${url}`); });
  await page.goto(address);
  return { page, messages, context };
}

/** Opens a page, and waits for its first tool. */
async function openTools(browser, address, options = {}) {
  const opened = await open(browser, address, options);
  await opened.page.waitForSelector("#detail:not([hidden])", { state: "attached" });
  return opened;
}

/** axe-core finds nothing, not even a recommendation. */
async function accessible(page, what) {
  // Through the protocol, which the page's policy does not bind.
  const session = await page.context().newCDPSession(page);
  await session.send("Runtime.evaluate", { expression: axe });
  const answer = await session.send("Runtime.evaluate", { expression: "axe.run().then(result => JSON.stringify(result.violations.map(found => found.id + ': ' + found.nodes.map(node => node.html).join(' '))))", awaitPromise: true, returnByValue: true });
  assert.deepEqual(JSON.parse(answer.result.value || "null"), [], `${what}: axe-core has findings`);
}

/** Nothing is wider than the window, and the window does not scroll. */
async function fits(page, what) {
  const wide = await page.evaluate(() => [document.documentElement.scrollWidth - innerWidth, document.documentElement.scrollHeight - innerHeight, document.getElementById("tool").scrollWidth - document.getElementById("tool").clientWidth]);
  assert.deepEqual(wide.map(excess => Math.max(0, excess)), [0, 0, 0], `${what}: the page is wider or longer than the window`);
}

/**
 * What a picture is made from: the style of the page, and every text and value that can be seen. Pixels would differ with the fonts and
 * the browser of a machine.
 */
async function content(page) {
  const { style, texts } = await page.evaluate(() => {
    const texts = [], walker = document.createTreeWalker(document.body, NodeFilter.SHOW_ELEMENT | NodeFilter.SHOW_TEXT);
    while (walker.nextNode()) {
      const node = walker.currentNode, element = node.parentElement;
      const text = node.nodeType === Node.TEXT_NODE ? node.data : node.value;
      if (typeof text === "string" && text.trim() && element.checkVisibility() && !element.closest(".unseen")) texts.push(text.trim());
    }
    return { style: document.querySelector("style").textContent, texts };
  });
  const digest = createHash("sha256").update(style).digest("hex");
  return [`style: ${digest}`, ...texts].join("\n").replaceAll(/127\.0\.0\.1:\d+/g, "127.0.0.1:8080").replaceAll(/[\d.]+ ms/g, "25 ms") + "\n";
}

/** Takes a picture for the documentation, or checks that the one there was made from what the page shows now. */
async function picture(page, name) {
  const record = path.join(pictures, `${name}.txt`), shown = await content(page);
  if (renewing) {
    await page.evaluate(() => {
      document.activeElement.blur();
      for (const node of [document.getElementById("endpoint"), document.getElementById("curl")]) node.textContent = node.textContent.replace(/127\.0\.0\.1:\d+/, "127.0.0.1:8080");
    });
    await page.mouse.move(0, 0);
    await page.screenshot({ path: path.join(pictures, `${name}.png`), animations: "disabled" });
    fs.writeFileSync(record, shown);
  } else assert.equal(shown, fs.readFileSync(record, "utf8"), `docs/pictures/${name}.png does not show the page as it is now; \`just pictures\` takes it again`);
}

async function check(name, run) {
  await run();
  passed += 1;
  console.log(`ok: ${name}`);
}

/** Searches a tool by its name, and opens it. */
async function choose(page, name) {
  await page.fill("#filter", name);
  await page.locator("#list [role=option]", { has: page.getByText(name, { exact: true }) }).first().click();
  await chosen(page, name);
}

const chosen = (page, name) => page.waitForFunction(wanted => document.getElementById("tool-name").textContent === wanted, name);
const isRequested = page => page.waitForFunction(() => document.getElementById("curl").textContent.startsWith("curl"));
const isDone = (page, words = "Done.") => page.waitForFunction(wanted => document.getElementById("state").textContent === wanted, words);
const isCounted = (page, pattern) => page.waitForFunction(wanted => new RegExp(wanted).test(document.getElementById("count").textContent), pattern);
const field = (page, name) => page.locator(`.field:has(.label-name:text-is("${name}"))`);

module.exports = { binary, petstore, launch, serve, withKeys, stop, open, openTools, accessible, fits, picture, check, choose, chosen, isDone, isRequested, isCounted, field, passed: () => passed };
