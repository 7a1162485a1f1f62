// Checks that the data of typed arrays and Buffers, which lie outside of V8's heap, are counted.

import { spawnSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { bench, main } from './scruple.mjs'

bench('typed array', n => new Float64Array(n), { arg: 10000 })
bench('buffer', n => Buffer.alloc(n), { arg: 65536 })
bench('object', x => ({ x }), { arg: 1 })

if (process.env.SCRUPLE_BENCH_IN) await main()

const folder = mkdtempSync(join(tmpdir(), 'external-'))
const [requests, replies] = [join(folder, 'requests'), join(folder, 'replies')]
const blocks = [0, 1, 2].map(id => `block ${id}:c:1 ${id}:c:1 ${id}:t:1`)
writeFileSync(requests, [...blocks, 'bye', ''].join('\n'))
const env = { ...process.env, SCRUPLE_BENCH_IN: requests, SCRUPLE_BENCH_OUT: replies }
spawnSync(process.execPath, [process.argv[1]], { env, stdio: 'inherit' })
const answers = readFileSync(replies, 'utf8').trim().split('\n').map(JSON.parse)
rmSync(folder, { recursive: true })
const seen = answers.flatMap(answer => answer.block ?? []).map(batch => batch['js.external'])
const array = 8 * 10000, buffer = 65536
const wanted = [array, array, 0, buffer, buffer, 0, 0, 0, 0]
// V8 adds a few bytes for its own record of an array.
if (seen.length !== wanted.length || !wanted.every((bytes, i) => seen[i] >= bytes && seen[i] < bytes + 64)) {
  console.error(`bytes outside of the heap: ${JSON.stringify(seen)} instead of ${JSON.stringify(wanted)}`)
  process.exit(1)
}
