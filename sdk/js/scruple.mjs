// Declares cases for Scruple to weigh. Scruple starts the program, asks it for batches over two pipes and does all
// sampling and statistics. This file names the cases, loops, and reads clocks and counters.
//
//   import { bench, group, main } from './scruple.mjs'
//   bench('parse/small', JSON.parse, { arg: '{"a":1}' })
//   main()

import { spawnSync } from 'node:child_process'
import { openSync, readFileSync, readSync, writeSync } from 'node:fs'
import { createRequire } from 'node:module'
import { constants } from 'node:os'
import { basename } from 'node:path'
import { fileURLToPath } from 'node:url'
import v8 from 'node:v8'
import { isMainThread, workerData, Worker } from 'node:worker_threads'

const cases = []
let prefix = ''

/**
 * Declares the function `body` as a case. It is called with `arg`, or with what `setup` or `input` returned. A body
 * that is an async function (or has `async: true`) is awaited. Another one that returns a promise is an error, unless it
 * has `async: false`: then nothing waits for the promise.
 *
 * Options: `arg`; `setup` makes the argument outside the timed part, at first use and after each reset, and
 * `teardown` gets it back; `input` makes a new argument for every iteration; `check(result)` returns undefined or
 * true, or a text that says what is wrong, or throws; `digest(result)` returns a short text for comparing two versions'
 * results; `params`, `bytes` or `items` (per iteration), `threads`, `budgets`, `tags`, `fresh`, `maxIterations`,
 * `timeLimit` (in milliseconds), `group`, `shape`: see the protocol; `timing`: 'throughput' if iterations must not wait
 * for each other; by default they do if argument and result are both whole numbers of 32 bits, or both fractions.
 */
export function bench(name, body, options = {}) {
  const o = options
  const kind = o.async ?? body.constructor.name === 'AsyncFunction' ? 'async' : 'sync'
  const most = o.maxIterations ?? (o.input ? 1000 : undefined)
  const shape = o.shape ?? (o.setup || o.input ? undefined : `${kind} ${typeof o.arg}`)
  const spec = {
    id: cases.length, name: prefix + name, group: o.group ?? (prefix ? prefix.slice(0, -1) : undefined), shape,
    params: o.params,
    throughput: o.bytes ? { unit: 'bytes', amount: o.bytes } : o.items ? { unit: 'items', amount: o.items } : undefined,
    threads: o.threads, budgets: o.budgets, tags: o.tags, fresh: o.fresh, max_iterations: most,
    per_iteration_input: o.input ? true : undefined, checked: o.check ? true : undefined,
    timing: o.timing ?? (o.input || kind === 'async' ? 'throughput' : undefined),
    time_limit: o.timeLimit && Math.round(o.timeLimit * 1e6), source: caller(),
  }
  cases.push({ spec, options: o, body, kind, most, ready: false, arg: o.arg, loops: {} })
}

/** Puts `name/` before the names of the cases that `declare` declares, and them into this group, also if a slash is in
 * their own names. */
export function group(name, declare) {
  const outer = prefix
  prefix += name + '/'
  try {
    declare()
  } finally {
    prefix = outer
  }
}

/** Answers the host until it sends bye, and does not return. Without a host it runs scruple on this program. */
export async function main() {
  if (!isMainThread && workerData?.scruple) return work(workerData.scruple)
  refuseDuplicates()
  const { requests, reply } = connect()
  for (const line of requests) {
    if (line === 'cases') for (const c of cases) reply({ case: c.spec })
    if (line === 'bye') await releaseAll()
    reply(await answer(line))
    if (line === 'bye') process.exit(0)
  }
  await releaseAll()
  process.exit(0)
}

class Skip extends Error {}

/** Ends the case that runs, because it cannot run here: Scruple shows it as skipped, with this reason. */
export function skip(why) {
  throw new Skip(why)
}

class Refusal extends Error {
  constructor(kind, message, id) {
    super(message)
    this.reply = { error: message, kind, id }
  }
}

// The current case, for the reply to an exception in it.
let current

