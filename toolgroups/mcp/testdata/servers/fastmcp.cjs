// The hall on fastmcp: fastmcp.cjs [PORT].
const { FastMCP, UserError } = require("fastmcp");
const hall = require("./hall.cjs");

const key = hall.key();
const server = new FastMCP({
  ...hall.info,
  instructions: hall.instructions,
  authenticate: async (request) => {
    if (process.argv[2] && request.headers.authorization !== `Bearer ${key}`) throw new Response("Bring your key.", { status: 401 });
    return {};
  },
});
server.addTool({ name: "book", description: "Book the hall.", parameters: hall.booking, execute: async (args) => JSON.stringify(args) });
server.addTool({ name: "size", description: "The size of the hall.", annotations: hall.readOnly, outputSchema: hall.size, execute: async () => ({ ...hall.text(hall.sizeText), structuredContent: hall.sized }) });
server.addTool({ name: "ask", description: "Ask who comes.", execute: async (_, context) => hall.asked(await context.elicit(hall.form)) });
server.addTool({ name: "plan", description: "The plan of the hall.", execute: async () => ({ content: [hall.plan, hall.photo].map((one) => ({ type: "resource_link", ...one })) }) });
server.addTool({
  name: "fail",
  description: "Fail.",
  execute: async () => {
    throw new UserError(hall.closed);
  },
});
server.addResource({ ...hall.plan, load: async () => ({ text: hall.planText }) });
server.addResource({ ...hall.photo, load: async () => ({ blob: hall.photoBlob }) });
server.addResourceTemplate({
  uriTemplate: "hall://rooms/{name}",
  name: "Room",
  arguments: [{ name: "name", required: true }],
  load: async ({ name }) => ({ text: hall.room(name) }),
});

const port = Number(process.argv[2]);
server
  .start(port ? { transportType: "httpStream", httpStream: { port, host: "127.0.0.1" } } : { transportType: "stdio" })
  .then(() => console.error("listening"));
