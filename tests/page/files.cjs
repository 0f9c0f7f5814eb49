// Files of replies, which come from the API and lie on the origin of the page.
"use strict";
const assert = require("node:assert/strict");
const fs = require("node:fs");
const http = require("node:http");
const os = require("node:os");
const path = require("node:path");
const { serve, openTools, check, choose, isDone } = require("./driver.cjs");

const PAGE = "<!doctype html><title>shown</title><script>fetch('/mcp', { method: 'POST' }); document.title = 'run';</script>";

/** A server whose only tool makes a file of a page of this API. Gives its address. */
function servePageAsFile(folder, api) {
  const spec = path.join(folder, "api.json"), config = path.join(folder, "mcp.json");
  const paths = { "/export": { get: { operationId: "export" } } };
  fs.writeFileSync(spec, JSON.stringify({ openapi: "3.1.0", info: { title: "Exports", version: "1" }, paths }));
  fs.writeFileSync(config, JSON.stringify({ overrides: [{ match: { operation: "export" }, response: { file: true } }], file_store: path.join(folder, "store") }));
  const base = `http://127.0.0.1:${api.address().port}`;
  return serve(["--spec", spec, "--base-url", base, "--config", config]);
}

module.exports = async browser => {
  await check("a page of the API is saved, and neither shown nor run nor embedded", async () => {
    const folder = fs.mkdtempSync(path.join(os.tmpdir(), "openapi-mcp-files-"));
    const api = http.createServer((_, answer) => answer.writeHead(200, { "Content-Type": "text/html", "Content-Disposition": "inline" }).end(PAGE));
    await new Promise(resolve => api.listen(0, "127.0.0.1", resolve));
    try {
      const address = await servePageAsFile(folder, api);
      const { page, messages, context } = await openTools(browser, address, { acceptDownloads: true });
      await choose(page, "export");
      await page.click("#try");
      await isDone(page);
      const link = page.getByText(/^Download export, text\/html, \d+ B$/), url = await link.getAttribute("href");
      // The page of the server sends its messages as JSON, and the page of the API an empty one. The browser may report either late.
      const requested = [];
      page.on("request", request => { if (!request.postData()) requested.push(request.url()); });
      const [download] = await Promise.all([page.waitForEvent("download"), link.click()]);
      assert.equal(fs.readFileSync(await download.path(), "utf8"), PAGE);
      assert.equal(download.suggestedFilename(), "export");
      assert.deepEqual([requested, messages], [[url], []], "nothing of the page ran");
      await page.goto(`${address}/healthz`);
      const embedded = await page.evaluate(async url => {
        const frame = document.createElement("iframe"), script = document.createElement("script");
        const ended = new Promise(resolve => { script.onload = () => resolve("run"); script.onerror = () => resolve("refused"); });
        frame.src = script.src = url;
        document.body.append(frame, script);
        const outcome = await ended;
        return [outcome, document.title, frame.contentDocument?.title ?? ""];
      }, url);
      assert.deepEqual(embedded, ["refused", "", ""]);
      await context.close();
    } finally {
      api.close();
      fs.rmSync(folder, { recursive: true });
    }
  });
};
