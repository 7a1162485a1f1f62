'use strict';
// Counts what V8 allocates: between two collections the used heap grows by exactly the allocated bytes. The result is
// written to a new file in this folder when the process exits. Nothing here may make a program fail.

// Returns a function for the end of the process: start and end of each collection, in nanoseconds on the monotonic
// clock. With this option an interrupted server, too, must exit normally, so that it reports.
function everyPause() {
  const { performance, PerformanceObserver } = require('node:perf_hooks');
  const seen = [];
  const add = (entries) => { for (const { startTime, duration } of entries) seen.push([startTime, duration]); };
  const observer = new PerformanceObserver((list) => add(list.getEntries()));
  observer.observe({ entryTypes: ['gc'] });
  process.on('SIGINT', () => { if (process.listenerCount('SIGINT') === 1) process.exit(130); });
  return () => {
    add(observer.takeRecords());
    const origin = Number(process.hrtime.bigint()) - performance.now() * 1e6;
    return seen.map(([start, took]) => [start, start + took].map((ms) => Math.round(origin + ms * 1e6)));
  };
}

// Reading these variables calls the library that is loaded into this process (agent/node.c); they have no value.
const collectAtTimes = () => process.env.SCRUPLE_NODE_COLLECTS;
const limitTheWait = () => process.env.SCRUPLE_NODE_WAITS;
const endTheWait = () => process.env.SCRUPLE_NODE_ENDS;

// A server ends by a signal, for which Node emits no exit event. The handler reports and then sends the signal again,
// so the server still dies by it. In a program that has not reached its event loop a handler would never run and the
// signal would have no effect, so the handler is added later.
function tellWhenTerminated(settle, tell) {
  const wait = setTimeout(() => {
    if (process.listenerCount('SIGTERM') > 0) return;
    const end = () => {
      if (process.listenerCount('SIGTERM') > 1) return;
      endTheWait();
      settle(() => {
        tell();
        process.removeListener('SIGTERM', end);
        process.kill(process.pid, 'SIGTERM');
      });
    };
    process.on('SIGTERM', end);
    limitTheWait();
    process.on('newListener', (name) => { if (name === 'SIGTERM') endTheWait(); });
  }, 50);
  wait.unref();
}

// Collections of young objects become full collections: all of them, or, where the library can count them, at moments
// that lie ever further apart. Returns the function that forces the last one at the end.
function fullCollections(v8) {
  v8.setFlagsFromString('--gc-global');
  // Without this, V8 drops bytecode that some collections have found unused, which would hide growth of that size.
  v8.setFlagsFromString('--no-flush-bytecode');
  // Objects that die while an incremental collection marks others would count as live.
  v8.setFlagsFromString('--no-incremental-marking');
  v8.setFlagsFromString('--expose-gc');
  collectAtTimes();
  return require('node:vm').runInNewContext('gc');
}

// Callbacks of a FinalizationRegistry run in turns of the event loop after a collection has found their objects dead, and
// only then remove the entries of a cache. In programs that use one, live data are read after such turns: during the run
// and before its end. If there are none before the end, as after process.exit(), live data are not known.
function settledReadings(v8, collect) {
  const inTurn = setImmediate;
  const size = () => {
    const { used_heap_size: used, external_memory: external } = v8.getHeapStatistics();
    return used + external;
  };
  const readings = { used: false, most: 0, end: 0, last: false };
  const afterTurns = (count, then) => (count === 0 ? then() : inTurn(() => afterTurns(count - 1, then)));

  // What a callback frees may be the object of another registry.
  const settle = (then, rounds = 6, before = Infinity) => {
    collect();
    const now = size();
    if (rounds === 0 || now > before - 1024) {
      readings.end = now;
      then();
    } else afterTurns(4, () => settle(then, rounds - 1, now));
  };

  // An object of our own dies in each collection, so we are called as the callbacks of the program are.
  const watch = () => ours.register({});
  const ours = new FinalizationRegistry(() => inTurn(() => inTurn(() => {
    collect();
    readings.most = Math.max(readings.most, size());
    watch();
  }).unref()).unref());

  // The program's listeners are called only once for each time that its event loop is empty.
  const settleBeforeExit = () => {
    const { emit } = process;
    let settled = false;
    process.emit = function (name, ...rest) {
      if (name !== 'beforeExit') return Reflect.apply(emit, this, [name, ...rest]);
      if (settled) {
        settled = false;
        readings.last = true;
        inTurn(() => { readings.last = false; }).unref();
        return Reflect.apply(emit, this, [name, ...rest]);
      }
      settle(() => { settled = true; });
      return true;
    };
  };

  const { prototype } = FinalizationRegistry;
  const { register } = prototype;
  const watching = {
    register(target, held, ...rest) {
      if (this !== ours && !readings.used) {
        readings.used = true;
        prototype.register = register;
        settleBeforeExit();
        watch();
      }
      return Reflect.apply(register, this, [target, held, ...rest]);
    },
  };
  prototype.register = watching.register;
  readings.whenSettled = (then) => {
    if (!readings.used) return then();
    return settle(() => { readings.last = true; then(); });
  };
  return readings;
}

try {
  const v8 = require('node:v8');
  const fs = require('node:fs');
  const threads = require('node:worker_threads');
  if (v8.GCProfiler) {
    const collect = fs.existsSync(`${__dirname}/full-gc`) ? fullCollections(v8) : undefined;
    const settled = collect && settledReadings(v8, collect);
    const start = v8.getHeapStatistics().used_heap_size;
    const profiler = new v8.GCProfiler();
    profiler.start();
    const pauses = fs.existsSync(`${__dirname}/every-gc`) ? everyPause() : undefined;
    let told = false;
    const tell = () => {
      if (told) return;
      told = true;
      try {
        collect?.();
        const { statistics } = profiler.stop();
        const end = v8.getHeapStatistics().used_heap_size;
        let before = start;
        let allocated = 0;
        let peak = end;
        let live = 0;
        let reachable = 0;
        const kinds = {};
        for (const collection of statistics) {
          const from = collection.beforeGC.heapStatistics;
          const to = collection.afterGC.heapStatistics;
          allocated += from.usedHeapSize - before;
          before = to.usedHeapSize;
          peak = Math.max(peak, from.totalHeapSize);
          live = Math.max(live, to.usedHeapSize);
          // Buffers are outside the heap, and objects in the heap keep them alive.
          if (collection.gcType === 'MarkSweepCompact') {
            reachable = Math.max(reachable, to.usedHeapSize + to.externalMemory);
          }
          const kind = (kinds[collection.gcType] ||= { count: 0, micros: 0, longest: 0 });
          kind.count += 1;
          kind.micros += collection.cost;
          kind.longest = Math.max(kind.longest, collection.cost);
        }
        allocated += end - before;
        const atMost = settled?.last ? Math.max(settled.end, settled.most) : reachable;
        if (settled?.used) reachable = settled.last ? settled.end : settled.most || start;
        const answer = { pid: process.pid, thread: threads.threadId, version: process.versions.node, start,
          allocated, peak, live, reachable: collect && reachable, atMost: collect && atMost, kinds, pauses: pauses?.() };
        const name = `${__dirname}/node-${process.pid}-${threads.threadId}-${Date.now()}.json`;
        fs.writeFileSync(name, JSON.stringify(answer), { flag: 'wx' });
      } catch { /* the reader reports that there is no result */ }
    };
    process.on('exit', tell);
    if (threads.isMainThread) tellWhenTerminated(settled?.whenSettled ?? ((then) => then()), tell);
  }
} catch { /* an old or restricted node */ }
