// The API behind openapi.yaml. Serves on a free port of 127.0.0.1 and prints the port.
import { createServer } from "node:http";
import { setTimeout as pause } from "node:timers/promises";

const pixel = Buffer.from(
  "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==",
  "base64",
);

/** One sample of silence: 8 bit, mono, 8 kHz. */
function sound() {
  const header = Buffer.from("RIFF....WAVEfmt ....\x01\0\x01\0............data....", "latin1");
  header.writeUInt32LE(37, 4); // what follows
  header.writeUInt32LE(16, 16); // size of the format
  header.writeUInt32LE(8000, 24); // samples per second
  header.writeUInt32LE(8000, 28); // bytes per second
  header.writeUInt16LE(1, 32); // bytes per sample
  header.writeUInt16LE(8, 34); // bits per sample
  header.writeUInt32LE(1, 40); // size of the data
  return Buffer.concat([header, Buffer.from([0x80])]);
}

const paper = Buffer.from("%PDF-1.4\n1 0 obj<</Type/Catalog>>endobj\ntrailer<</Root 1 0 R>>\n%%EOF\n");

function mixed(boundary) {
  const parts = [
    ["text/plain; charset=utf-8", Buffer.from("First a text, then a picture, then a document.")],
    ["image/png", pixel],
    ["application/pdf", paper],
  ];
  const bytes = parts.flatMap(([type, body]) => [
    Buffer.from(`--${boundary}\r\nContent-Type: ${type}\r\n\r\n`),
    body,
    Buffer.from("\r\n"),
  ]);
  return Buffer.concat([...bytes, Buffer.from(`--${boundary}--\r\n`)]);
}

/** Its length is known from the start, so whoever reads it can tell how far it is. */
async function slowly(response) {
  const pieces = ["A third, ", "two thirds, ", "and all of it."];
  response.writeHead(200, { "Content-Type": "text/plain", "Content-Length": pieces.join("").length });
  response.flushHeaders();
  for (const piece of pieces) {
    await pause(150);
    response.write(piece);
  }
  await pause(150);
  response.end();
}

const text = "text/plain; charset=utf-8";
const replies = {
  "GET /text": [200, text, "A line of plain text."],
  "GET /image": [200, "image/png", pixel],
  "GET /audio": [200, "audio/wav", sound()],
  "GET /document": [200, "application/pdf", paper],
  "GET /mixed": [200, "multipart/mixed; boundary=piece", mixed("piece")],
  "GET /error": [500, text, "This always fails."],
  "GET /streaming": [200, text, "Nothing was asked of the client."],
  "GET /logging": [200, text, "Nothing was logged."],
  "GET /custom-header": [200, text, "A region arrived."],
  "POST /contacts": [200, text, "A contact arrived."],
};

const server = createServer(async (request, response) => {
  for await (const _ of request); // the body does not matter
  const route = `${request.method} ${new URL(request.url, "http://upstream").pathname}`;
  if (route === "GET /slow") return slowly(response);
  const [status, type, body] = replies[route] ?? [404, text, `no ${route} here`];
  response.writeHead(status, { "Content-Type": type, "Content-Length": Buffer.byteLength(body) });
  response.end(body);
});
server.listen(0, "127.0.0.1", () => console.log(server.address().port));
