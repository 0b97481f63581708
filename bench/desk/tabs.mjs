// node --experimental-websocket tabs.mjs URL TABS SECONDS: opens windows of Chromium at URL, and prints when all have
// drawn ("open"). SECONDS later it prints what their main threads did: tasks of more than 50 ms since then, the longest
// one, errors, and the bytes of the first paint.
import { spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";

const [url, tabs, seconds] = [process.argv[2], Number(process.argv[3]), Number(process.argv[4])];
const profile = mkdtempSync(tmpdir() + "/tabs");
const quiet = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"];
const chromium = spawn(process.env.CHROMIUM ?? "chromium", [...quiet, "--remote-debugging-port=0", "--user-data-dir=" + profile, "about:blank"], { stdio: ["ignore", "ignore", "pipe"] });
const sleep = (ms) => new Promise((done) => setTimeout(done, ms));

try {
  const debug = await new Promise((done, fail) => {
    let text = "";
    chromium.stderr.on("data", (d) => {
      const found = /listening on (ws:\S+)/.exec((text += d));
      if (found) done(found[1]);
    });
    chromium.on("exit", () => fail(new Error("chromium has ended: " + text)));
  });
  const socket = new WebSocket(debug);
  await new Promise((done) => (socket.onopen = done));
  let last = 0, errors = 0, bytes = 0, first;
  const waiting = new Map();
  socket.onmessage = ({ data }) => {
    const m = JSON.parse(data);
    if (m.id) waiting.get(m.id)(m.result);
    else if (m.method === "Runtime.exceptionThrown" || (m.method === "Log.entryAdded" && m.params.entry.level === "error")) errors++;
    else if (m.method === "Network.loadingFinished" && m.sessionId === first) bytes += m.params.encodedDataLength;
  };
  const send = (method, params = {}, sessionId) => new Promise((done) => {
    waiting.set(++last, done);
    socket.send(JSON.stringify({ id: last, method, params, sessionId }));
  });
  const sessions = [];
  for (let i = 0; i < tabs; i++) {
    const { targetId } = await send("Target.createTarget", { url: "about:blank", newWindow: true });
    const { sessionId } = await send("Target.attachToTarget", { targetId, flatten: true });
    first ??= sessionId;
    for (const domain of ["Runtime", "Log", "Network", "Page"]) await send(domain + ".enable", {}, sessionId);
    await send("Page.addScriptToEvaluateOnNewDocument", { source: "globalThis.long = []; new PerformanceObserver((l) => long.push(...l.getEntries().map((e) => [e.startTime, e.duration]))).observe({ type: 'longtask', buffered: true })" }, sessionId);
    await send("Page.navigate", { url }, sessionId);
    sessions.push(sessionId);
  }
  const evaluate = async (expression, session) => (await send("Runtime.evaluate", { expression, returnByValue: true }, session)).result.value;
  for (const s of sessions) while (!(await evaluate("!document.hidden && document.querySelector('main .card') !== null", s))) await sleep(100);
  await sleep(1000);
  const paint = bytes;
  const begun = [];
  for (const s of sessions) begun.push(await evaluate("performance.now()", s));
  console.log("open");
  await sleep(seconds * 1000);
  let long = [];
  for (const [i, s] of sessions.entries()) long = long.concat((await evaluate("long", s)).filter(([at]) => at >= begun[i]).map(([, took]) => took));
  console.log(`${tabs} windows, ${seconds} s: ${long.length} tasks of more than 50 ms${long.length > 0 ? `, the longest ${Math.round(Math.max(...long))} ms` : ""}; ${errors} errors; first paint ${(paint / 1024).toFixed(1)} KB`);
  socket.close();
} finally {
  chromium.kill();
  await sleep(500);
  rmSync(profile, { recursive: true, force: true, maxRetries: 5 });
}
