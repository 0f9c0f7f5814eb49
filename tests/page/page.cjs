// Uses the server's page in a browser. Arguments: the binary, the folder of the project.
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

/** A page on which every message of the console and every violation is recorded. */
async function open(browser, address, options = {}) {
  const context = await browser.newContext({ viewport: { width: 1200, height: 900 }, ...options });
  const page = await context.newPage();
  const messages = [];
  page.on("console", message => messages.push(`${message.type()}: ${message.text()}`));
  page.on("pageerror", error => messages.push(`error: ${error.message}`));
  page.on("request", request => { const url = request.url(); if (!url.startsWith(address) && !url.startsWith("data:") && !url.startsWith("blob:")) messages.push(`request elsewhere: ${url}`); });
  await page.goto(address);
  return { page, messages, context };
}

async function accessible(page, what) {
  // Through the protocol, which the page's policy does not bind.
  const session = await page.context().newCDPSession(page);
  await session.send("Runtime.evaluate", { expression: axe });
  const answer = await session.send("Runtime.evaluate", { expression: "axe.run().then(result => JSON.stringify(result.violations.filter(found => ['serious', 'critical'].includes(found.impact)).map(found => found.id + ': ' + found.nodes.map(node => node.html).join(' '))))", awaitPromise: true, returnByValue: true });
  assert.deepEqual(JSON.parse(answer.result.value || "null"), [], `${what}: axe-core has findings`);
}

/**
 * What a picture is made from: the style of the page, and every text and value of the tools that can be seen. Pixels would differ with
 * the fonts and the browser of a machine.
 */
async function content(page) {
  const { style, texts } = await page.evaluate(() => {
    const texts = [], walker = document.createTreeWalker(document.getElementById("tools"), NodeFilter.SHOW_ELEMENT | NodeFilter.SHOW_TEXT);
    while (walker.nextNode()) {
      const node = walker.currentNode, element = node.parentElement;
      const text = node.nodeType === Node.TEXT_NODE ? node.data : node.value;
      if (typeof text === "string" && text.trim() && element.checkVisibility()) texts.push(text.trim());
    }
    return { style: document.querySelector("style").textContent, texts };
  });
  const digest = createHash("sha256").update(style).digest("hex");
  return [`style: ${digest}`, ...texts].join("\n").replaceAll(/127\.0\.0\.1:\d+/g, "127.0.0.1:8080") + "\n";
}

/** Takes a picture for the documentation, or checks that the one there was made from what the page shows now. */
async function picture(page, name) {
  const record = path.join(pictures, `${name}.txt`), shown = await content(page);
  if (renewing) {
    await page.screenshot({ path: path.join(pictures, `${name}.png`) });
    fs.writeFileSync(record, shown);
  } else assert.equal(shown, fs.readFileSync(record, "utf8"), `docs/pictures/${name}.png does not show the page as it is now; \`just pictures\` takes it again`);
}

async function check(name, run) {
  await run();
  passed += 1;
  console.log(`ok: ${name}`);
}

async function choose(page, name) {
  await page.fill("#filter", name);
  await page.locator("#rows button").first().click();
  await page.waitForFunction(wanted => document.getElementById("tool-name").textContent === wanted, name);
}

