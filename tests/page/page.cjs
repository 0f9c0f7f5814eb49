// Uses the server's page in a browser, as people do. Arguments: the binary, the folder of the project.
"use strict";
const { launch, stop, passed } = require("./driver.cjs");

async function main() {
  const browser = await launch();
  for (const checks of ["tools", "calls", "arguments", "access", "approval", "documents", "files", "sizes"]) await require(`./${checks}.cjs`)(browser);
  await browser.close();
}

main().then(
  () => console.log(`${passed()} passed`),
  error => { console.error(error); process.exitCode = 1; },
).finally(() => { stop(); process.exit(); });
