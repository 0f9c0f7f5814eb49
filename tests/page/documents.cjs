// What documents write: Markdown, hostile text, and the page as a file.
"use strict";
const assert = require("node:assert/strict");
const { execFileSync } = require("node:child_process");
const fs = require("node:fs");
const os = require("node:os");
const path = require("node:path");
const { binary, petstore, serve, openTools, accessible, check, choose, isCounted } = require("./driver.cjs");

function write(folder, title, operation) {
  const spec = path.join(folder, "api.json");
  fs.writeFileSync(spec, JSON.stringify({ openapi: "3.1.0", info: { title, version: "1" }, servers: [{ url: "https://h.example" }], paths: { "/a": { get: { responses: { 200: { description: "x" } }, ...operation } } } }));
  return spec;
}

function asFile(folder, spec) {
  const file = path.join(folder, "tools.html");
  fs.writeFileSync(file, execFileSync(binary, ["tools", "--spec", spec, "--format", "html"]));
  return "file://" + file;
}

module.exports = async browser => {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), "page-"));

  await check("a description is rendered: code, lists, emphasis, and links as text", async () => {
    const description = "Reads **all** of `a_b_c` and *more*, see [the guide](https://elsewhere.example/x).\n\n## Limits\n\n- one\n- two\n  - inner\n\n1. first\n\n```\nGET /a\n```\n\nA snake_case_word stays, 2 * 3 * 4 too.";
    const { page, messages } = await openTools(browser, await serve(["--spec", write(folder, "Words", { operationId: "read_words", summary: "Read words", description }), "--mock"]));
    const box = page.locator("#description-text");
    assert.equal(await box.locator("strong").textContent(), "all");
    assert.equal(await box.locator("p code").textContent(), "a_b_c");
    assert.deepEqual(await box.locator("em").allTextContents(), ["more"]);
    assert.equal(await box.locator("h3").textContent(), "Limits");
    assert.equal(await box.locator("ul ul li").textContent(), "inner");
    assert.equal(await box.locator("pre").textContent(), "GET /a");
    assert.equal(await box.locator("a").count(), 0);
    assert.equal(await box.locator(".link-text").getAttribute("title"), "https://elsewhere.example/x");
    await page.click("#fold");
    assert.match(await box.textContent(), /A snake_case_word stays, 2 \* 3 \* 4 too\.$/);
    await accessible(page, "a description");
    assert.deepEqual(messages, []);
  });

  await check("the HTML that documents use for text is rendered, and no other", async () => {
    const description = '<p>Makes a <code>Charge</code>, see <a href="/docs">the guide</a>.</p>\n<ul>\n<li>one</li>\n<li><b>two</b></li>\n</ul><p>a &lt; b <img src=x></p>';
    const { page, messages } = await openTools(browser, await serve(["--spec", write(folder, "Tags", { operationId: "read_tags", summary: "Read tags", description }), "--mock"]));
    const box = page.locator("#description-text");
    assert.equal(await box.locator("p").first().textContent(), "Makes a Charge, see the guide.");
    assert.deepEqual([await box.locator("code").textContent(), await box.locator("li").allTextContents()], ["Charge", ["one", "two"]]);
    assert.equal(await box.locator("p").last().textContent(), "a < b <img src=x>");
    assert.deepEqual([await page.locator("img:not(#logo)").count(), await page.locator("a").count()], [0, 0]);
    assert.deepEqual(messages, []);
  });

  await check("hostile text of a document stays text", async () => {
    const evil = "</script><script>document.title='evil'</script><img src=x onerror=\"document.title='evil'\">&lt;b&gt;\u202e evil \u2066 [x](javascript:alert(1)) ![p](https://elsewhere.example/p.png) <!--script--> <!--settings-->";
    const parameters = [{ name: "x<img src=x onerror=1>", in: "query", description: evil, schema: { type: "string" } }];
    const responses = { 200: { description: "x", content: { "application/json": { example: { evil } } } } };
    const spec = write(folder, evil, { operationId: "evil", summary: evil, description: evil, tags: [evil], parameters, responses });
    const { page, messages } = await openTools(browser, await serve(["--spec", spec, "--mock"]));
    await page.click("#try");
    await page.locator("#answer").waitFor();
    assert.deepEqual([await page.locator("img:not(#logo)").count(), await page.locator("a").count(), await page.locator("script").count()], [0, 0, 2]);
    assert.notEqual(await page.title(), "evil");
    assert.deepEqual(messages, []);
    const opened = await openTools(browser, asFile(folder, spec));
    assert.equal(await opened.page.locator("img:not(#logo)").count(), 0);
    assert.notEqual(await opened.page.title(), "evil");
    assert.deepEqual(opened.messages, []);
  });

  await check("the same page is a file, which calls nothing", async () => {
    const { page, messages } = await openTools(browser, asFile(folder, petstore));
    assert.equal(await page.textContent("#counts"), "20 tools, 9 read-only, 4 add, 7 change or remove");
    await page.fill("#filter", "photo");
    await isCounted(page, "^\\d+ of 20 tools$");
    await choose(page, "get_pet");
    assert.match(await page.textContent("#fields"), /petId.*integer.*required/);
    assert.deepEqual([await page.locator("#fields input").count(), await page.locator("#try").isVisible(), await page.locator("#request").isVisible()], [0, false, false]);
    await accessible(page, "a file");
    assert.deepEqual(messages, []);
  });

  fs.rmSync(folder, { recursive: true });
};