async function main() {
  const browser = await chromium.launch({ executablePath: process.env.BROWSER, args: ["--no-sandbox"] });
  const address = await serve(["--spec", petstore, "--mock"]);

  await check("the page lists the tools and filters them", async () => {
    const { page, messages } = await open(browser, address);
    await page.waitForFunction(() => document.getElementById("count").textContent === "20 tools");
    await page.fill("#filter", "photo");
    await page.waitForFunction(() => /^[1-9] of 20 tools$/.test(document.getElementById("count").textContent));
    await page.selectOption("#client", { label: "codex" });
    assert.match(await page.textContent("#snippet"), new RegExp(`url = "${address}/mcp"`));
    await accessible(page, "light");
    assert.deepEqual(messages, []);
  });

  await check("a call that reads is made at once, and shown as curl", async () => {
    const { page, messages } = await open(browser, address + "/mcp");
    await page.waitForFunction(() => document.getElementById("count").textContent === "20 tools");
    await choose(page, "get_pet");
    await page.locator("#fields input").first().fill("7");
    await page.click("#try");
    await page.waitForFunction(() => document.getElementById("state").textContent === "Done.");
    assert.match(await page.textContent("#result"), /Biscuit/);
    const curl = await page.textContent("#curl");
    assert.match(curl, /mcp-name: get_pet/);
    const answer = require("node:child_process").execFileSync("sh", ["-c", curl.replace("curl ", "curl --silent ")]).toString();
    assert.match(answer, /Biscuit/);
    await page.waitForFunction(() => !document.getElementById("sources").hidden);
    assert.match(await page.textContent("#source-list"), /readOnlyHint true: method/);
    await accessible(page, "with a result");
    await page.fill("#filter", "");
    await page.waitForFunction(() => document.getElementById("count").textContent === "20 tools");
    await page.setViewportSize({ width: 1200, height: 800 });
    await page.evaluate(() => document.getElementById("tools").scrollIntoView());
    await picture(page, "page");
    assert.deepEqual(messages, []);
  });

  await check("a call that writes is asked about, and no is the default", async () => {
    const { page, messages } = await open(browser, address);
    await page.waitForFunction(() => document.getElementById("count").textContent === "20 tools");
    await choose(page, "delete_pet");
    await page.locator("#fields input").first().fill("7");
    await page.click("#try");
    await page.waitForFunction(() => document.getElementById("question").open);
    assert.equal(await page.evaluate(() => document.activeElement.id), "no");
    await page.keyboard.press("Enter");
    await page.waitForFunction(() => document.getElementById("state").textContent === "Not called.");
    await page.click("#try");
    await page.waitForFunction(() => document.getElementById("question").open);
    await page.click("#yes");
    await page.waitForFunction(() => document.getElementById("state").textContent === "Done.");
    assert.deepEqual(messages, []);
  });

  await check("an error is shown as one", async () => {
    const { page, messages } = await open(browser, address);
    await page.waitForFunction(() => document.getElementById("count").textContent === "20 tools");
    await choose(page, "get_pet");
    await page.locator("#fields input").first().fill("\"no number\"");
    await page.click("#try");
    await page.waitForFunction(() => document.getElementById("outcome").textContent === "(an error)");
    assert.match(await page.textContent("#result"), /petId/);
    assert.deepEqual(messages, []);
  });

  await check("the page works with the keyboard alone, narrow and dark", async () => {
    const { page, messages } = await open(browser, address, { viewport: { width: 360, height: 800 }, colorScheme: "dark" });
    await page.waitForFunction(() => document.getElementById("count").textContent === "20 tools");
    assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= 360), "the page is wider than the window");
    await page.focus("#filter");
    await page.keyboard.type("store_status");
    await page.waitForFunction(() => document.getElementById("count").textContent.endsWith(" of 20 tools"));
    for (let step = 0; step < 5 && !await page.evaluate(() => document.activeElement.dataset.index !== undefined); step++) await page.keyboard.press("Tab");
    await page.keyboard.press("Enter");
    await page.waitForFunction(() => document.activeElement.id === "tool-title");
    for (let step = 0; step < 5 && !await page.evaluate(() => document.activeElement.id === "try"); step++) await page.keyboard.press("Tab");
    await page.keyboard.press("Enter");
    await page.waitForFunction(() => document.getElementById("state").textContent === "Done.");
    await page.waitForFunction(() => !document.getElementById("sources").hidden);
    await accessible(page, "narrow and dark");
    await picture(page, "page-dark");
    assert.deepEqual(messages, []);
  });

  await check("without a token there is no tool, and a token lists them", async () => {
    const secret = "a-token-of-at-least-thirty-two-characters";
    const guarded = await serve(["--spec", petstore, "--mock", "--auth-token-env", "PAGE_TOKEN"], { PAGE_TOKEN: secret });
    const { page, messages } = await open(browser, guarded);
    assert.ok(!/list_pets|Petstore/.test(await page.content()));
    assert.ok(await page.locator("#tools").isHidden());
    await page.fill("#token", secret);
    await page.keyboard.press("Enter");
    await page.waitForFunction(() => document.getElementById("count").textContent === "20 tools");
    await choose(page, "store_status");
    await page.click("#try");
    await page.waitForFunction(() => document.getElementById("state").textContent === "Done.");
    assert.ok(!(await page.textContent("#curl")).includes(secret));
    assert.deepEqual(await page.evaluate(() => [localStorage.length, sessionStorage.length, document.cookie]), [0, 0, ""]);
    await page.reload();
    assert.equal(await page.inputValue("#token"), "");
    assert.deepEqual(messages, []);
  });

  await check("in search mode the filter searches the operations, and a call goes through its meta-tool", async () => {
    const searching = await serve(["--spec", petstore, "--mock", "--tools", "search"]);
    const { page, messages } = await open(browser, searching);
    await page.waitForFunction(() => document.getElementById("count").textContent === "5 tools");
    await page.fill("#filter", "get one pet");
    await page.waitForFunction(() => / that fit$/.test(document.getElementById("count").textContent));
    await page.locator("#rows button", { hasText: "get_pet" }).first().click();
    await page.waitForFunction(() => document.getElementById("tool-name").textContent === "get_pet");
    await page.locator("#fields input").first().fill("7");
    await page.click("#try");
    await page.waitForFunction(() => document.getElementById("state").textContent === "Done.");
    assert.match(await page.textContent("#result"), /Biscuit/);
    assert.match(await page.textContent("#curl"), /mcp-name: call_read/);
    await accessible(page, "search mode");
    await page.fill("#filter", "");
    await page.waitForFunction(() => document.getElementById("count").textContent === "5 tools");
    assert.deepEqual(messages, []);
  });

  await check("a file is sent as the body of an upload", async () => {
    const { page, messages } = await open(browser, address);
    await page.waitForFunction(() => document.getElementById("count").textContent === "20 tools");
    await choose(page, "upload_pet_photo");
    const file = page.locator("#fields input[type=file]");
    assert.equal(await file.count(), 1);
    await page.locator("#fields input").first().fill("7");
    await file.setInputFiles({ name: "cat.png", mimeType: "image/png", buffer: Buffer.from([137, 80, 78, 71, 13, 10, 26, 10]) });
    await page.click("#try");
    await page.waitForFunction(() => document.getElementById("question").open);
    assert.match(await page.textContent("#question-detail"), /iVBORw0KGgo=/);
    await page.click("#yes");
    await page.waitForFunction(() => document.getElementById("state").textContent === "Done.");
    assert.equal(await page.textContent("#outcome"), "", await page.textContent("#result"));
    assert.deepEqual(messages, []);
  });

  await check("the page is small, and loads in less than 100 ms", async () => {
    const { page } = await open(browser, address);
    const durations = [];
    // What else the machine does can only add to the time of a load, so the fastest one is what the page itself takes. A busy machine
    // gets more tries.
    while (durations.length < 9 || (Math.min(...durations) >= 100 && durations.length < 60)) {
      await page.goto(address);
      await page.waitForFunction(() => performance.getEntriesByType("navigation")[0].loadEventEnd > 0);
      const [size, duration] = await page.evaluate(() => { const [loaded] = performance.getEntriesByType("navigation"); return [loaded.encodedBodySize, loaded.loadEventEnd - loaded.startTime]; });
      assert.ok(size > 0 && size < 60000, `the page has ${size} bytes`);
      durations.push(duration);
    }
    durations.sort((one, other) => one - other);
    const median = durations[durations.length >> 1];
    console.log(`    of ${durations.length} loads, the fastest took ${durations[0].toFixed(0)} ms and the median ${median.toFixed(0)} ms`);
    assert.ok(durations[0] < 100, `the page took ${durations[0]} ms`);
  });

  await check("a question of the server is asked in the page", async () => {
    const asking = await serve(["--spec", petstore, "--mock", "--confirm", "store_status"]);
    const { page, messages } = await open(browser, asking);
    await page.waitForFunction(() => document.getElementById("count").textContent === "20 tools");
    await choose(page, "store_status");
    await page.click("#try");
    await page.waitForFunction(() => document.getElementById("question").open && document.getElementById("question-title").textContent === "The server asks");
    await page.click("#yes");
    await page.waitForFunction(() => document.getElementById("state").textContent === "Done.");
    assert.equal(await page.textContent("#outcome"), "");
    assert.deepEqual(messages, []);
  });

  await check("hostile text of a document stays text", async () => {
    const folder = fs.mkdtempSync(path.join(os.tmpdir(), "page-"));
    const spec = path.join(folder, "api.json");
    const evil = "</script><script>document.title='evil'</script><img src=x onerror=\"document.title='evil'\">&lt;b&gt;\u202e evil \u2066";
    const parameters = [{ name: "x<img src=x onerror=1>", in: "query", description: evil, schema: { type: "string" } }];
    const responses = { 200: { description: "x", content: { "application/json": { example: { evil } } } } };
    fs.writeFileSync(spec, JSON.stringify({ openapi: "3.1.0", info: { title: evil, version: "1" }, servers: [{ url: "https://h.example" }], paths: { "/a": { get: { operationId: "evil", summary: evil, description: evil, parameters, responses } } } }));
    const hostile = await serve(["--spec", spec, "--mock"]);
    const { page, messages } = await open(browser, hostile);
    await page.waitForFunction(() => document.getElementById("count").textContent === "1 tool");
    await choose(page, "evil");
    await page.click("#try");
    await page.waitForFunction(() => document.getElementById("state").textContent === "Done.");
    assert.equal(await page.locator("img").count(), 0);
    assert.notEqual(await page.title(), "evil");
    assert.deepEqual(messages, []);
    const file = path.join(folder, "tools.html");
    fs.writeFileSync(file, require("node:child_process").execFileSync(binary, ["tools", "--spec", spec, "--format", "html"]));
    const opened = await open(browser, "file://" + file);
    await opened.page.waitForFunction(() => document.getElementById("count").textContent === "1 tool");
    assert.notEqual(await opened.page.title(), "evil");
    assert.deepEqual(opened.messages, []);
    fs.rmSync(folder, { recursive: true });
  });

  const corpus = process.env.OPENAPI_MCP_CORPUS;
  const large = corpus && fs.readdirSync(corpus, { recursive: true }).map(name => path.join(corpus, name)).find(name => /github/i.test(name) && /\.(json|ya?ml)$/.test(name) && fs.statSync(name).size > 1e6);
  if (large) {
    await check("a thousand tools are listed, and typing never waits", async () => {
      const big = await serve(["--spec", large, "--mock"]);
      const { page, messages } = await open(browser, big);
      await page.waitForFunction(() => parseInt(document.getElementById("count").textContent) > 1000);
      assert.ok(await page.locator("#rows li").count() < 60);
      let waited = Infinity;
      // As above, other work only adds to a pause. 50 ms is what people do not notice.
      for (let round = 0; round < 20 && waited >= 50; round++) {
        const pause = await page.evaluate(async () => {
          let longest = 0, since = performance.now(), ended = false;
          const tick = () => { longest = Math.max(longest, performance.now() - since); since = performance.now(); if (!ended) setTimeout(tick); };
          tick();
          for (const text of ["i", "is", "issue", ""]) { document.getElementById("filter").value = text; document.getElementById("filter").dispatchEvent(new Event("input")); await new Promise(resolve => setTimeout(resolve, 60)); }
          ended = true;
          return longest;
        });
        waited = Math.min(waited, pause);
      }
      console.log(`    typing waited for ${waited.toFixed(0)} ms at most`);
      assert.ok(waited < 50, `typing waited for ${waited} ms`);
      assert.deepEqual(messages, []);
    });
  } else console.log("skipped: a thousand tools, because OPENAPI_MCP_CORPUS holds no document of GitHub");
  await browser.close();
}

main().then(
  () => console.log(`${passed} passed`),
  error => { console.error(error); process.exitCode = 1; },
).finally(() => { for (const child of running) { child.removeAllListeners("exit"); child.kill(); } process.exit(); });
