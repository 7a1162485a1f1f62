// A headless Chromium, controlled through a pipe by the DevTools protocol.
import { spawn } from 'node:child_process';
import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

// The first starts in half of the time of the others.
const PROGRAMS = ['chromium-headless-shell', 'chromium', 'chromium-browser', 'google-chrome'].map((name) => `/usr/bin/${name}`);

/** The browser that is installed, if one is. */
export const program = PROGRAMS.find(existsSync);

// Long enough for a busy machine, but a browser that hangs must not block the tests for ever.
const PATIENCE = 240_000;

export class Browser {
  constructor() {
    this.folder = mkdtempSync(join(tmpdir(), 'scruple-browser-'));
    const flags = [
      '--headless=new', '--no-sandbox', '--disable-gpu', '--disable-dev-shm-usage', '--hide-scrollbars', '--mute-audio',
      '--force-color-profile=srgb', '--disable-background-networking', '--disable-component-update', '--no-first-run',
      '--remote-debugging-pipe', `--user-data-dir=${this.folder}`, 'about:blank',
    ];
    this.process = spawn(program, flags, { stdio: ['ignore', 'ignore', 'ignore', 'pipe', 'pipe'] });
    this.waiting = new Map();
    this.listeners = [];
    this.last = 0;
    let rest = '';
    this.process.stdio[4].setEncoding('utf8');
    this.process.stdio[4].on('data', (data) => {
      const messages = (rest + data).split('\0');
      rest = messages.pop();
      messages.forEach((message) => this.take(JSON.parse(message)));
    });
    this.process.on('exit', (code) => this.fail(new Error(`the browser ended with ${code}`)));
    this.process.on('error', (error) => this.fail(error));
  }

  fail(error) {
    this.ended = error;
    for (const { reject } of this.waiting.values()) reject(error);
    this.waiting.clear();
  }

  take(message) {
    const waiting = this.waiting.get(message.id);
    if (waiting) {
      this.waiting.delete(message.id);
      if (message.error) waiting.reject(new Error(`${waiting.method}: ${message.error.message}`));
      else waiting.resolve(message.result);
    } else if (message.method) {
      this.listeners.forEach((listener) => listener(message));
    }
  }

  send(method, params = {}, sessionId = undefined) {
    if (this.ended) return Promise.reject(this.ended);
    const id = ++this.last;
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => {
        this.waiting.delete(id);
        reject(new Error(`${method}: no answer within ${PATIENCE / 1000} s`));
      }, PATIENCE);
      const done = (settle) => (value) => { clearTimeout(timer); settle(value); };
      this.waiting.set(id, { method, resolve: done(resolve), reject: done(reject) });
      this.process.stdio[3].write(JSON.stringify({ id, method, params, sessionId }) + '\0');
    });
  }

  /** A new tab of that width. */
  async tab(width, dark) {
    const { targetId } = await this.send('Target.createTarget', { url: 'about:blank' });
    const { sessionId } = await this.send('Target.attachToTarget', { targetId, flatten: true });
    const tab = new Tab(this, sessionId, targetId);
    for (const domain of ['Page', 'Runtime', 'Network', 'Log']) await tab.send(`${domain}.enable`);
    await tab.view(width, dark);
    // The tests examine a page by script, which the page's own policy forbids.
    await tab.send('Page.setBypassCSP', { enabled: true });
    return tab;
  }

  async close() {
    const gone = new Promise((resolve) => this.process.once('exit', resolve));
    await this.send('Browser.close').catch(() => {});
    this.process.stdio[3].end();
    const timer = setTimeout(() => this.process.kill('SIGKILL'), 20_000);
    if (this.process.exitCode === null) await gone;
    clearTimeout(timer);
    rmSync(this.folder, { recursive: true, force: true, maxRetries: 5 });
  }
}

class Tab {
  constructor(browser, session, target) {
    Object.assign(this, { browser, session, target, problems: [], requests: [], loaded: null });
    browser.listeners.push((message) => message.sessionId === session && this.hear(message.method, message.params));
  }

  hear(method, params) {
    if (method === 'Runtime.consoleAPICalled' && ['error', 'warning', 'assert'].includes(params.type)) {
      this.problems.push(`console: ${params.args.map((arg) => arg.value ?? arg.description).join(' ')}`);
    }
    if (method === 'Runtime.exceptionThrown') this.problems.push(`exception: ${params.exceptionDetails.text}`);
    if (method === 'Log.entryAdded') this.problems.push(`log: ${params.entry.text}`);
    if (method === 'Network.requestWillBeSent') this.requests.push(params.request.url);
    if (method === 'Page.javascriptDialogOpening') this.problems.push(`dialogue: ${params.message}`);
    if (method === 'Page.loadEventFired') this.loaded?.();
  }

  send(method, params) {
    return this.browser.send(method, params, this.session);
  }

  /** Sets the width and the colours in which pages are shown. */
  async view(width, dark) {
    const features = [{ name: 'prefers-color-scheme', value: dark ? 'dark' : 'light' }];
    await this.send('Emulation.setDeviceMetricsOverride', { width, height: 900, deviceScaleFactor: 1, mobile: false });
    await this.send('Emulation.setEmulatedMedia', { features });
    const shown = `innerWidth === ${width} && matchMedia('(prefers-color-scheme: dark)').matches === ${dark}`;
    const frames = `(async () => { while (!(${shown})) await new Promise((next) => setTimeout(next, 1)); })()`;
    await this.value(frames);
  }

  /** Opens a page, also one that is already shown. What the page before said is forgotten. */
  async open(url) {
    this.problems = [];
    this.requests = [];
    const loaded = new Promise((resolve) => { this.loaded = resolve; });
    await this.send('Page.navigate', { url });
    await loaded;
  }

  /** The value of an expression in the page; of a promise, its result. */
  async value(expression) {
    const { result, exceptionDetails } = await this.send('Runtime.evaluate', {
      expression, awaitPromise: true, returnByValue: true,
    });
    if (exceptionDetails) throw new Error(exceptionDetails.exception?.description ?? exceptionDetails.text);
    return result.value;
  }

  /** A picture of the whole page, as PNG. */
  async picture() {
    const { data } = await this.send('Page.captureScreenshot', { format: 'png', captureBeyondViewport: true });
    return Buffer.from(data, 'base64');
  }

  async close() {
    await this.browser.send('Target.closeTarget', { targetId: this.target });
  }
}
