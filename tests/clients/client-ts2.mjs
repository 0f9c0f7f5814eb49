// The TypeScript client 2.x, in the era that the job names.
// Argument: the job as JSON (see check.py). Prints what the client saw as JSON.
import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";

const job = JSON.parse(process.argv[2]);
const transport = job.url
  ? new StreamableHTTPClientTransport(new URL(job.url))
  : new StdioClientTransport({ command: job.command[0], args: job.command.slice(1), stderr: "inherit" });

// `auto` is what a host would use: it must find the modern era by probing, without falling back.
const mode = job.era === "modern" ? "auto" : "legacy";
const client = new Client({ name: "clients-kit-ts2", version: "1.0.0" }, { versionNegotiation: { mode } });
await client.connect(transport);
const protocol = client.getNegotiatedProtocolVersion();
const server = client.getServerVersion();
const list = await client.listTools();
const results = [];
for (const [name, args] of job.calls) {
  try {
    results.push({ result: await client.callTool({ name, arguments: args }) });
  } catch (error) {
    results.push({ error: { code: error.code, message: error.message } });
  }
}
await client.close();
console.log(JSON.stringify({ protocol, server, list, results }));
