// The FNV-1a suite: steps that cost about as much as the tare, and loops of a microsecond and a millisecond.
import { bench, group, main } from './scruple.mjs'

const step = (h, octet) => Math.imul(h ^ octet, 16777619)
const identity = x => x
const one = x => step(-2128831035, x & 255)
const four = x => step(step(step(step(-2128831035, x & 255), (x >> 8) & 255), (x >> 16) & 255), x >>> 24)
const eight = x => step(step(step(step(four(x), x & 255), (x >> 8) & 255), (x >> 16) & 255), x >>> 24)

function many(octets) {
  return x => {
    let h = -2128831035
    for (let i = 0; i < octets; i++) h = step(h, (x >> (8 * (i & 3))) & 255)
    return h
  }
}

group('fnv', () => {
  const arg = 0xdeadbeef | 0
  bench('identity', identity, { arg })
  bench('1 step', one, { arg, bytes: 1 })
  bench('4 steps', four, { arg, bytes: 4, check: h => h === many(4)(arg) || `the hash is ${h}` })
  bench('8 steps', eight, { arg, bytes: 8, threads: [1, 2] })
  bench('us', many(1000), { arg, bytes: 1000 })
  bench('ms', many(1000000), { arg, bytes: 1000000, tags: ['slow'] })
})
bench('sort/nine numbers', list => list.sort(), { input: () => [5, 2, 9, 1, 7, 3, 8, 4, 6], items: 9 })
bench('pair', x => ({ x }), { arg: 1, budgets: { 'alloc.bytes': { max: 100 } } })
bench('await', async x => x + 1, { arg: 1 })

main()
