// Calls: their results, requests, questions and failures.
"use strict";
const assert = require("node:assert/strict");
const { execFileSync } = require("node:child_process");
const fs = require("node:fs");
const http = require("node:http");
const os = require("node:os");
const path = require("node:path");
const { petstore, serve, openTools, accessible, check, choose, isDone, isRequested, isCounted } = require("./driver.cjs");

module.exports = async browser => {
  const address = await serve(["--spec", petstore, "--mock"]);

  await check("a call that reads is made at once, and its result is pretty", async () => {
    const { page, messages } = await openTools(browser, address + "/mcp", { permissions: ["clipboard-read", "clipboard-write"] });
    await choose(page, "get_pet");
    await page.click("#try");
    await isDone(page);
    assert.match(await page.textContent("#result pre"), /^\{\n {2}"id": 7,\n {2}"name": "Biscuit",[^]*"tags": \["calm", "indoor"\]/);
    assert.equal(await page.locator("#result .key").first().textContent(), '"id"');
    assert.match(await page.textContent("#measures"), /^[\d.]+ ms · \d+ B$/);
    assert.equal(await page.textContent("#outcome"), "OK");
    await page.click("#answer-copy button");
    assert.equal(JSON.parse(await page.evaluate(() => navigator.clipboard.readText())).name, "Biscuit");
    await isRequested(page);
    assert.match(await page.textContent("#curl"), /^curl --request GET http:\/\/127\.0\.0\.1:\d+\/pets\/7 /);
    await page.click("#kind-mcp");
    await page.waitForFunction(() => document.getElementById("curl").textContent.includes("mcp-name"));
    const curl = await page.textContent("#curl");
    assert.match(curl, /mcp-name: get_pet/);
    await page.focus("#kind-mcp");
    await page.keyboard.press("ArrowLeft");
    await page.waitForFunction(() => document.activeElement.id === "kind-http" && !document.getElementById("curl").textContent.includes("mcp-name"));
    assert.match(execFileSync("sh", ["-c", curl.replace("curl ", "curl --silent ")]).toString(), /Biscuit/);
    assert.deepEqual(messages, []);
  });

  await check("a picture in a result is shown", async () => {
    const { page, messages } = await openTools(browser, address);
    await choose(page, "get_pet_photo");
    await page.click("#try");
    await isDone(page);
    await page.waitForFunction(() => document.querySelector("#result img").naturalWidth > 0);
    await accessible(page, "a picture");
    assert.deepEqual(messages, []);
  });

  await check("a call that writes is asked about, and no is the default", async () => {
    const { page, messages } = await openTools(browser, address);
    await choose(page, "delete_pet");
    await page.click("#try");
    await page.waitForFunction(() => document.getElementById("question").open);
    assert.equal(await page.textContent("#question-title"), "Delete a pet?");
    assert.equal(await page.evaluate(() => document.activeElement.id), "no");
    await accessible(page, "a question");
    await page.keyboard.press("Enter");
    await isDone(page, "Not called.");
    await page.click("#try");
    await page.waitForFunction(() => document.getElementById("question").open);
    await page.click("#yes");
    await isDone(page);
    assert.deepEqual(messages, []);
  });

  await check("a question of the server is asked in the page", async () => {
    const { page, messages } = await openTools(browser, await serve(["--spec", petstore, "--mock", "--confirm", "store_status"]));
    await choose(page, "store_status");
    await page.click("#badges");
    assert.match(await page.textContent("#reasons"), /Asks first/);
    await page.click("#try");
    await page.waitForFunction(() => document.getElementById("question").open && document.getElementById("question-title").textContent === "The server asks");
    await page.click("#yes");
    await isDone(page);
    assert.equal(await page.textContent("#outcome"), "OK");
    assert.deepEqual(messages, []);
  });

  await check("an error is shown as one, and a note as a note", async () => {
    const upstream = http.createServer((request, response) => {
      if (request.method === "POST") { response.writeHead(201, { "content-type": "application/json", location: "/things/9007199254740993" }); response.end('{"id":9007199254740993}'); }
      else { response.writeHead(404, { "content-type": "application/json" }); response.end('{"why":"it is gone"}'); }
    });
    await new Promise(resolve => upstream.listen(0, "127.0.0.1", resolve));
    const folder = fs.mkdtempSync(path.join(os.tmpdir(), "page-")), spec = path.join(folder, "api.json");
    const responses = { 201: { description: "x", content: { "application/json": { schema: { type: "object", properties: { id: { type: "integer" } } } } } } };
    const paths = { "/things": { post: { operationId: "make_thing", responses }, get: { operationId: "list_things", responses: { 200: { description: "x" } } } } };
    fs.writeFileSync(spec, JSON.stringify({ openapi: "3.1.0", info: { title: "Things", version: "1" }, servers: [{ url: `http://127.0.0.1:${upstream.address().port}` }], paths }));
    const { page, messages } = await openTools(browser, await serve(["--spec", spec]));
    await choose(page, "make_thing");
    await page.click("#try");
    await page.click("#yes");
    await isDone(page);
    assert.match(await page.textContent("#result .note"), /^Note: .*\/things\/9007199254740993/);
    assert.equal(await page.locator("#result > pre").textContent(), '{\n  "id": 9007199254740993\n}');
    await choose(page, "list_things");
    assert.ok(await page.locator("#answer").isHidden());
    await page.click("#try");
    await isDone(page, "The call failed.");
    assert.equal(await page.textContent("#outcome"), "Error");
    assert.match(await page.textContent("#result"), /it is gone/);
    assert.deepEqual(messages, []);
    upstream.close();
    fs.rmSync(folder, { recursive: true });
  });

  await check("a server that is gone is named as the reason", async () => {
    const away = await serve(["--spec", petstore, "--mock"]);
    const { page } = await openTools(browser, away);
    await page.route("**/mcp", route => route.abort());
    await page.click("#try");
    await isDone(page, "The server does not answer. Is it still running?");
  });

  await check("in search mode the same list is shown, and a call goes through its meta-tool", async () => {
    const { page, messages } = await openTools(browser, await serve(["--spec", petstore, "--mock", "--tools", "search"]));
    await page.fill("#filter", "get one pet");
    await isCounted(page, " of 20 tools$");
    await choose(page, "get_pet");
    assert.match(await page.textContent("#tool-line"), /called through\s*call_read/);
    await page.click("#try");
    await isDone(page);
    assert.match(await page.textContent("#result"), /Biscuit/);
    await page.click("#kind-mcp");
    await page.waitForFunction(() => /mcp-name: call_read/.test(document.getElementById("curl").textContent));
    await accessible(page, "search mode");
    assert.deepEqual(messages, []);
  });
};