async function answer(line) {
  const [verb, ...words] = line.split(' ')
  try {
    if (line === 'cases') return { end: 'cases', count: cases.length }
    if (line === 'bye') return { bye: true }
    if (verb === 'block' && words.length > 0) return await block(words)
    if (line === 'loaded') return await loaded()
    if (verb === 'hello' && words.length === 1 && number(words[0]) >= 0) return hello()
    if (verb === 'once' && words.length === 1) return await once((current = find(words[0])))
    if (verb === 'reset' && words.length === 1) {
      current = find(words[0])
      await release(current)
      await prepare(current)
      return { reset: current.spec.id }
    }
    throw new Refusal('request', `unknown request: ${line}`)
  } catch (e) {
    return e instanceof Refusal ? e.reply : { error: message(e), kind: e instanceof Skip ? 'skipped' : 'exception', id: current.spec.id }
  }
}

const message = e => (e instanceof Error ? e.message || e.name : String(e))

const ownThreadCpu = typeof process.threadCpuUsage === 'function'
const counted = typeof v8.GCProfiler === 'function'

function hello() {
  return {
    scruple: 1, sdk: 'scruple-js 0.1.0', language: 'javascript', runtime: `node ${process.version}`,
    clocks: { 'time.wall': { resolution: 1 }, 'time.cpu': { resolution: 1000, scope: ownThreadCpu ? 'thread' : 'process' } },
    features: ['threads', 'loaded'],
    counters: !counted ? [] : [
      { key: 'alloc.bytes', unit: 'bytes', quality: 'near', title: 'allocated on the heap, up to 100 bytes a batch or 0.1 %' },
      { key: 'js.external', unit: 'bytes', quality: 'near', title: 'outside heap' },
      { key: 'gc.count', unit: 'count', quality: 'near' },
      { key: 'gc.time', unit: 'ns', quality: 'near' },
    ],
  }
}

// Workers of the program itself, whose code cannot be seen from here.
let strangers = 0
if (isMainThread) process.on('worker', worker => { if (!crew.some(member => member.worker === worker)) strangers++ })

