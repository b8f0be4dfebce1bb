// The hall on the TypeScript SDK 2.x: sdk2.cjs [PORT].
const { createServer } = require("node:http");
const { toNodeHandler } = require("@modelcontextprotocol/node");
const { McpServer, ResourceTemplate, createMcpHandler, inputRequired } = require("@modelcontextprotocol/server");
const { serveStdio } = require("@modelcontextprotocol/server/stdio");
const hall = require("./hall.cjs");

const key = hall.key();

function make() {
  const mcp = new McpServer(hall.info, { instructions: hall.instructions });
  mcp.registerTool("book", { description: "Book the hall.", inputSchema: hall.booking }, (args) => hall.text(JSON.stringify(args)));
  mcp.registerTool("size", { description: "The size of the hall.", outputSchema: hall.size, annotations: hall.readOnly }, () => ({
    content: [{ type: "text", text: hall.sizeText }],
    structuredContent: hall.sized,
  }));
  mcp.registerTool("doors", { description: "The doors of the hall.", outputSchema: hall.doors }, () => ({ structuredContent: hall.sized.doors }));
  mcp.registerTool("ask", { description: "Ask who comes." }, (ctx) => {
    const answer = ctx.mcpReq.inputResponses?.who;
    return answer ? hall.text(hall.asked(answer)) : inputRequired({ inputRequests: { who: inputRequired.elicit(hall.form) } });
  });
  mcp.registerTool("plan", { description: "The plan of the hall." }, () => ({ content: [hall.plan, hall.photo].map((one) => ({ type: "resource_link", ...one })) }));
  mcp.registerTool("fail", { description: "Fail." }, () => {
    throw new Error(hall.closed);
  });
  mcp.registerResource(hall.plan.name, hall.plan.uri, { mimeType: hall.plan.mimeType }, () => ({ contents: [{ ...hall.plan, text: hall.planText }] }));
  mcp.registerResource(hall.photo.name, hall.photo.uri, { mimeType: hall.photo.mimeType }, () => ({ contents: [{ ...hall.photo, blob: hall.photoBlob }] }));
  mcp.registerResource("Room", new ResourceTemplate("hall://rooms/{name}", { list: undefined }), {}, (uri, { name }) => ({
    contents: [{ uri: uri.href, text: hall.room(name) }],
  }));
  mcp.registerResource(hall.guests.name, hall.guests.uri, {}, (_, ctx) => {
    const answer = ctx.mcpReq.inputResponses?.who;
    return answer ? { contents: [{ ...hall.guests, text: hall.asked(answer) }] } : inputRequired({ inputRequests: { who: inputRequired.elicit(hall.form) } });
  });
  // The library has no pages; it lists all.
  const list = mcp.server._requestHandlers.get("tools/list");
  mcp.server.setRequestHandler("tools/list", async (request, ctx) => {
    const from = Number(request.params?.cursor ?? 0);
    const { tools, ...rest } = await list(request, ctx);
    return { ...rest, tools: tools.slice(from, from + 2), nextCursor: from + 2 < tools.length ? String(from + 2) : undefined };
  });
  return mcp;
}

if (process.argv[2]) {
  const handle = toNodeHandler(createMcpHandler(make));
  createServer((req, res) => {
    if (req.headers.authorization !== `Bearer ${key}`) return res.writeHead(401).end("Bring your key.");
    return handle(req, res);
  }).listen(Number(process.argv[2]), "127.0.0.1", () => console.error("listening"));
} else {
  serveStdio(make);
}
