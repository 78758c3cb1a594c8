// Written by `charter hook install opencode`; `charter hook uninstall opencode` removes it.
// Asks a charter before each tool, and throws unless it is legal: anything but a clean yes denies.
import { spawn } from "node:child_process";

const COMMAND = null;
const TIMEOUT_MS = 30000;

/** Runs the hook; returns what it says. */
function ask(request, cwd) {
  return new Promise((resolve, reject) => {
    const child = spawn("/bin/sh", ["-c", COMMAND], { cwd, stdio: ["pipe", "pipe", "pipe"] });
    let out = "";
    let err = "";
    const timer = setTimeout(() => {
      child.kill("SIGKILL");
      reject(new Error("charter hook: no answer, so not allowed"));
    }, TIMEOUT_MS);
    child.stdout.on("data", (data) => (out += data));
    child.stderr.on("data", (data) => (err += data));
    child.stdin.on("error", () => {});
    child.on("error", (error) => {
      clearTimeout(timer);
      reject(new Error(`charter hook: ${error.message}, so not allowed`));
    });
    child.on("close", (code) => {
      clearTimeout(timer);
      if (code !== 0) return reject(new Error(err.trim() || `charter hook: exit code ${code}, so not allowed`));
      resolve(out);
    });
    child.stdin.end(JSON.stringify(request));
  });
}

/** The arguments of the calls that are under way. */
const open = new Map();

export const Charter = async ({ directory }) => ({
  "tool.execute.before": async (input, output) => {
    const { tool, sessionID, callID } = input;
    if (open.size > 1000) open.clear();
    open.set(callID, output.args);
    const request = { event: "tool.execute.before", tool, sessionID, callID, args: output.args, cwd: directory };
    const said = await ask(request, directory);
    let decision;
    try {
      decision = JSON.parse(said);
    } catch {
      throw new Error("charter hook: the answer is not a decision, so not allowed");
    }
    if (said.trim() !== "{}") throw new Error(decision?.reason ?? "charter hook: not allowed");
  },
  "tool.execute.after": async (input, output) => {
    const { tool, sessionID, callID } = input;
    const { title, output: text, metadata } = output;
    const result = { title, output: String(text ?? "").slice(0, 2000), metadata: { exit: metadata?.exit } };
    const args = open.get(callID) ?? input.args ?? {};
    open.delete(callID);
    const request = { event: "tool.execute.after", tool, sessionID, callID, args, cwd: directory, output: result };
    // What came of it is recorded if that is possible; it decides nothing.
    await ask(request, directory).catch(() => {});
  },
});
