import { spawn } from "node:child_process";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";

/** Runs a service of the program VITRINE_BINARY. */
export async function serve(): Promise<{ url: string; stop: () => Promise<void> }> {
  const data = await mkdtemp(join(tmpdir(), "vitrine-"));
  const service = spawn(process.env["VITRINE_BINARY"] ?? "vitrine", ["serve", "--listen", "127.0.0.1:0", "--data", data], { stdio: ["ignore", "ignore", "pipe"] });
  const ended = new Promise((done) => service.once("exit", done));
  const lines = createInterface(service.stderr);
  const address = await new Promise<string>((found, failed) => {
    lines.on("line", (line) => {
      const entry = JSON.parse(line) as { msg: string; address: string };
      if (entry.msg === "listening") found(entry.address);
    });
    lines.on("close", () => failed(new Error("the service has not started")));
  });
  return {
    url: `http://${address}`,
    stop: async () => {
      service.kill();
      await ended;
      await rm(data, { recursive: true });
    },
  };
}
