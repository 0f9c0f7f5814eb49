// The size of the page, and how long it takes, also with many tools.
"use strict";
const assert = require("node:assert/strict");
const fs = require("node:fs");
const os = require("node:os");
const path = require("node:path");
const { petstore, serve, open, openTools, fits, check } = require("./driver.cjs");

/**
 * The fastest of some attempts, in milliseconds. What else the machine does can only add to a time, so that the fastest one is what the
 * page itself takes. A busy machine gets more attempts.
 */
async function fastest(limit, attempt) {
  const durations = [];
  while (durations.length < 5 || (Math.min(...durations) >= limit && durations.length < 40)) durations.push(await attempt());
  durations.sort((one, other) => one - other);
  console.log(`    of ${durations.length} attempts, the fastest took ${durations[0].toFixed(0)} ms and the median ${durations[durations.length >> 1].toFixed(0)} ms`);
  assert.ok(durations[0] < limit, `it took ${durations[0]} ms`);
}

module.exports = async browser => {
  await check("the page is small, and loads in less than 100 ms", async () => {
    const address = await serve(["--spec", petstore, "--mock"]), { page } = await open(browser, address);
    await fastest(100, async () => {
      await page.goto(address);
      await page.waitForFunction(() => performance.getEntriesByType("navigation")[0].loadEventEnd > 0);
      const [size, duration] = await page.evaluate(() => { const [loaded] = performance.getEntriesByType("navigation"); return [loaded.encodedBodySize, loaded.loadEventEnd - loaded.startTime]; });
      assert.ok(size > 0 && size < 100000, `the page has ${size} bytes`);
      return duration;
    });
  });

  await check("11,000 tools are there in less than a second", async () => {
    const folder = fs.mkdtempSync(path.join(os.tmpdir(), "page-")), spec = path.join(folder, "api.json"), paths = {};
    for (let number = 0; number < 11000; number++) paths[`/area${number % 300}/thing${number}`] = { get: { operationId: `read_thing_${number}`, summary: `Read thing ${number}`, tags: [`area ${number % 300}`], responses: { 200: { description: "x" } } } };
    fs.writeFileSync(spec, JSON.stringify({ openapi: "3.1.0", info: { title: "Everything", version: "1" }, servers: [{ url: "https://h.example" }], paths }));
    const address = await serve(["--spec", spec, "--mock"]), { page, messages } = await open(browser, address);
    await fastest(1000, async () => {
      await page.goto("about:blank");
      await page.goto(address);
      await page.waitForSelector("#list [role=option] .row-title");
      return page.evaluate(() => performance.now());
    });
    assert.ok(await page.locator("#list [role=option]").count() < 60);
    await fits(page, "11,000 tools");
    await page.focus("#list");
    await page.keyboard.press("End");
    await page.waitForFunction(() => document.getElementById("tool-name").textContent === "read_thing_10799" || [...document.querySelectorAll("#list [role=option] code")].some(code => code.textContent === "read_thing_10799"));
    await page.fill("#filter", "thing 4711");
    await page.waitForFunction(() => document.querySelector("#list .row-title").textContent === "Read thing 4711");
    assert.deepEqual(messages, []);
    fs.rmSync(folder, { recursive: true });
  });

  const corpus = process.env.OPENAPI_MCP_CORPUS;
  const large = corpus && fs.readdirSync(corpus, { recursive: true }).map(name => path.join(corpus, name)).find(name => /github/i.test(name) && /\.(json|ya?ml)$/.test(name) && fs.statSync(name).size > 1e6);
  if (!large) { console.log("skipped: a thousand tools, because OPENAPI_MCP_CORPUS holds no document of GitHub"); return; }
  await check("typing never waits for a thousand tools", async () => {
    const { page, messages } = await openTools(browser, await serve(["--spec", large, "--mock"]));
    await page.fill("#filter", "create an issue");
    await page.waitForFunction(() => document.querySelector("#list .row-title").textContent === "Create an issue");
    assert.match(await page.textContent("#count"), /^\d+ of 1,\d+ tools$/);
    let waited = Infinity;
    // As above, other work only adds to a pause. 50 ms is what people do not notice.
    for (let round = 0; round < 20 && waited >= 50; round++) {
      const pause = await page.evaluate(async () => {
        let longest = 0, before = performance.now(), ended = false;
        const tick = () => { const now = performance.now(); longest = Math.max(longest, now - before); before = now; if (!ended) setTimeout(tick); };
        tick();
        for (const text of ["p", "pu", "pul", "pull", "pull r", "pull re", ""]) { document.getElementById("filter").value = text; document.getElementById("filter").dispatchEvent(new Event("input")); await new Promise(resolve => setTimeout(resolve, 160)); }
        ended = true;
        return longest;
      });
      waited = Math.min(waited, pause);
    }
    console.log(`    typing waited for ${waited.toFixed(0)} ms at most`);
    assert.ok(waited < 50, `typing waited for ${waited} ms`);
    assert.deepEqual(messages, []);
  });
};
