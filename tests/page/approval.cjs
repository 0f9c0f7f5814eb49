// The page on which a person agrees to a call, for a client that cannot ask.
"use strict";
const assert = require("node:assert/strict");
const fs = require("node:fs");
const os = require("node:os");
const path = require("node:path");
const { spawn } = require("node:child_process");
const { binary, petstore, serve, open, accessible, check } = require("./driver.cjs");

const boss = "the-token-of-who-agrees", agent = "the-token-of-the-agent";
const asksByLink = { spec: petstore, mock: true, confirm: "write", confirm_by: "link" };

/** Writes a configuration, and gives its path. */
function configuration(more) {
  const file = path.join(fs.mkdtempSync(path.join(os.tmpdir(), "approval-")), "mcp.yaml");
  fs.writeFileSync(file, JSON.stringify({ ...asksByLink, ...more }));
  return file;
}

const meta = { "io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {} };
const message = petId => ({ jsonrpc: "2.0", id: 1, method: "tools/call", params: { name: "delete_pet", arguments: { petId }, _meta: meta } });

/** Calls over HTTP as a client without elicitation, and gives the result. */
async function call(address, petId) {
  const headers = { "content-type": "application/json", accept: "application/json, text/event-stream", "mcp-protocol-version": "2026-07-28", "mcp-method": "tools/call", "mcp-name": "delete_pet", authorization: `Bearer ${agent}` };
  const reply = await fetch(address + "/mcp", { method: "POST", headers, body: JSON.stringify(message(petId)) });
  return (await reply.json()).result;
}

const linkOf = result => /http:\/\/\S+\/approve\/\S+/.exec(result.content[0].text)[0];

/** What the page shows, without what may differ. */
async function reads(page) {
  await page.locator("#question").waitFor();
  for (const [id, text] of [["title", "Delete a pet"], ["request", "DELETE /pets/7 HTTP/1.1"], ["arguments", '"petId": 7'], ["facts", "delete_pet"], ["left", "9 min"]]) {
    await page.waitForFunction(([wanted, part]) => document.getElementById(wanted).textContent.includes(part), [id, text]);
  }
}

module.exports = async browser => {
  await check("over HTTP, a person signs in and agrees, and the call is made once", async () => {
    const config = configuration({ auth_token_env: ["AGENT"], auth_tokens: [{ name: "boss", env: "BOSS", approve: true }] });
    const address = await serve(["--config", config], { AGENT: agent, BOSS: boss });
    const asked = await call(address, 7);
    assert.equal(asked.isError, true);
    const { page, messages } = await open(browser, linkOf(asked));
    await page.locator("#sign-in").waitFor();
    assert.ok(!/delete_pet|Petstore/.test(await page.content()));
    await accessible(page, "a page that asks who agrees");
    await page.fill("#token", agent);
    await page.keyboard.press("Enter");
    await page.waitForFunction(() => /not accepted/.test(document.getElementById("state").textContent));
    // The browser reports the refusals itself.
    assert.ok(messages.every(message => /401/.test(message)), messages.join());
    messages.length = 0;
    await page.fill("#token", boss);
    await page.keyboard.press("Enter");
    await reads(page);
    await accessible(page, "a page with a call");
    assert.deepEqual(await page.evaluate(() => [localStorage.length, sessionStorage.length, document.cookie]), [0, 0, ""]);
    assert.match((await call(address, 7)).content[0].text, /approve/);
    await page.click("#approve");
    await page.waitForFunction(() => /Approved/.test(document.getElementById("state").textContent));
    assert.ok(await page.locator("#question").isHidden());
    assert.deepEqual(messages, []);
    assert.equal((await call(address, 7)).isError, false);
    const again = await call(address, 7);
    assert.notEqual(linkOf(again), page.url());
    await page.reload();
    await page.fill("#token", boss);
    await page.keyboard.press("Enter");
    await page.waitForFunction(() => /leads to no call/.test(document.getElementById("state").textContent));
  });

  await check("over stdio, the link is all that is needed, and a decline is an answer", async () => {
    const child = spawn(binary, ["serve", "--config", configuration({})], { env: { PATH: process.env.PATH }, stdio: ["pipe", "pipe", "ignore"] });
    try {
      const lines = require("node:readline").createInterface({ input: child.stdout })[Symbol.asyncIterator]();
      const ask = async petId => {
        child.stdin.write(JSON.stringify(message(petId)) + "\n");
        return JSON.parse((await lines.next()).value).result;
      };
      const asked = await ask(7);
      const { page, messages } = await open(browser, linkOf(asked));
      await reads(page);
      await page.click("#decline");
      await page.waitForFunction(() => /Declined/.test(document.getElementById("state").textContent));
      assert.match((await ask(7)).content[0].text, /the user declined/);
      await page.goto(linkOf(await ask(8)));
      await page.locator("#question").waitFor();
      await page.keyboard.press("Tab");
      await page.focus("#approve");
      await page.keyboard.press("Enter");
      await page.waitForFunction(() => /Approved/.test(document.getElementById("state").textContent));
      assert.equal((await ask(8)).isError, false);
      assert.deepEqual(messages, []);
    } finally { child.kill(); }
  });
};
