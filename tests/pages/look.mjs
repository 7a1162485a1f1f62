// Checks pages as people use them: narrow and wide, light and dark, folded and open, printed, with the keyboard only.
// Usage: look.mjs AXE FILE… prints each error as a line of JSON. Ends with 77 if no browser is installed.
import { readFileSync } from 'node:fs';
import { pathToFileURL } from 'node:url';
import { Browser, program } from './browser.mjs';

const [axe, ...files] = process.argv.slice(2);
const rules = readFileSync(axe, 'utf8');
const WIDTHS = [360, 720, 1280, 2560];

// Faults of charts: labels without a gap between them, too small or cut off, or a chart without room.
const UNREADABLE = `(() => {
  const wrong = [];
  const shown = (node) => node.getClientRects().length && getComputedStyle(node).display !== 'none';
  for (const svg of document.querySelectorAll('svg.chart')) {
    const box = svg.getBoundingClientRect();
    if (box.width < 150 || box.height < 10) wrong.push('a chart of ' + box.width + ' × ' + box.height);
    const labels = [...svg.querySelectorAll('text.tick')].filter(shown);
    const boxes = labels.map((label) => [label.textContent, label.getBoundingClientRect()]);
    for (const label of svg.querySelectorAll('text')) {
      if (parseFloat(getComputedStyle(label).fontSize) < 11) wrong.push('small: ' + label.textContent);
      const { left, right } = label.getBoundingClientRect();
      if (shown(label) && (left < -1 || right > innerWidth + 1)) wrong.push('cut off: ' + label.textContent);
    }
    boxes.forEach(([text, one], place) => boxes.slice(place + 1).forEach(([other, two]) => {
      const across = Math.min(one.right, two.right) - Math.max(one.left, two.left);
      const down = Math.min(one.bottom, two.bottom) - Math.max(one.top, two.top);
      if (across > -3 && down > 4) wrong.push('too near each other: ' + text + ' and ' + other);
    }));
    if (!svg.closest('[aria-hidden]') && svg.getAttribute('aria-hidden') !== 'true' && !svg.getAttribute('aria-label')) {
      wrong.push('a chart without words');
    }
  }
  return wrong;
})()`;

const HARMFUL = `(() => {
  const nodes = [...document.querySelectorAll('*')];
  const handlers = nodes.flatMap((node) => [...node.attributes]).filter((one) => one.name.startsWith('on'));
  const scripts = document.querySelectorAll('script, iframe, object, embed, base, form').length;
  return [...handlers.map((one) => one.name), ...(scripts ? [scripts + ' active elements'] : [])];
})()`;

const AXE = `axe.run(document, { resultTypes: ['violations'] })
  .then((found) => found.violations.map((one) => one.id + ': ' + one.nodes.slice(0, 3).map((node) => node.html.slice(0, 120)).join(' | ')))`;

// Folds the page as it was when it was opened.
const FOLD = `(() => {
  const folds = [...document.querySelectorAll('details')];
  window.opened ??= folds.map((one) => one.open);
  folds.forEach((one, place) => { one.open = window.opened[place]; });
})()`;

const OPEN = "document.querySelectorAll('details').forEach((one) => { one.open = true; })";

// The page stays open from one view to the next: it has no scripts, so that a window of another width or in other colours
// shows it as if it were opened there. To open it takes several times as long.
async function look(tab, file, width, dark, found) {
  const say = (what) => found.push({ file, width, dark, what });
  await tab.view(width, dark);
  for (const state of ['folded', 'open']) {
    await tab.value(state === 'open' ? OPEN : FOLD);
    const over = await tab.value('document.documentElement.scrollWidth - innerWidth');
    if (over > 0) say(`${state}: ${over} px wider than the window`);
    (await tab.value(UNREADABLE)).forEach((what) => say(`${state}: ${what}`));
  }
  (await tab.value(HARMFUL)).forEach(say);
  // It takes most of the time, and no property that it checks depends on both the width and the colours.
  if (dark ? width === 360 : width === 1280) {
    (await tab.value(AXE)).forEach((what) => say(`axe: ${what}`));
  }
}

async function lookInAllViews(tab, file, found) {
  const url = pathToFileURL(file).href;
  await tab.open(url);
  await tab.value(rules);
  for (const width of WIDTHS) {
    for (const dark of [false, true]) await look(tab, file, width, dark, found);
  }
  const say = (what) => found.push({ file, what });
  tab.problems.forEach(say);
  tab.requests.filter((one) => one !== url && !one.startsWith('data:')).forEach((one) => say(`request: ${one}`));
}

// Every fold opens with the keyboard, and nothing stays folded in print.
async function use(tab, file, found) {
  const say = (what) => found.push({ file, what });
  await tab.view(1280, false);
  await tab.open(pathToFileURL(file).href);
  const folds = await tab.value("document.querySelectorAll('details').length");
  if (folds > 0) {
    await tab.value("document.querySelector('summary').focus()");
    for (const type of ['keyDown', 'keyUp']) {
      const key = { key: 'Enter', code: 'Enter', windowsVirtualKeyCode: 13, text: '\r' };
      await tab.send('Input.dispatchKeyEvent', { type, ...key });
    }
    if (!(await tab.value("document.querySelector('details').open"))) say('Enter does not open a fold');
    await tab.value("document.querySelectorAll('details').forEach((one) => { one.open = false; })");
    await tab.send('Emulation.setEmulatedMedia', { media: 'print' });
    const hidden = await tab.value(`[...document.querySelectorAll('details > *:not(summary)')]
      .filter((one) => one.getBoundingClientRect().height === 0).length`);
    if (hidden > 0) say(`${hidden} parts are not printed`);
  }
  const { data } = await tab.send('Page.printToPDF', {});
  if (!Buffer.from(data, 'base64').subarray(0, 5).equals(Buffer.from('%PDF-'))) say('it cannot be printed');
}

if (!program) process.exit(77);
const browser = new Browser();
const found = [];
try {
  for (const file of files) {
    // One tab, because each tab has a process of its own, whose start takes longer than to show the page.
    const tab = await browser.tab(WIDTHS[0], false);
    await lookInAllViews(tab, file, found);
    await use(tab, file, found);
    await tab.close();
  }
} finally {
  await browser.close();
}
found.forEach((one) => console.log(JSON.stringify(one)));
