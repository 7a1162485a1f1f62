// The example cases that every SDK declares for sdk/conformance.
import { writeSync } from 'node:fs'
import { bench, group, main, skip } from './scruple.mjs'

const identity = x => x
const sleep = new Int32Array(new SharedArrayBuffer(4))
let setups = 0

function linear(h) {
  for (let i = 0; i < 1000; i++) h = Math.imul(h ^ i, 16777619)
  return h
}

function deliberate() {
  throw new Error('a deliberate exception')
}

function use(input) {
  if (input.used) throw new Error('the input was used already')
  input.used = true
}

function declare() {
  bench('identity', identity, { arg: 7 })
  bench('linear', linear, { arg: 7 })
  // An array of doubles is one allocation, besides the few words that point to it.
  bench('alloc/known', n => new Array(n).fill(0.5), { arg: 512, params: { bytes: 4096 } })
  bench('throws', deliberate, { arg: 7 })
  bench('skips', () => skip('no such device'))
  bench('hangs/idle', () => Atomics.wait(sleep, 0, 0))
  bench('hangs/busy', x => { while (x > 0); }, { arg: 7 })
  bench('threads/two', linear, { arg: 7, threads: [1, 2] })
  bench('input/per-iteration', use, { input: () => ({ used: false }), maxIterations: 100 })
  bench('setup/counted', identity, { setup: () => ++setups, check: () => true, digest: n => `${n}` })
  bench('setup/throws', identity, { setup: deliberate })
  bench('check/passes', identity, { arg: 7, check: () => true, digest: () => 'cafe' })
  bench('check/fails', identity, { arg: 7, check: () => 'deliberate' })
  bench('prints', () => writeSync(1, 'printed by a case\n'))
  for (const n of [0, 1, 2, 3, 10, 100]) {
    bench('growth', count => { let h = 7; for (let i = 0; i < count; i++) h = Math.imul(h ^ i, 16777619); return h }, { arg: n, params: { n } })
  }
  bench('budgets', identity, { arg: 7, budgets: { 'time.wall': { max: 1000000 }, 'alloc.bytes': { max: '+5%', against: 'baseline' } } })
  bench('fields', identity, { arg: 7, group: 'another group', tags: ['slow', 'two words'], bytes: 4096, fresh: true, timeLimit: 5000 })
  group('names', () => {
    for (const name of ['"quoted" and \\backslash', 'tab\ttab', 'grün λ 東京 🐎', 'a//b/c']) bench(name, identity, { arg: 7 })
  })
}

if (process.argv[2] === 'many') {
  for (let i = 0; i < 10000; i++) bench(`many/${String(i).padStart(5, '0')}`, identity, { arg: i, params: { index: i } })
} else {
  declare()
}
main()
