// Checks that a case runs the same code whichever cases ran before it: after cases with objects, an array of numbers may
// hold boxed numbers, which allocate.

import { spawnSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { bench, main } from './scruple.mjs'

const FLOAT = 5, ITERATIONS = 50000

bench('whole to fraction', x => x * 1.5, { arg: 3 })
bench('fraction', x => x * 1.1, { arg: 2.5, timing: 'throughput' })
bench('object', ({ a, b }) => a * b, { arg: { a: 1.5, b: 2.5 } })
bench('array', v => v[0] * v[1], { arg: [1.5, 2.5] })
bench('no argument', () => Math.PI * 1.5)
bench('latency of a fraction', x => x * 1.5, { arg: 1.5 })

if (process.env.SCRUPLE_BENCH_IN) await main()

const folder = mkdtempSync(join(tmpdir(), 'elements-'))
const orders = [[0, 1, 2, 4, 5, 3], [5, 1, 2, 0, 4, 3], [5, 3, 4, 0, 1, 2], [4, 2, 5, 1, 0, 3]]
const allocating = orders.filter(order => {
  const rounds = Array(20).fill(order.map(id => `block ${id}:c:${ITERATIONS} ${id}:t:${ITERATIONS}`)).flat()
  const [requests, replies] = [join(folder, 'requests'), join(folder, 'replies')]
  writeFileSync(requests, ['hello 1', 'cases', ...rounds, 'bye', ''].join('\n'))
  const env = { ...process.env, SCRUPLE_BENCH_IN: requests, SCRUPLE_BENCH_OUT: replies }
  spawnSync(process.execPath, [process.argv[1]], { env, stdio: 'inherit' })
  const blocks = readFileSync(replies, 'utf8').trim().split('\n').map(JSON.parse).flatMap(reply => reply.block ?? [])
  const ofFloat = blocks.filter(entry => entry.id === FLOAT && entry.kind === 'c').map(entry => entry['alloc.bytes'])
  // Until the code is optimised it allocates in any case.
  return !(Math.min(...ofFloat.slice(-5)) < ITERATIONS)
})
rmSync(folder, { recursive: true })
if (allocating.length > 0) {
  console.error(`a case of numbers allocates if the cases run in these orders: ${JSON.stringify(allocating)}`)
  process.exit(1)
}
