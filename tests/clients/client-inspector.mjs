// The Inspector's command line, one process per request, in the era that the job names.
// Argument: the job as JSON (see check.py). Prints what the client saw as JSON.
import { spawnSync } from "node:child_process";
import { createRequire } from "node:module";

const job = JSON.parse(process.argv[2]);
const manifest = createRequire(import.meta.url).resolve("@modelcontextprotocol/inspector/package.json");
const launcher = new URL("clients/launcher/build/index.js", `file://${manifest}`).pathname;

function inspect(...options) {
  const common = [launcher, "--cli", "--protocol-era", job.era, "--format", "json", ...options];
  const target = job.url
    ? ["--transport", "http", "--server-url", job.url]
    : ["--transport", "stdio", "--", ...job.command];
  const run = spawnSync(process.execPath, [...common, ...target], { encoding: "utf8", timeout: 30_000 });
  if (run.error) throw run.error;
  return run;
}

/** The last line that is a JSON object: servers may log before it on the same stream. */
function lastObject(text) {
  for (const line of text.trim().split("\n").reverse()) {
    try {
      const value = JSON.parse(line);
      if (value && typeof value === "object") return value;
    } catch {}
  }
  return undefined;
}

// --strict lints the schemas for portability and ends with 6 if one is unusable in some host.
const listing = inspect("--method", "tools/list", "--strict");
const list = lastObject(listing.stdout)?.result;
if (!list) throw new Error(`tools/list ended with ${listing.status}: ${listing.stderr}`);

const results = [];
for (const [name, args] of job.calls) {
  const run = inspect("--method", "tools/call", "--tool-name", name, "--tool-args-json", JSON.stringify(args));
  results.push(lastObject(run.stdout) ?? lastObject(run.stderr) ?? { error: { message: run.stderr, exit: run.status } });
}
console.log(JSON.stringify({ list, results, lint: { exit: listing.status, report: listing.stderr } }));
