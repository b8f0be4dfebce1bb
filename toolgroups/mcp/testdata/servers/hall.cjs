// What the servers of the tests offer, whatever they are made with: the same hall can be booked at each.
const { z } = require("zod");

exports.info = { name: "hall", version: "1.0.0", title: "The hall" };
exports.instructions = "Books the hall. Ask before you book.";

// A server without its key says so and ends; over HTTP it refuses who does not bring it.
exports.key = () => {
  if (!process.env.HALL_KEY) {
    console.error("HALL_KEY is not set: get one at the front desk");
    process.exit(1);
  }
  return process.env.HALL_KEY;
};

exports.booking = z.object({
  when: z.tuple([z.string(), z.number().int()]).describe("The day and the hour"),
  who: z.union([z.string(), z.object({ firm: z.string(), number: z.number().int() })]),
  pay: z.discriminatedUnion("by", [
    z.object({ by: z.literal("card"), holder: z.string() }),
    z.object({ by: z.literal("cash") }),
  ]),
  extras: z.array(z.enum(["chairs", "piano"])).optional(),
});
exports.doors = z.array(z.object({ side: z.string(), wide: z.boolean() }));
exports.size = z.object({ seats: z.number().int(), area: z.number(), doors: exports.doors });
exports.sized = { seats: 120, area: 87.5, doors: [{ side: "north", wide: true }, { side: "east", wide: false }] };
exports.sizeText = "A large hall.";
exports.form = {
  message: "Who comes?",
  requestedSchema: {
    type: "object",
    properties: {
      name: { type: "string", title: "Name", minLength: 2 },
      seats: { type: "integer", minimum: 1, maximum: 120, default: 2 },
      row: { type: "string", enum: ["front", "back"] },
      aisle: { type: "boolean" },
      note: { type: "string", default: "none" },
      mail: { type: "string", format: "email" },
      meal: { type: "string", oneOf: [{ const: "veg", title: "Vegetarian" }, { const: "fish", title: "Fish" }] },
      days: { type: "array", minItems: 1, items: { type: "string", enum: ["monday", "friday"] } },
    },
    required: ["name", "seats"],
  },
};
exports.asked = (answer) => `${answer.action} ${JSON.stringify(answer.content ?? null)}`;
exports.plan = { uri: "hall://plan", name: "Plan", mimeType: "text/plain" };
exports.planText = "north: stage\nsouth: bar";
exports.photo = { uri: "hall://photo", name: "Photo", mimeType: "image/png" };
exports.photoBlob = "iVBORw0KGgo=";
exports.guests = { uri: "hall://guests", name: "Guests", mimeType: "text/plain" };
exports.room = (name) => `the room ${name}`;
exports.text = (text) => ({ content: [{ type: "text", text }] });
exports.closed = "The hall is closed on Mondays.";
exports.readOnly = { readOnlyHint: true };
