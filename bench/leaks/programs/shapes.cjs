// Keeps arrays of ten numbers in a shape that is known: SHAPE N.
const [shape, count] = process.argv.slice(2);
const kept = [];
const cache = new Map();
let latest;
if (shape === 'base') for (let i = 0; i < 500000; i++) kept.push([i, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
for (let i = 1; i <= Number(count); i++) {
  const block = [i, 1, 2, 3, 4, 5, 6, 7, 8, 9];
  latest = block;
  if (shape === 'leak' || shape === 'base' || (shape === 'fifty' && i % 50 === 0)) kept.push(block);
  else if (shape === 'root' && Number.isInteger(Math.sqrt(i))) kept.push(block);
  else if (shape === 'cache') cache.set(i % 20000, block);
  else if (shape === 'log' && (i & (i - 1)) === 0) kept.push(new Array(8192).fill(i));
}
globalThis.kept = [kept, cache, latest];

// A cache; a registry removes the entries whose objects are dead.
async function weak() {
  const registry = new FinalizationRegistry((i) => cache.delete(i));
  globalThis.registry = registry;
  for (let i = 1; i <= Number(count); i++) {
    const block = [i, 1, 2, 3, 4, 5, 6, 7, 8, 9];
    cache.set(i, new WeakRef(block));
    registry.register(block, i);
    if (i % 100 === 0) await new Promise(setImmediate);
  }
}
if (shape === 'weak') weak();
