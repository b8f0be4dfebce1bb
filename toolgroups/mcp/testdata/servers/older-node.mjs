// The conformance suite is written for a newer Node than Debian's: it imports one function from fs
// that this does not have, and uses it in none of the commands that the tests run.
import { register } from "node:module";
import { isMainThread } from "node:worker_threads";

if (isMainThread) register(import.meta.url);

export async function resolve(name, context, next) {
  if (name !== "fs" || !context.parentURL?.includes("/@modelcontextprotocol/conformance/")) return next(name, context);
  return { shortCircuit: true, url: "data:text/javascript,import fs from 'node:fs'; export * from 'node:fs'; export default fs; export const globSync = fs.globSync;" };
}
