// The TypeScript SDK 1.x, which most shipped hosts embed. It knows only the legacy era.
// Argument: the job as JSON (see check.py). Prints what the client saw as JSON.
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";

const job = JSON.parse(process.argv[2]);
const transport = job.url
  ? new StreamableHTTPClientTransport(new URL(job.url))
  : new StdioClientTransport({ command: job.command[0], args: job.command.slice(1), stderr: "inherit" });

// The SDK tells the negotiated version only to its transport.
let protocol;
const tell = transport.setProtocolVersion?.bind(transport);
transport.setProtocolVersion = (version) => {
  protocol = version;
  tell?.(version);
};

const client = new Client({ name: "clients-kit-ts1", version: "1.0.0" });
await client.connect(transport);
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
console.log(JSON.stringify({ protocol, server: client.getServerVersion(), list, results }));
