// A page whose tools need a token.
"use strict";
const assert = require("node:assert/strict");
const { petstore, serve, withKeys, open, accessible, check, choose, isDone } = require("./driver.cjs");

module.exports = async browser => {
  await check("without a token there is no tool, and a token lists them", async () => {
    const secret = "a-token-of-at-least-thirty-two-characters";
    const guarded = await serve(["--spec", petstore, "--mock", "--auth-token-env", "PAGE_TOKEN", ...withKeys({ page: "full" })], { PAGE_TOKEN: secret });
    const { page, messages } = await open(browser, guarded);
    assert.ok(!/list_pets|Petstore/.test(await page.content()));
    assert.ok(await page.locator("#tools").isHidden());
    assert.match(await page.textContent("#entry"), /--header 'Authorization: Bearer \$\{MCP_TOKEN\}'/);
    await accessible(page, "a page that asks for a token");
    await page.fill("#token", "wrong");
    await page.keyboard.press("Enter");
    await page.waitForFunction(() => /401/.test(document.getElementById("problem").textContent));
    // The browser reports the refusal itself.
    assert.ok(messages.every(message => /401/.test(message)), messages.join());
    messages.length = 0;
    await page.fill("#token", secret);
    await page.keyboard.press("Enter");
    await page.locator("#tools").waitFor();
    await choose(page, "store_status");
    await page.click("#try");
    await isDone(page);
    const curl = await page.textContent("#curl");
    assert.ok(!curl.includes(secret) && curl.includes("$MCP_TOKEN"), curl);
    assert.deepEqual(await page.evaluate(() => [localStorage.length, sessionStorage.length, document.cookie]), [0, 0, ""]);
    assert.ok(!page.url().includes(secret));
    await page.reload();
    assert.equal(await page.inputValue("#token"), "");
    assert.deepEqual(messages, []);
  });
};
