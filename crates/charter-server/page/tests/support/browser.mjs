// A browser and a server of files for the tests: every page is served under the policy of the real one.
import { createRequire } from "node:module";
import { createServer } from "node:http";
import { existsSync } from "node:fs";
import { mkdir, readFile } from "node:fs/promises";
import path from "node:path";
import { fileURLToPath } from "node:url";

const modules = process.env.PAGE_MODULES;
if (!modules) throw new Error("run the tests with `python3 .ci/page.py`");
const require = createRequire(path.join(modules, "package.json"));
const { chromium } = require("playwright-core");
const { AxeBuilder } = require("@axe-core/playwright");

/** The folder of the page. */
export const PAGE = path.join(path.dirname(fileURLToPath(import.meta.url)), "../..");

const TYPES = { ".html": "text/html; charset=utf-8", ".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml" };
const POLICY =
  "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; " +
  "frame-ancestors 'none'; base-uri 'none'; form-action 'self'";

/** Starts Debian's chromium, or the one that `CHROMIUM` names. With `PAGE_FILES`, it takes the files of the page from its folder. */
export async function launch() {
  const executablePath = process.env.CHROMIUM ?? "/usr/bin/chromium";
  if (!existsSync(executablePath)) throw new Error(`no browser at ${executablePath}: install chromium, or set CHROMIUM`);
  const browser = await chromium.launch({ executablePath });
  if (!process.env.PAGE_FILES) return browser;
  const newContext = browser.newContext.bind(browser);
  browser.newContext = async (options) => {
    const context = await newContext(options);
    await context.route(/\/page\/.*\.(js|css|svg)$/, (route) => route.fulfill({ path: path.join(PAGE, new URL(route.request().url()).pathname.slice("/page/".length)) }));
    return context;
  };
  return browser;
}

/**
 * Serves the files of the page on a free port of loopback. `answer(request, response)` comes first, and returns
 * true if it has answered.
 */
export async function serve(answer = (_request, _response) => false) {
  const server = createServer(async (request, response) => {
    if (await answer(request, response)) return;
    const { pathname } = new URL(request.url, "http://loopback");
    const file = path.join(PAGE, path.normalize(decodeURIComponent(pathname)));
    response.setHeader("Content-Security-Policy", POLICY);
    try {
      if (!file.startsWith(PAGE + path.sep)) throw new Error("outside");
      const body = await readFile(file);
      response.setHeader("Content-Type", TYPES[path.extname(file)] ?? "application/octet-stream");
      response.end(body);
    } catch {
      response.statusCode = 404;
      response.end();
    }
  });
  await new Promise((listening) => server.listen(0, "127.0.0.1", listening));
  const url = `http://127.0.0.1:${server.address().port}`;
  const close = () => {
    server.closeAllConnections();
    return new Promise((closed) => server.close(closed));
  };
  return { url, close };
}

/**
 * Opens a page whose errors are collected in `page.problems`: exceptions, errors of the console, violations of the
 * policy. A test ends with `assert.deepEqual(page.problems, [])`.
 */
export async function open(browser, url, options = {}) {
  const context = await browser.newContext({ viewport: { width: 900, height: 700 }, ...options });
  const page = await context.newPage();
  page.problems = [];
  page.on("pageerror", (error) => page.problems.push(String(error)));
  page.on("console", (message) => {
    if (message.type() === "error") page.problems.push(`${message.text()} (${message.location().url})`);
  });
  await page.goto(url);
  return page;
}

/** What axe finds on a page, one line for each element. */
export async function axe(page) {
  const { violations } = await new AxeBuilder({ page }).analyze();
  return violations.flatMap((v) => v.nodes.map((node) => `${v.id}: ${node.target.join(" ")}: ${node.failureSummary}`));
}

/** Writes a picture into the folder `PAGE_PICTURES`, if it is set. */
export async function picture(page, name, options = {}) {
  const folder = process.env.PAGE_PICTURES;
  if (!folder) return;
  await mkdir(folder, { recursive: true });
  await page.screenshot({ path: path.join(folder, `${name}.png`), ...options });
}
