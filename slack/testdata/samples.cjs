// Makes samples of what Slack sends, from the types of its libraries for Node: for each variant of a type one with
// the fields that must be there, and one with all. The input is {types}, the folder of the installed
// types. Printed is {name of the type: [sample]}.
const path = require("node:path");
const { types } = JSON.parse(require("node:fs").readFileSync(0, "utf8"));
const ts = require(path.join(types, "node_modules", "typescript"));

const wanted = ["SlackEvent", "BlockAction", "InteractiveMessage", "DialogSubmitAction", "SlackShortcut", "SlackViewAction", "SlackOptions", "SlashCommand", "EnvelopedEvent"];
const bolt = path.join(path.dirname(require.resolve("@slack/bolt")), "types", "index.js");
const source = `import type { SlackEvent } from "@slack/types";
import type * as bolt from ${JSON.stringify(bolt)};
${wanted.map((name) => `export type ${name}Sample = ${name === "SlackEvent" ? name : "bolt." + name};`).join("\n")}`;
const file = path.join(types, "samples.ts");
const options = { strict: true, noEmit: true, target: ts.ScriptTarget.ES2022, module: ts.ModuleKind.NodeNext, types: [] };
const host = ts.createCompilerHost(options);
const { getSourceFile, fileExists } = host;
host.fileExists = (name) => name === file || fileExists(name);
host.getSourceFile = (name, ...rest) => (name === file ? ts.createSourceFile(name, source, options.target) : getSourceFile(name, ...rest));
const program = ts.createProgram([file], options, host);
const checker = program.getTypeChecker();

const moment = "1700000001.000100";
const known = {
  channel: "D1", channel_id: "D1", channel_type: "im", user: "U1", user_id: "U1", team: "T0ONECLAW", team_id: "T0ONECLAW", domain: "oneclaw",
  item_user: "U0BOT", reaction: "+1", trigger_id: "17.18", command: "/oneclaw", response_url: "https://hooks.slack.com/x",
};
const deepest = 7;
let counter = 0;

// sample makes a value of a type for a field. Of several types it takes the one with the number turn.
function sample(type, name, turn, all, depth) {
  const { TypeFlags: is } = ts;
  const has = (flags) => (type.flags & flags) !== 0;
  if (type.isStringLiteral() || type.isNumberLiteral()) return type.value;
  if (has(is.BooleanLiteral)) return type.intrinsicName === "true";
  if (has(is.Null)) return null;
  if (has(is.Undefined | is.Void | is.Never)) return undefined;
  if (has(is.Any | is.Unknown)) return {};
  if (has(is.StringLike)) return /(^|_)ts$|latest_reply/.test(name) ? moment : (known[name] ?? `${name} ${counter++}`);
  if (has(is.NumberLike)) return 1700000001;
  if (type.isUnion()) {
    const literal = type.types.find((t) => t.isStringLiteral() && t.value === known[name]);
    const choices = type.types.filter((t) => !(t.flags & (is.Undefined | (all ? is.Null : 0))));
    return literal ? literal.value : sample(choices[depth > deepest ? 0 : turn % choices.length], name, turn, all, depth);
  }
  if (checker.isArrayType(type) || checker.isTupleType(type)) {
    return depth > deepest ? [] : checker.getTypeArguments(type).map((t) => sample(t, name, turn, all, depth + 1)).filter((v) => v !== undefined);
  }
  const value = {};
  for (const field of checker.getPropertiesOfType(type)) {
    const optional = field.flags & ts.SymbolFlags.Optional;
    // A message with a bot is a program's, and a mention with a subtype may be anything.
    if (optional && (!all || depth > deepest || field.name === "bot_id" || field.name === "subtype")) continue;
    const of = checker.getTypeOfSymbol(field);
    if (of.getCallSignatures().length === 0) value[field.name] = sample(of, field.name === "id" && known[name] ? name : field.name, turn, all, depth + 1);
  }
  return value;
}

const made = {};
for (const statement of program.getSourceFile(file).statements.filter(ts.isTypeAliasDeclaration)) {
  const type = checker.getTypeAtLocation(statement.name);
  const seen = new Set();
  for (const variant of type.isUnion() ? type.types : [type]) {
    for (let turn = 0; turn < 25; turn++) {
      for (const all of [false, true]) counter = 0, seen.add(JSON.stringify(sample(variant, "", turn, all, 0)));
    }
  }
  made[statement.name.text.replace(/Sample$/, "")] = [...seen].map((one) => JSON.parse(one));
}
process.stdout.write(JSON.stringify(made));
