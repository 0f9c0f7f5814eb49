#!/usr/bin/env node
// Starts the binary of this system. It shares the three streams, passes signals on, and ends as the binary ends.
"use strict";
const { spawn } = require("node:child_process");
const { constants } = require("node:os");

const name = `openapi-mcp-server-${process.platform}-${process.arch}`;
const file = process.platform === "win32" ? "openapi-mcp.exe" : "openapi-mcp";
let binary;
try {
  binary = require.resolve(`${name}/${file}`);
} catch {
  console.error(`error: the package ${name}, which holds the program for this system, is not installed; install again without --omit=optional, or build openapi-mcp from source`);
  process.exit(1);
}
const child = spawn(binary, process.argv.slice(2), { stdio: "inherit", windowsHide: true });
for (const signal of ["SIGTERM", "SIGINT", "SIGHUP"]) process.on(signal, () => child.kill(signal));
child.on("error", error => {
  console.error(`error: ${binary} cannot be started: ${error.message}`);
  process.exit(1);
});
child.on("exit", (code, signal) => process.exit(code === null ? 128 + (constants.signals[signal] || 0) : code));
