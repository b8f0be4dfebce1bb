// The hall on the TypeScript SDK 1.x: sdk1.cjs [PORT].
const { randomUUID } = require("node:crypto");
const { createServer } = require("node:http");
const { McpServer, ResourceTemplate } = require("@modelcontextprotocol/sdk/server/mcp.js");
const { StdioServerTransport } = require("@modelcontextprotocol/sdk/server/stdio.js");
const { StreamableHTTPServerTransport } = require("@modelcontextprotocol/sdk/server/streamableHttp.js");
const { ListToolsRequestSchema } = require("@modelcontextprotocol/sdk/types.js");
const hall = require("./hall.cjs");

const key = hall.key();

function make() {
  const mcp = new McpServer(hall.info, { instructions: hall.instructions });
  mcp.registerTool("book", { description: "Book the hall.", inputSchema: hall.booking }, (args) => hall.text(JSON.stringify(args)));
  mcp.registerTool("size", { description: "The size of the hall.", outputSchema: hall.size, annotations: hall.readOnly }, () => ({
    content: [{ type: "text", text: hall.sizeText }],
    structuredContent: hall.sized,
  }));
  mcp.registerTool("ask", { description: "Ask who comes." }, async () => hall.text(hall.asked(await mcp.server.elicitInput(hall.form))));
  mcp.registerTool("plan", { description: "The plan of the hall." }, () => ({ content: [hall.plan, hall.photo].map((one) => ({ type: "resource_link", ...one })) }));
  mcp.registerTool("fail", { description: "Fail." }, () => {
    throw new Error(hall.closed);
  });
  mcp.registerResource(hall.plan.name, hall.plan.uri, { mimeType: hall.plan.mimeType }, () => ({ contents: [{ ...hall.plan, text: hall.planText }] }));
  mcp.registerResource(hall.photo.name, hall.photo.uri, { mimeType: hall.photo.mimeType }, () => ({ contents: [{ ...hall.photo, blob: hall.photoBlob }] }));
  mcp.registerResource("Room", new ResourceTemplate("hall://rooms/{name}", { list: undefined }), {}, (uri, { name }) => ({
    contents: [{ uri: uri.href, text: hall.room(name) }],
  }));
  mcp.registerResource(hall.guests.name, hall.guests.uri, {}, async () => ({
    contents: [{ ...hall.guests, text: hall.asked(await mcp.server.elicitInput(hall.form)) }],
  }));
  // The library has no pages; it lists all.
  const list = mcp.server._requestHandlers.get("tools/list");
  mcp.server.setRequestHandler(ListToolsRequestSchema, async (request, extra) => {
    const from = Number(request.params?.cursor ?? 0);
    const { tools } = await list({ ...request, params: undefined }, extra);
    return { tools: tools.slice(from, from + 2), nextCursor: from + 2 < tools.length ? String(from + 2) : undefined };
  });
  return mcp;
}

if (process.argv[2]) {
  const sessions = {};
  createServer(async (req, res) => {
    if (req.headers.authorization !== `Bearer ${key}`) return res.writeHead(401).end("Bring your key.");
    let transport = sessions[req.headers["mcp-session-id"]];
    if (!transport) {
      transport = new StreamableHTTPServerTransport({
        sessionIdGenerator: randomUUID,
        onsessioninitialized: (id) => (sessions[id] = transport),
      });
      await make().connect(transport);
    }
    await transport.handleRequest(req, res);
  }).listen(Number(process.argv[2]), "127.0.0.1", () => console.error("listening"));
} else {
  make().connect(new StdioServerTransport());
}