// The files that hold the code of this process, and texts that identify code that is in none of them. The debugger, which
// is asked after the timing, knows every script; modules that only hold data may have none any more.
async function loaded() {
  await new Promise(setImmediate) // Node announces workers only when nothing else is to be done.
  if (strangers > 0) throw new Refusal('unsupported', 'the program has started worker threads')
  const files = new Set(Object.keys(createRequire(import.meta.url).cache)), generated = new Set()
  for (const line of readFileSync('/proc/self/maps', 'utf8').split('\n')) {
    const mapped = /^\S+ ..x. [^/]*(\/.*)/.exec(line)
    if (mapped) files.add(mapped[1])
  }
  const { Session } = await import('node:inspector').catch(e => { throw new Refusal('unsupported', message(e)) })
  const session = new Session()
  session.connect()
  session.on('Debugger.scriptParsed', ({ params: { url, hash } }) => {
    if (url.startsWith('file:')) files.add(fileURLToPath(url.replace(/[?#].*/, '')))
    else if (url.startsWith('/')) files.add(url)
    else if (!url.startsWith('node:') && url !== OWN) generated.add(`${url} ${hash}`)
  })
  session.post('Debugger.enable')
  session.disconnect()
  return { loaded: [...files], generated: [...generated] }
}

function number(word) {
  if (!/^\d{1,15}$/.test(word)) throw new Refusal('request', `not a number: ${word}`)
  return Number(word)
}

function find(word) {
  const id = number(word)
  if (id >= cases.length) throw new Refusal('unknown-case', `no case ${word}`, id)
  return cases[id]
}

async function prepare(c) {
  if (!c.ready && c.options.setup) c.arg = await c.options.setup()
  c.ready = true
}

async function release(c) {
  const ready = c.ready
  c.ready = false
  if (ready && c.options.teardown) await c.options.teardown(c.arg)
}

async function releaseAll() {
  for (const c of cases) {
    try {
      await release(c)
    } catch (e) {
      process.stderr.write(`${c.spec.name}: teardown: ${message(e)}\n`)
    }
  }
}

async function once(c) {
  await prepare(c)
  const { input, check, digest } = c.options
  const result = await c.body(input ? await input() : c.arg)
  const reply = { once: c.spec.id, ok: true, checked: !!check }
  if (digest) reply.digest = String(await digest(result))
  const wrong = check && (await check(result))
  if (wrong !== undefined && wrong !== true) Object.assign(reply, { ok: false, why: message(wrong) })
  return reply
}

async function block(words) {
  const batches = words.map(parse)
  for (const { c } of batches) await prepare((current = c))
  const entries = []
  for (const { c, kind, n, threads } of batches) {
    current = c
    const lanes = threads > 1 ? together(c, kind, n, threads) : [await lane(c, kind, n, () => {})]
    entries.push(entry(c, kind, n, lanes))
  }
  return { block: entries, lost: 0 }
}

function parse(word) {
  const [id, kind, n, threads = '1', ...more] = word.split(':')
  if (n === undefined || more.length > 0 || !/^[ct]$/.test(kind)) throw new Refusal('request', `not a batch: ${word}`)
  const batch = { c: find(id), kind, n: number(n), threads: number(threads) }
  if (batch.n < 1 || batch.threads < 1 || batch.n > (batch.c.most ?? Infinity)) {
    throw new Refusal('request', `iterations or threads out of bounds: ${word}`, batch.c.spec.id)
  }
  return batch
}

function entry(c, kind, n, lanes) {
  const sum = key => lanes.reduce((s, l) => s + l[key], 0)
  const wall = Math.max(...lanes.map(l => l.end)) - Math.min(...lanes.map(l => l.start))
  const cpu = lanes.cpu ?? sum('cpu')
  const e = { id: c.spec.id, kind, iterations: n * lanes.length, 'time.wall': wall, 'time.cpu': Math.round(cpu), timing: c.timing }
  if (counted) Object.assign(e, { 'alloc.bytes': sum('bytes'), 'gc.count': sum('collections'), 'gc.time': sum('pause') })
  if (lanes.length === 1 && lanes[0].external >= 0) e['js.external'] = lanes[0].external
  if (lanes.length === 1) Object.assign(e, { witness: lanes[0].witness, thread: ownThreadCpu ? process.pid : undefined })
  if (lanes.length > 1) {
    e.threads = lanes.map(l => ({
      iterations: n, 'time.wall': l.end - l.start, 'time.cpu': ownThreadCpu ? Math.round(l.cpu) : undefined,
      waited: Number.isNaN(l.waited) ? undefined : l.waited,
    }))
  }
  return e
}

const OWN = 'scruple:loop'

// Every case and every tare has its own loop, compiled from its own text: V8 specialises a loop for the functions that
// it has called, and would treat a second function differently from the first. Arguments are read from an array and
// results written to one, at a varying index, so that neither can be hoisted nor dropped. The arrays, too, are made by the
// text of the loop: V8 gives a new array the kind of elements that earlier arrays from the same place have come to hold,
// and then numbers of a case that runs after one with objects would be boxed. For latency each argument is computed from
// the input and the previous result; the multiplications take longer than the loop, which runs in parallel to them.
function loopOf(c, kind) {
  const async = c.kind === 'async' ? 'async ' : ''
  const chains = {
    whole: 'l = Math.imul(r, 3) + 1 | 0; l = Math.imul(l, l); l = Math.imul(l, l); r = out[i & 1] = f((args[i & 1] + (l & zero)) | 0)',
    float: 'r = out[i & 1] = f(args[i & 1] + r * zero)',
  }
  const body = chains[c.chain] ?? `out[i & 1] = ${async && 'await '}f(args[${c.options.input ? 'i' : 'i & 1'}])`
  const pair = { whole: 'new Int32Array(2)', float: 'new Float64Array(2)' }[c.chain]
  const text = `const run = ${async}function (n, f, args, out, zero) { // ${c.spec.id} ${kind}
    let r = zero, l = zero
    for (let i = 0; i < n; i++) { ${body} }
  }
  return { run, out: ${pair ?? '[0, 0]'}, argsOf: arg => ${pair ? `${pair}.fill(arg)` : '[arg, arg]'}, noArgs: () => [] }
  //# sourceURL=${OWN}`
  const tare = async ? async x => x : new Function(`return x => x // ${c.spec.id}\n//# sourceURL=${OWN}`)()
  return { ...new Function(text)(), f: kind === 'c' ? c.body : tare }
}

const isWhole = x => Number.isInteger(x) && (x | 0) === x
const isFloat = x => typeof x === 'number' && Number.isFinite(x) && !isWhole(x)

// Decides by the first result whether iterations can wait for each other: argument and result must both be whole
// numbers of 32 bits, or both be finite and not whole, so that V8 treats them alike in case and tare.
function learn(c, result) {
  const alike = [['whole', isWhole], ['float', isFloat]].find(([, is]) => is(c.arg) && is(result))
  const can = alike && !c.options.input && c.kind === 'sync'
  if (c.options.timing === 'latency' && !can) throw new Error('there is no latency: argument and result must be whole numbers, or fractions')
  c.chain = can && c.options.timing !== 'throughput' ? alike[0] : undefined
  c.timing = c.chain ? 'latency' : 'throughput'
  if (c.chain) c.loops = {}
}

// One thread's part of a batch. An empty run of the same loop shows what reading the heap allocates by itself.
async function lane(c, kind, n, barrier) {
  const loop = (c.loops[kind] ??= loopOf(c, kind))
  const args = c.options.input ? loop.noArgs() : loop.argsOf(c.arg)
  if (c.options.input) for (let i = 0; i < n; i++) args.push(await c.options.input())
  const reading = ownThreadCpu ? process.threadCpuUsage : process.cpuUsage
  const overhead = (await timed(loop, 0, args, () => {}, reading)).bytes
  const before = witness()
  const l = await timed(loop, n, args, barrier, reading)
  l.witness = Math.max(before, witness())
  l.bytes = Math.max(0, l.bytes - overhead)
  if (kind === 'c') {
    const result = loop.out[(n - 1) & 1]
    refuseUnfinished(c, result)
    if (c.timing === undefined) learn(c, result)
  }
  return l
}

// Only a result shows that a function which is not async returns promises. Their time would be that of making them, as
// that of a generator would be.
function refuseUnfinished(c, result) {
  if (/^(Async)?GeneratorFunction$/.test(c.body.constructor?.name)) {
    throw new Error('the body is a generator, and a call runs nothing of it: take its elements in the body')
  }
  if (c.kind === 'sync' && c.options.async !== false && typeof result?.then === 'function') {
    throw new Error('the body returns a promise, which nothing waits for: make it an async function, or say `async: true` (or `async: false` to time the call alone)')
  }
}

// The time of a fixed piece of work in nanoseconds: some 2000 with a core for itself, up to twice as long if the core's
// other thread is busy, since the work uses all units of the core. The tare is a chain, which hardly shows this.
function witness() {
  const start = process.hrtime.bigint()
  keep = busy(2500)
  return Number(process.hrtime.bigint() - start)
}

let keep = 0

function busy(n) {
  let a = 1, b = 2, c = 3, d = 4
  for (; n > 0; n--) {
    a = (a + n) | 0
    b ^= n
    c = (c - n) | 0
    d = (d + 3) | 0
  }
  return (a + b + c + d) | 0
}

async function timed({ run, f, out }, n, args, barrier, cpuNow) {
  const collector = counted ? new v8.GCProfiler() : undefined
  collector?.start()
  const heap = () => counted ? v8.getHeapStatistics() : { used_heap_size: 0 }
  const { used_heap_size: before, external_memory: outside } = heap()
  barrier()
  const cpu = cpuNow.call(process)
  const start = process.hrtime.bigint()
  const pending = run(n, f, args, out, 0)
  if (pending !== undefined) await pending
  const end = process.hrtime.bigint()
  const used = cpuNow.call(process)
  const { used_heap_size: after, external_memory: outsideAfter } = heap()
  const collections = collector?.stop().statistics ?? []
  // The bytes allocated between two collections are the rise from the end of the first to the start of the second.
  let bytes = 0
  let last = before
  for (const gc of collections) {
    bytes += gc.beforeGC.heapStatistics.usedHeapSize - last
    last = gc.afterGC.heapStatistics.usedHeapSize
  }
  return {
    // A collection frees memory outside the heap at an unknown later time, so after one the rise says nothing.
    external: collections.length > 0 ? NaN : outsideAfter - outside,
    start: Number(start - epoch), end: Number(end - epoch),
    cpu: (used.user + used.system - cpu.user - cpu.system) * 1000, bytes: bytes + after - last,
    waited: Number.isNaN(waitedBefore) ? NaN : waitedSoFar() - waitedBefore, collections: collections.length, pause: Math.round(collections.reduce((s, gc) => s + gc.cost * 1000, 0)),
  }
}

const epoch = workerData?.scruple?.epoch ?? process.hrtime.bigint()

// Threads are workers that run this same program and share memory with it: words for the task and the state of the
// barrier, a lane's figures, and the text of an error.
const ID = 0, KIND = 1, N = 2, SIZE = 3, TURN = 4, HERE = 5, OPEN = 6, DONE = 7, FAILED = 8, CALL = 9, NEVER = 10, SKIPPED = 11
const KEYS = ['start', 'end', 'cpu', 'bytes', 'collections', 'pause', 'waited']
const crew = []

function views(memory) {
  return { words: new Int32Array(memory, 0, 16), figures: new Float64Array(memory, 64, 7), text: new Uint8Array(memory, 128) }
}

function together(c, kind, n, threads) {
  while (crew.length < threads) {
    const memory = new SharedArrayBuffer(4096)
    const first = crew[0]?.memory ?? memory
    const worker = new Worker(process.argv[1], { argv: process.argv.slice(2), workerData: { scruple: { memory, first, epoch } } })
    worker.unref()
    crew.push({ worker, memory, ...views(memory) })
  }
  const members = crew.slice(0, threads)
  members.forEach(({ words }) => words.fill(0, HERE))
  for (const { words } of members) {
    words.set([c.spec.id, kind === 'c' ? 0 : 1, n, threads])
    Atomics.add(words, TURN, 1)
    Atomics.notify(words, TURN)
  }
  const all = word => members.forEach(({ words }) => Atomics.wait(words, word, 0))
  all(HERE)
  for (const { words } of members) {
    Atomics.store(words, OPEN, 1)
    Atomics.notify(words, OPEN)
  }
  all(DONE)
  const lanes = members.map(({ words, figures, text }) => {
    if (words[FAILED] > 0) throw new (words[SKIPPED] ? Skip : Error)(Buffer.from(text.slice(0, words[FAILED])).toString())
    return Object.fromEntries(KEYS.map((key, i) => [key, figures[i]]))
  })
  // If only the process's CPU time can be read, the threads' shares of it are unknown. Each read it around its own part.
  if (!ownThreadCpu) lanes.cpu = Math.max(...lanes.map(l => l.cpu))
  return lanes
}

// How long this thread was ready but waited for a core so far, in ns; NaN if the kernel does not tell.
function waitedSoFar() {
  try {
    return Number(readFileSync('/proc/thread-self/schedstat', 'latin1').split(' ')[1])
  } catch {
    return NaN
  }
}

let waitedBefore = NaN

// The barrier opens when all threads have a core at the same time, so that none starts late: when all have answered a call
// of the first thread within 2 µs. After 5 ms it opens in any case. A call is a number and, in its last eight bits, how
// many threads have answered it; -1 opens the barrier. A thread that has spun for 0.1 ms naps, so that other programs
// let it run when it is awake.
function meet(calls, own, threads) {
  waitedBefore = waitedSoFar()
  const began = performance.now()
  let since = began
  const nap = () => {
    if (performance.now() - since < 0.1) return
    Atomics.wait(own, NEVER, 0, 0.05)
    waitedBefore = waitedSoFar()
    since = performance.now()
  }
  const answered = call => {
    Atomics.store(calls, CALL, call)
    const asked = performance.now()
    for (;;) {
      const all = Atomics.load(calls, CALL) === call + threads - 1
      const late = performance.now() - asked >= 0.002
      if (all || late) return all && !late
    }
  }
  if (calls === own) {
    for (let call = 256; !answered(call) && since - began < 5; call += 256) nap()
    Atomics.store(calls, CALL, -1)
    return
  }
  for (let last = 0, call; (call = Atomics.load(calls, CALL)) !== -1;) {
    if (call >> 8 === last) nap()
    else if (Atomics.compareExchange(calls, CALL, call, call + 1) === call) last = call >> 8
  }
}

async function work({ memory, first }) {
  const { words, figures, text } = views(memory)
  const calls = memory === first ? words : views(first).words
  const signal = word => {
    Atomics.store(words, word, 1)
    Atomics.notify(words, word)
  }
  const barrier = () => {
    signal(HERE)
    Atomics.wait(words, OPEN, 0)
    meet(calls, words, words[SIZE])
  }
  for (let turn = 0; ; turn++) {
    Atomics.wait(words, TURN, turn)
    try {
      const c = cases[words[ID]]
      await prepare(c)
      const l = await lane(c, words[KIND] === 0 ? 'c' : 't', words[N], barrier)
      figures.set(KEYS.map(key => l[key]))
    } catch (e) {
      words[SKIPPED] = e instanceof Skip
      words[FAILED] = new TextEncoder().encodeInto(message(e) || 'an exception', text).written
    }
    signal(HERE)
    signal(DONE)
  }
}

function connect() {
  const { SCRUPLE_BENCH_IN: from, SCRUPLE_BENCH_OUT: to } = process.env
  if (!from && !to) byHand()
  if (!from || !to) leave('only one of SCRUPLE_BENCH_IN and SCRUPLE_BENCH_OUT is set')
  delete process.env.SCRUPLE_BENCH_IN
  delete process.env.SCRUPLE_BENCH_OUT
  let input, output
  try {
    // Node opens files close-on-exec.
    input = openSync(from, 'r')
    output = openSync(to, 'w')
  } catch (e) {
    leave(e.message)
  }
  return { requests: lines(input), reply: o => send(output, JSON.stringify(o, plain) + '\n') }
}

// JSON has no NaN, no infinity and no big integers.
function plain(_key, value) {
  if (typeof value === 'bigint') return Number(value)
  return typeof value === 'number' && !Number.isFinite(value) ? undefined : value
}

function* lines(fd) {
  const chunk = Buffer.alloc(1 << 16)
  let parts = []
  for (let size; (size = retry(() => readSync(fd, chunk))) > 0; ) {
    let from = 0
    for (let to; (to = chunk.subarray(0, size).indexOf(10, from)) >= 0; from = to + 1) {
      yield Buffer.concat([...parts, chunk.subarray(from, to)]).toString()
      parts = []
    }
    parts.push(Buffer.from(chunk.subarray(from, size)))
  }
}

function send(fd, text) {
  for (let rest = Buffer.from(text); rest.length > 0; ) rest = rest.subarray(retry(() => writeSync(fd, rest)))
}

// Reading a pipe that was made non-blocking may fail with EAGAIN.
function retry(call) {
  for (;;) {
    try {
      return call()
    } catch (e) {
      if (e.code !== 'EAGAIN') throw e
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 1)
    }
  }
}

// Node cannot replace its process by another program, so it waits for that program and passes on its exit code.
function byHand() {
  const itself = [process.execPath, ...process.execArgv, ...process.argv.slice(1)]
  if (!process.env.SCRUPLE_BENCH_HAND) {
    const env = { ...process.env, SCRUPLE_BENCH_HAND: '1' }
    const done = spawnSync('scruple', ['bench', '--', ...itself], { stdio: 'inherit', env })
    if (!done.error) process.exit(done.status ?? 128 + constants.signals[done.signal])
  }
  leave(`this is a bench program; run it with: scruple bench -- ${itself.join(' ')}`)
}

function refuseDuplicates() {
  const seen = new Set()
  for (const { spec } of cases) {
    const key = JSON.stringify([spec.name, Object.entries(spec.params ?? {}).sort()])
    if (seen.has(key)) leave(`two cases are called ${JSON.stringify(spec.name)} with the same params`)
    seen.add(key)
  }
}

function leave(why) {
  process.stderr.write(`${basename(process.argv[1])}: ${why}\n`)
  process.exit(2)
}

// Returns the line of the program that called bench.
function caller() {
  const [, file, line] = /([^/\\]+?):(\d+):\d+\)?$/.exec(new Error().stack.split('\n')[3]) ?? []
  return file && `${file}:${line}`
}
