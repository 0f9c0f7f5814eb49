// Emits the OpenAPI documents of TypeSpec's specifications, and what their scenarios send, as JSON.
// Usage: node typespec.mjs SPECIFICATIONS OUTPUT; beside node_modules, because that is where imports look.
import { compile, createSourceFile, NodeHost } from "@typespec/compiler";
import { getOpenAPI3 } from "@typespec/openapi3";
import { readdir, writeFile, mkdir } from "node:fs/promises";
import { join, dirname } from "node:path";
import { pathToFileURL } from "node:url";

const [specifications, output] = process.argv.slice(2);
const config = { baseUrl: "http://localhost:3000" };

// Texts that depend on the server's address; {} stands for it.
function text(value) {
  if (value === undefined || value === null) return value;
  if (Buffer.isBuffer(value)) return { base64: value.toString("base64") };
  if (typeof value?.serialize === "function") return value.serialize(config);
  if (typeof value === "function") return value(config);
  if (Array.isArray(value)) return value.map(text);
  if (typeof value === "object") return Object.fromEntries(Object.entries(value).map(([key, one]) => [key, text(one)]));
  return value;
}

// The emitter fails on a parameter that is named as a member of every object of JavaScript: it is left out.
const host = {
  ...NodeHost,
  async readFile(path) {
    const file = await NodeHost.readFile(path);
    if (!path.endsWith("special-words/main.tsp")) return file;
    return createSourceFile(file.text.replace(/@query constructor: string/, "@query constructorOfOther: string"), file.path);
  },
};
const scenarios = {};
const problems = [];
for (const entry of (await readdir(specifications, { recursive: true })).sort()) {
  if (!entry.endsWith("main.tsp")) continue;
  const folder = dirname(entry);
  const target = join(output, folder.replaceAll("/", "_"));
  await mkdir(target, { recursive: true });
  // Not as an emitter, which writes nothing for a specification with an error.
  const program = await compile(host, join(specifications, entry), { noEmit: true });
  for (const version of ["3.0.0", "3.1.0", "3.2.0"]) {
    try {
      const services = await getOpenAPI3(program, { "openapi-versions": [version] });
      const documents = services.flatMap((service) => (service.versioned ? service.versions : [service]));
      await mkdir(join(target, version), { recursive: true });
      for (const [number, one] of documents.entries()) {
        await writeFile(join(target, version, `${one.version ?? number}.json`), JSON.stringify(one.document));
        for (const problem of one.diagnostics) if (problem.severity === "error") problems.push(`${folder} ${version}: ${problem.message}`);
      }
    } catch (error) {
      problems.push(`${folder} ${version}: the emitter failed: ${String(error.stack).slice(0, 300)}`);
    }
  }
  const mock = join(specifications, "..", "dist", "specs", folder, "mockapi.js");
  try {
    const { Scenarios } = await import(pathToFileURL(mock));
    for (const [name, scenario] of Object.entries(Scenarios)) {
      scenarios[name] = {
        folder: folder.replaceAll("/", "_"),
        apis: scenario.apis.map(({ uri, method, request }) => ({
          uri,
          method,
          query: text(request?.query),
          path: text(request?.pathParams),
          headers: text(request?.headers),
          body: request?.body && {
            ...request.body,
            rawContent: text(request.body.rawContent),
            parts: text(request.body.parts),
            files: text(request.body.files),
          },
        })),
      };
    }
  } catch (error) {
    problems.push(`${folder}: ${error.message}`);
  }
}
await writeFile(join(output, "scenarios.json"), JSON.stringify(scenarios));
await writeFile(join(output, "problems.txt"), problems.join("\n"));
