// Checks that a body which returns a promise, but is no async function, is refused, and that `async` settles what is meant;
// and that a generator is refused.

import { spawnSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { bench, main } from './scruple.mjs'

const body = () => new Promise(done => setTimeout(done, 20))
bench('unsaid', body)
bench('each its own', body, { input: () => 1 })
bench('awaited', body, { async: true })
bench('call alone', body, { async: false })
bench('generator', function* () { yield 1 })
bench('async generator', async function* () { yield 1 })

if (process.env.SCRUPLE_BENCH_IN) await main()

const folder = mkdtempSync(join(tmpdir(), 'promises-'))
const [requests, replies] = [join(folder, 'requests'), join(folder, 'replies')]
writeFileSync(requests, ['block 0:c:2', 'block 1:c:2', 'block 2:c:2', 'block 3:c:2', 'block 4:c:2', 'block 5:c:2', 'bye', ''].join('\n'))
const env = { ...process.env, SCRUPLE_BENCH_IN: requests, SCRUPLE_BENCH_OUT: replies }
spawnSync(process.execPath, [process.argv[1]], { env, stdio: 'inherit' })
const answers = readFileSync(replies, 'utf8').trim().split('\n').map(JSON.parse)
rmSync(folder, { recursive: true })
const refused = answers.slice(0, 2).every(answer => answer.kind === 'exception' && answer.error.includes('async: true'))
const [awaited, alone] = answers.slice(2, 4).map(answer => answer.block?.[0]['time.wall'])
const unrun = answers.slice(4, 6).every(answer => answer.kind === 'exception' && answer.error.includes('runs nothing of it'))
// Two timers of 20 ms, one after the other. Node rounds each to its own clock, by up to a millisecond.
if (!refused || !unrun || !(awaited > 37e6) || !(alone > 0)) {
  console.error(`a body that returns a promise: ${JSON.stringify(answers)}`)
  process.exit(1)
}
