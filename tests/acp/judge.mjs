// A client of the npm SDK calls every stable method of version 1, and prints what came of each as one JSON object.
import { spawn } from "node:child_process";
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";
import { Readable, Writable } from "node:stream";

const [folder, work, program, ...words] = process.argv.slice(2);
const require = createRequire(folder + "/");
const sdk = await import(pathToFileURL(require.resolve("@agentclientprotocol/sdk")));
const child = spawn(program, words, { cwd: work, stdio: ["pipe", "pipe", "inherit"] });
const stream = sdk.ndJsonStream(Writable.toWeb(child.stdin), Readable.toWeb(child.stdout));
const kinds = new Set();
const done = {};
const { agent, client } = sdk.methods;
const app = sdk
  .client({ name: "judge" })
  .onNotification(client.session.update, (ctx) => void kinds.add(ctx.params.update.sessionUpdate))
  .onRequest(client.session.requestPermission, (ctx) => ({
    outcome: { outcome: "selected", optionId: ctx.params.options[0].optionId },
  }));
await app.connectWith(stream, async (ctx) => {
  const ask = async (method, params) => (done[method] = await ctx.request(method, params));
  const prompt = (sessionId, text) => ask(agent.session.prompt, { sessionId, prompt: [{ type: "text", text }] });
  const said = await ask(agent.initialize, { protocolVersion: 1, clientCapabilities: { auth: { terminal: true } } });
  await ask(agent.authenticate, { methodId: said.authMethods[0].id });
  const { sessionId } = await ask(agent.session.new, { cwd: work, mcpServers: [] });
  await prompt(sessionId, "Go");
  await ask(agent.session.setMode, { sessionId, modeId: "plan" });
  await ask(agent.session.setConfigOption, { sessionId, configId: "effort", value: "low" });
  await ctx.notify(agent.session.cancel, { sessionId });
  await ask(agent.session.list, { cwd: work });
  await ask(agent.session.close, { sessionId });
  await ask(agent.session.load, { sessionId, cwd: work, mcpServers: [] });
  await ask(agent.session.close, { sessionId });
  await ask(agent.session.resume, { sessionId, cwd: work, mcpServers: [] });
  await ask(agent.session.delete, { sessionId });
  await ask(agent.logout, {});
});
child.stdin.end();
console.log(JSON.stringify({ done, kinds: [...kinds].sort() }));
process.exit(0);
