// The form of a tool.
"use strict";
const assert = require("node:assert/strict");
const { petstore, serve, openTools, accessible, check, choose, isDone, field } = require("./driver.cjs");

module.exports = async browser => {
  const address = await serve(["--spec", petstore, "--mock"]);

  await check("a value that is wrong is named, and the error goes when it is mended", async () => {
    const { page, messages } = await openTools(browser, address);
    await choose(page, "get_pet");
    const input = field(page, "petId").locator("input");
    assert.equal(await input.inputValue(), "7", "the example of the document");
    for (const [value, error] of [["seven", "petId must be a whole number."], ["1.5", "petId must be a whole number."], ["0", "petId must be 1 or more."], ["", "petId is required."]]) {
      await input.fill(value);
      await page.click("#try");
      assert.equal(await field(page, "petId").locator(".error").textContent(), error);
      assert.equal(await page.evaluate(() => document.activeElement.getAttribute("aria-invalid")), "true");
    }
    await accessible(page, "an error");
    await input.fill("8");
    assert.ok(await field(page, "petId").locator(".error").isHidden());
    await page.click("#try");
    await isDone(page);
    assert.deepEqual(messages, []);
  });

  await check("required arguments come first with their examples, and the others are folded", async () => {
    const { page, messages } = await openTools(browser, address);
    await choose(page, "create_pet");
    assert.equal(await field(page, "name").locator("input").inputValue(), "Biscuit");
    assert.equal(await field(page, "price").locator("input").inputValue(), "145.5");
    assert.ok(await field(page, "microchip").locator("input").isHidden());
    await page.locator(".optional summary").first().click();
    const tags = field(page, "tags").locator("textarea");
    await tags.fill('["calm",\n "indoor",]');
    await page.click("#try");
    assert.equal(await field(page, "tags").locator(".error").textContent(), "tags is not valid JSON, line 2, character 11: there is a comma too many.");
    await tags.fill('["calm", 5]');
    assert.equal(await field(page, "tags").locator(".error").textContent(), "tags[1] must be text.");
    await field(page, "tags").getByRole("button", { name: /Use the example/ }).click();
    assert.ok(await field(page, "tags").locator(".error").isHidden());
    await accessible(page, "a form");
    await page.click("#try");
    assert.deepEqual(JSON.parse(await page.textContent("#question-detail")), { body: { name: "Biscuit", status: "available", price: 145.5, tags: ["calm", "indoor"] } });
    await page.click("#yes");
    await isDone(page);
    assert.deepEqual(messages, []);
  });

  await check("an optional argument is sent only if it is given, and the request shows it", async () => {
    const { page, messages } = await openTools(browser, address);
    await choose(page, "list_pets");
    await page.click("#kind-mcp");
    await page.waitForFunction(() => /"arguments": \{\}/.test(document.getElementById("curl").textContent));
    await page.locator(".optional summary").click();
    await page.getByRole("checkbox", { name: "pending" }).check();
    await page.waitForFunction(() => /"status": \["pending"\]/.test(document.getElementById("curl").textContent));
    assert.equal(await field(page, "limit").locator("input").getAttribute("placeholder"), "20 if empty");
    await page.selectOption("#fields select", { label: "-price" });
    await page.waitForFunction(() => /"sort": "-price"/.test(document.getElementById("curl").textContent));
    await page.click("#try");
    await isDone(page);
    assert.deepEqual(messages, []);
  });

  await check("a file is sent as the body of an upload", async () => {
    const { page, messages } = await openTools(browser, address);
    await choose(page, "upload_pet_photo");
    const file = page.locator("#fields input[type=file]");
    assert.equal(await file.count(), 1);
    await file.setInputFiles({ name: "cat.png", mimeType: "image/png", buffer: Buffer.from([137, 80, 78, 71, 13, 10, 26, 10]) });
    await page.click("#try");
    await page.waitForFunction(() => document.getElementById("question").open);
    assert.match(await page.textContent("#question-detail"), /iVBORw0KGgo=/);
    await page.click("#yes");
    await isDone(page);
    assert.deepEqual(messages, []);
  });
};
