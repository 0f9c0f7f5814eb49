// The head, the list and its filters, the detail of a tool, and how to connect a client.
"use strict";
const assert = require("node:assert/strict");
const { petstore, serve, withKeys, openTools, open, accessible, fits, picture, check, choose, chosen, isDone, isRequested, isCounted } = require("./driver.cjs");

module.exports = async browser => {
  const address = await serve(["--spec", petstore, "--mock"]);

  await check("the page begins with the tools, and the first one is open", async () => {
    const { page, messages } = await openTools(browser, address);
    assert.equal(await page.textContent("#title"), "Petstore");
    assert.equal(await page.textContent("#version"), "v1.0.0");
    assert.equal(await page.textContent("#counts"), "20 tools, 9 read-only, 4 add, 7 change or remove, all reach an external API");
    assert.ok(await page.locator("#mock").isVisible() && await page.locator("#upstream").isHidden());
    assert.ok(await page.evaluate(() => document.getElementById("logo").naturalWidth > 0 && document.querySelector("link[rel=icon]").href.startsWith("data:image/svg+xml")));
    assert.equal(await page.textContent("#endpoint"), `${address}/mcp`);
    assert.equal(await page.textContent("#tool-title"), "List pets");
    assert.equal(await page.textContent("#operation"), "GET /pets");
    // The title stands once, above the description.
    assert.match(await page.textContent("#description-text"), /^Returns one page/);
    assert.match(await page.locator("#list").ariaSnapshot(), /- option "List pets, list_pets, read-only"/);
    await accessible(page, "the first tool");
    assert.deepEqual(messages, []);
  });

  await check("a search ranks the tools, and effect and tag narrow them", async () => {
    const { page, messages } = await openTools(browser, address);
    await page.fill("#filter", "remove an order");
    await isCounted(page, "^\\d+ of 20 tools$");
    assert.equal(await page.locator(".row-title").first().textContent(), "Delete an order");
    // The beginning of a word is enough while it is typed.
    await page.fill("#filter", "invent");
    await isCounted(page, "^1 of 20 tools$");
    await page.fill("#filter", "");
    await page.selectOption("#effect", "destructive");
    await isCounted(page, "^7 of 20 tools$");
    await page.selectOption("#tag", "users");
    await isCounted(page, "^2 of 20 tools$");
    await page.fill("#filter", "qqqq");
    await isCounted(page, "^No tool fits");
    assert.deepEqual(messages, []);
  });

  await check("the list is one stop of the keyboard, and arrows walk through it", async () => {
    const { page, messages } = await openTools(browser, address);
    assert.equal(await page.locator("#list [tabindex]").count(), 0);
    await page.focus("#list");
    await page.keyboard.press("ArrowDown");
    await chosen(page, "create_pet");
    assert.equal(await page.evaluate(() => document.getElementById(document.getElementById("list").getAttribute("aria-activedescendant")).getAttribute("aria-selected")), "true");
    await page.keyboard.press("End");
    await chosen(page, "delete_user");
    assert.ok(await page.evaluate(() => document.getElementById("list").scrollTop > 0 && document.documentElement.scrollTop === 0), "the list scrolls by itself");
    await page.keyboard.press("Enter");
    await page.waitForFunction(() => document.activeElement.id === "tool-title");
    assert.match(page.url(), /#delete_user$/);
    await page.reload();
    await chosen(page, "delete_user");
    assert.deepEqual(messages, []);
  });

  await check("hints are in words, with their reasons", async () => {
    const { page } = await openTools(browser, address + "/#delete_pet");
    await page.waitForFunction(() => document.getElementById("tool-name").textContent === "delete_pet");
    assert.match(await page.textContent("#badges"), /^May change or remove what exists, Safe to repeat, Why\?$/);
    await page.click("#badges");
    assert.match(await page.textContent("#reasons"), /DELETE: removes; a repeat removes nothing more\. destructiveHint: true/);
    assert.equal(await page.textContent("#try"), "Delete a pet");
    assert.ok(await page.evaluate(() => document.getElementById("try").classList.contains("danger")));
    await accessible(page, "hints");
  });

  await check("a panel connects a client by its name, with a command where it has one", async () => {
    const { page, messages } = await openTools(browser, address, { permissions: ["clipboard-read", "clipboard-write"] });
    await page.click("#connect-open");
    assert.match(await page.textContent("#entry"), new RegExp(`claude mcp add --transport http --scope user petstore ${address}/mcp`));
    await page.locator("#entry .copy").first().click();
    assert.equal(await page.evaluate(() => navigator.clipboard.readText()), `claude mcp add --transport http --scope user petstore ${address}/mcp`);
    await page.locator("#clients label", { hasText: "Gemini CLI" }).click();
    assert.match(await page.textContent("#entry"), /httpUrl/);
    for (const client of ["Claude Desktop", "claude.ai", "ChatGPT"]) {
      await page.locator("#clients label", { hasText: client }).click();
      assert.match(await page.textContent("#entry"), /(add a custom|create a) connector with this address:.*public https address/);
      assert.equal(await page.locator("#entry a").count(), 0);
    }
    await page.locator("#clients label", { hasText: "Another client" }).click();
    assert.match(await page.textContent("#entry"), /streamable HTTP/);
    await accessible(page, "connect");
    await page.keyboard.press("Escape");
    await page.locator("#address .copy").click();
    assert.equal(await page.evaluate(() => navigator.clipboard.readText()), `${address}/mcp`);
    assert.deepEqual(messages, []);
  });

  await check("a server with a public address has a link that fills in the form of claude.ai", async () => {
    const { page, messages } = await open(browser, await serve(["--spec", petstore, "--mock", "--public-url", "https://mcp.example/mcp"]));
    await page.click("#connect-open");
    await page.locator("#clients label", { hasText: "claude.ai" }).click();
    assert.equal(await page.getAttribute("#entry a", "href"), "https://claude.ai/customize/connectors?modal=add-custom-connector&connectorName=Petstore&connectorUrl=https%3A%2F%2Fmcp.example%2Fmcp");
    await accessible(page, "a link");
    await page.locator("#clients label", { hasText: "ChatGPT" }).click();
    assert.match(await page.textContent("#entry"), /developer mode.*https:\/\/mcp\.example\/mcp$/);
    assert.deepEqual(messages, []);
  });

  await check("tools are in groups by tag, in rows of 40 pixels, and a line is under the good hits of a search", async () => {
    const { page, messages } = await openTools(browser, address);
    assert.equal(await page.locator("#list .heading").first().textContent(), "pets (9)");
    assert.deepEqual(await page.evaluate(() => [...new Set([...document.querySelectorAll("#list li")].map(row => row.offsetHeight))]), [40]);
    await page.fill("#filter", "remove an order");
    await isCounted(page, "^\\d+ of 20 tools$");
    assert.deepEqual(await page.locator("#list .heading").allTextContents(), ["Less likely"]);
    assert.ok(await page.evaluate(() => !document.querySelector("#list li").classList.contains("heading")));
    assert.equal(await page.evaluate(() => getComputedStyle(document.querySelector(".row-method.destructive")).color === getComputedStyle(document.querySelector(".row-method.write") || document.body).color), false);
    await page.selectOption("#tag", "pets");
    await page.fill("#filter", "");
    await isCounted(page, "^9 of 20 tools$");
    assert.equal(await page.locator("#list .heading").count(), 0);
    assert.deepEqual(messages, []);
  });

  await check("the base URL of an API is beside the title", async () => {
    const { page } = await openTools(browser, await serve(["--spec", petstore, "--base-url", "https://api.example/v1"]));
    assert.equal(await page.textContent("#upstream"), "https://api.example/v1");
    assert.ok(await page.locator("#mock").isHidden());
    await isRequested(page);
    assert.match(await page.textContent("#curl"), /^curl --request GET https:\/\/api\.example\/v1\/pets/);
  });

  await check("it fits 390, 768 and 1440 pixels, in light and dark", async () => {
    for (const width of [390, 768, 1440]) for (const colorScheme of ["light", "dark"]) {
      const { page, messages, context } = await openTools(browser, address, { viewport: { width, height: 800 }, colorScheme });
      await fits(page, `${width}, ${colorScheme}`);
      await accessible(page, `${width}, ${colorScheme}: the list`);
      await choose(page, "get_pet");
      await page.click("#try");
      await isDone(page);
      await fits(page, `${width}, ${colorScheme}: a result`);
      await accessible(page, `${width}, ${colorScheme}: a result`);
      assert.deepEqual(messages, []);
      await context.close();
    }
  });

  await check("the pictures of the documentation show the page as it is", async () => {
    for (const [name, colorScheme, width, height] of [["page", "light", 1280, 860], ["page-dark", "dark", 1280, 860], ["page-phone", "dark", 390, 844]]) {
      const { page, context } = await openTools(browser, address + "/#get_pet", { viewport: { width, height }, colorScheme, deviceScaleFactor: 2 });
      await chosen(page, "get_pet");
      await page.click("#try");
      await isDone(page);
      await isRequested(page);
      await page.evaluate(() => document.getElementById("tool").scrollTo(0, 0));
      await picture(page, name);
      await context.close();
    }
  });

  await check("the page works with the keyboard alone, narrow and dark", async () => {
    const { page, messages } = await openTools(browser, address, { viewport: { width: 390, height: 844 }, colorScheme: "dark" });
    await page.focus("#filter");
    await page.keyboard.type("store_status");
    // The list may still be that of the first letters.
    await page.locator("#list [role=option]").first().getByText("store_status", { exact: true }).waitFor();
    await page.keyboard.press("Enter");
    await chosen(page, "store_status");
    await page.waitForFunction(() => document.activeElement.id === "tool-title");
    for (let step = 0; step < 8 && !await page.evaluate(() => document.activeElement.id === "try"); step++) await page.keyboard.press("Tab");
    await page.keyboard.press("Enter");
    await isDone(page);
    await page.focus("#back");
    await page.keyboard.press("Enter");
    await page.waitForFunction(() => document.activeElement.id === "list");
    assert.deepEqual(messages, []);
  });

  await check("the list that is narrow gives way to a tool, and the browser goes back to it", async () => {
    const { page } = await openTools(browser, address, { viewport: { width: 390, height: 844 } });
    assert.ok(await page.locator("#tool").isHidden());
    await page.locator("#list [role=option]").nth(3).click();
    await page.locator("#tool-title").waitFor();
    assert.ok(await page.locator("#side").isHidden());
    await page.goBack();
    await page.locator("#side").waitFor();
  });

  await check("a server that only says how to connect shows it at once", async () => {
    const { page, messages } = await open(browser, await serve(["--spec", petstore, "--mock", ...withKeys({ page: "public" })]));
    await page.locator("#entry .copy").first().waitFor();
    assert.ok(await page.locator("#tools").isHidden() && await page.locator("#connect-open").isHidden());
    assert.ok(!/list_pets|Petstore/.test(await page.content()));
    await accessible(page, "public");
    assert.deepEqual(messages, []);
  });
};
