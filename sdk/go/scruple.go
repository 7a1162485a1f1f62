//go:build linux

// Package scruple declares cases for Scruple to weigh. Scruple starts the program, asks it for batches over two pipes
// and does all sampling and statistics. This package names the cases, loops, and reads clocks and counters.
package scruple

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"
)

// Case declares a case whose body contains the loop, so that the compiler may inline the work into it. Its tare is an
// empty loop. The body must pass its results to Keep, or the work may be optimised away.
func Case(name string, body func(b *B)) *C {
	c := declare(name, "loop")
	c.body = body
	c.tare = func(b *B) {
		for i := 0; i < b.N; i++ {
		}
	}
	c.once = func() any { body(&B{N: 1}); return nil }
	return c
}

// B is the argument of a Case's body, which must do its work N times.
type B struct {
	N      int // the number of iterations
	Thread int // 0 for the first thread of a batch
}

// Call declares the function f applied to arg. The loop calls f through a function value, so that the compiler can
// neither inline f nor hoist the call. The tare is the same loop with an identity or constant function of the same
// type.
func Call[A, R any](name string, arg A, f func(A) R) *C {
	return CallWith(name, func() A { return arg }, f).declaredBy(2)
}

// CallWith is Call with an argument that is made outside the timed part, at first use and after each reset.
func CallWith[A, R any](name string, input func() A, f func(A) R) *C {
	var arg A
	none := neutral[A, R]()
	c := declare(name, fmt.Sprintf("%T", f))
	c.input = func() { arg = input() }
	c.body = func(b *B) { Keep(loop(b.N, arg, f)) }
	c.tare = func(b *B) { Keep(loop(b.N, arg, none)) }
	c.once = func() any { return f(arg) }
	if body, tare := chained(f, &arg); body != nil {
		c.chain = [2]func(*B){func(b *B) { body(b.N) }, func(b *B) { tare(b.N) }}
		c.Kind = Latency
	}
	return c
}

// Each is CallWith with a new argument for every iteration, made outside the timed part.
func Each[A, R any](name string, input func() A, f func(A) R) *C {
	var args []A
	none := neutral[A, R]()
	c := declare(name, fmt.Sprintf("each %T", f))
	c.PerInput, c.MaxIterations = true, 1000
	c.fill = func(n int) {
		clear(args)
		args = args[:0]
		for i := 0; i < n; i++ {
			args = append(args, input())
		}
	}
	share := func(b *B) []A { return args[b.Thread*b.N : (b.Thread+1)*b.N] }
	c.body = func(b *B) { Keep(loopEach(share(b), f)) }
	c.tare = func(b *B) { Keep(loopEach(share(b), none)) }
	c.once = func() any { return f(args[0]) }
	return c
}

//go:noinline
func loop[A, R any](n int, arg A, f func(A) R) (result R) {
	for i := 0; i < n; i++ {
		result = f(arg)
	}
	return result
}

//go:noinline
func loopEach[A, R any](args []A, f func(A) R) (result R) {
	for i := range args {
		result = f(args[i])
	}
	return result
}

// neutral is the identity if result and argument have one type, else a function that returns a zero value.
func neutral[A, R any]() func(A) R {
	var identity any = func(a A) A { return a }
	if f, same := identity.(func(A) R); same {
		return f
	}
	return func(A) (zero R) { return zero }
}

// Keep uses a value, so that the compiler cannot drop the work that made it.
//
//go:noinline
func Keep[T any](T) {}

// Options are the optional properties of a case.
type Options struct {
	Group         string           `json:"group,omitempty"`   // the group in reports; by default the name up to its last /
	Params        map[string]any   `json:"params,omitempty"`  // numbers or strings that distinguish cases of one name
	Bytes         int64            `json:"-"`                 // one iteration processes this many bytes,
	Items         int64            `json:"-"`                 // or this many items
	Threads       []int            `json:"threads,omitempty"` // each thread runs all iterations
	Budgets       map[string]Limit `json:"budgets,omitempty"` // by metric
	Tags          []string         `json:"tags,omitempty"`
	Fresh         bool             `json:"fresh,omitempty"`          // the case is timed in separate processes
	MaxIterations int              `json:"max_iterations,omitempty"` // of one batch
	TimeLimit     time.Duration    `json:"time_limit,omitempty"`     // for one batch
	Timing        Timing           `json:"-"`                        // Throughput: iterations do not wait for each other

	Setup    func()               `json:"-"` // runs before the case is first used and after each reset
	Teardown func()               `json:"-"` // undoes Setup, at a reset and at the end
	Check    func(got any) error  `json:"-"` // checks the result of one call, which is nil for a Case
	Digest   func(got any) string `json:"-"` // a short text for comparing the results of two versions
	Roaming  bool                 `json:"-"` // the body works in other goroutines, on any thread (see README)
}

// Timing is what the time of an iteration means.
type Timing string

const (
	Latency    Timing = "latency"    // from argument to result: iterations wait for each other; for numbers of one type
	Throughput Timing = "throughput" // from one result to the next: iterations may overlap
)

// Limit is a budget per iteration: "max" and "min" are numbers in the metric's unit, or texts such as "+5%", which are
// relative to what "against" names.
type Limit map[string]any

// C is a declared case.
type C struct {
	ID       int    `json:"id"`
	Name     string `json:"name"`
	Shape    string `json:"shape"`
	Source   string `json:"source,omitempty"`
	PerInput bool   `json:"per_iteration_input,omitempty"`
	Options
	Throughput reply   `json:"throughput,omitempty"`
	Kind       Timing  `json:"timing"`
	Checked    bool    `json:"checked,omitempty"`
	Readings   []reply `json:"readings,omitempty"`

	chain      [2]func(*B) // body and tare if iterations wait for each other
	body, tare func(b *B)  // runs b.N iterations on the input
	once       func() any  // runs the body once and returns its result
	input      func()      // makes the argument, after Setup
	fill       func(n int) // makes an argument for each iteration
	ready      bool
}

type reply = map[string]any

// With adds options to a case.
func (c *C) With(o Options) *C {
	if c.PerInput && o.MaxIterations == 0 {
		o.MaxIterations = c.MaxIterations
	}
	c.Options, c.Checked = o, o.Check != nil
	for unit, n := range map[string]int64{"bytes": o.Bytes, "items": o.Items} {
		if n > 0 {
			c.Throughput = reply{"unit": unit, "amount": n}
		}
	}
	switch {
	case o.Timing == Throughput:
		c.Kind = Throughput
	case o.Timing == Latency && c.Kind != Latency:
		leave(fmt.Sprintf("%q has no latency: argument and result must be numbers of one type", c.Name))
	}
	if o.Roaming {
		c.Shape += " roaming"
		c.Readings = []reply{{"key": "time.cpu.process", "unit": "ns", "quality": "exact"}}
	}
	return c
}

var cases []*C

func declare(name, shape string) *C {
	c := &C{ID: len(cases), Name: name, Shape: shape, Kind: Throughput, input: func() {}, fill: func(int) {}}
	cases = append(cases, c)
	return c.declaredBy(3)
}

// declaredBy notes the line that declared the case, skip callers up.
func (c *C) declaredBy(skip int) *C {
	if _, file, line, ok := runtime.Caller(skip); ok {
		c.Source = fmt.Sprintf("%s:%d", filepath.Base(file), line)
	}
	return c
}

// Main answers the host until it sends bye, and does not return. Without a host it runs scruple on this program.
func Main() {
	refuseDuplicates()
	in, out := connect()
	// The thread's CPU clock is valid only for a goroutine that stays on its thread.
	runtime.LockOSThread()
	requests, buffer := bufio.NewReader(in), bufio.NewWriter(out)
	replies := json.NewEncoder(buffer)
	for {
		line, end := requests.ReadString('\n')
		line = strings.TrimSuffix(line, "\n")
		for _, c := range cases {
			if line == "cases" {
				replies.Encode(reply{"case": c})
			} else if line == "bye" || end != nil {
				c.releaseAtEnd()
			}
		}
		if end != nil {
			os.Exit(0)
		}
		if err := replies.Encode(answer(line)); err != nil {
			replies.Encode(reply{"error": err.Error(), "kind": "exception"})
		}
		buffer.Flush()
		if line == "bye" {
			os.Exit(0)
		}
	}
}

type skip string

// Skip ends the case that runs, because it cannot run here. Scruple shows it as skipped, with this reason.
func Skip(why string) { panic(skip(why)) }

// at is the current case, for the reply to a panic in it.
var at *C

// answer carries out a request. If it cannot, the code panics with the error reply.
func answer(line string) (r reply) {
	defer func() {
		switch p := recover().(type) {
		case nil:
		case reply:
			r = p
		case skip:
			r = reply{"error": string(p), "kind": "skipped", "id": at.ID}
		default:
			r = reply{"error": fmt.Sprint(p), "kind": "exception", "id": at.ID}
		}
	}()
	words := strings.Split(line, " ")
	switch verb := words[0]; {
	case line == "cases":
		return reply{"end": "cases", "count": len(cases)}
	case line == "bye":
		return reply{"bye": true}
	case verb == "block" && len(words) > 1:
		return block(words[1:])
	case verb == "once" && len(words) == 2:
		at = find(words[1])
		return at.runOnce()
	case verb == "reset" && len(words) == 2:
		at = find(words[1])
		at.release()
		at.prepare()
		return reply{"reset": at.ID}
	case verb == "hello" && len(words) == 2 && number(words[1]) >= 0:
		return hello()
	}
	return reply{"error": "unknown request: " + line, "kind": "request"}
}

func hello() reply {
	return reply{"scruple": 1, "sdk": "scruple-go 0.1.0", "language": "go", "runtime": runtime.Version(),
		"clocks":   reply{"time.wall": reply{"resolution": 1}, "time.cpu": reply{"resolution": 1, "scope": "thread"}},
		"features": []string{"threads"},
		// When the collector starts depends on how its threads are scheduled, and it allocates a little itself.
		"counters": []reply{
			{"key": "alloc.bytes", "unit": "bytes", "quality": "near"},
			{"key": "alloc.count", "unit": "count", "quality": "near"},
			{"key": "gc.count", "unit": "count", "quality": "near"},
			{"key": "go.gc.pause", "unit": "ns", "quality": "near", "title": "time stopped by the collector"},
		}}
}

func find(word string) *C {
	id := number(word)
	if id >= len(cases) {
		panic(reply{"error": "no case " + word, "kind": "unknown-case", "id": id})
	}
	return cases[id]
}

func number(word string) int {
	n, err := strconv.ParseUint(word, 10, 53)
	if err != nil {
		panic(reply{"error": "not a number: " + word, "kind": "request"})
	}
	return int(n)
}

func (c *C) prepare() {
	if !c.ready && c.Setup != nil {
		c.Setup()
	}
	if !c.ready {
		c.input()
	}
	c.ready = true
}

func (c *C) release() {
	if c.ready && c.Teardown != nil {
		c.ready = false
		c.Teardown()
	}
	c.ready = false
}

func (c *C) releaseAtEnd() {
	defer func() {
		if p := recover(); p != nil {
			fmt.Fprintf(os.Stderr, "%s: teardown: %v\n", c.Name, p)
		}
	}()
	c.release()
}

func (c *C) runOnce() reply {
	c.prepare()
	c.fill(1)
	got := c.once()
	r := reply{"once": c.ID, "ok": true, "checked": c.Check != nil}
	if c.Digest != nil {
		r["digest"] = c.Digest(got)
	}
	if c.Check != nil {
		if err := c.Check(got); err != nil {
			r["ok"], r["why"] = false, err.Error()
		}
	}
	return r
}

// batch is one batch of a block, which a word of the request describes.
type batch struct {
	c          *C
	kind       string
	n, threads int
}

func block(words []string) reply {
	batches, replies := make([]batch, len(words)), make([]reply, len(words))
	for i, word := range words {
		batches[i], replies[i] = parse(word), reply{}
	}
	for _, t := range batches {
		at = t.c
		at.prepare()
	}
	for i, t := range batches {
		at = t.c
		t.run(replies[i])
	}
	return reply{"block": replies, "lost": 0}
}

func parse(word string) batch {
	parts := strings.Split(word, ":")
	if len(parts) == 3 {
		parts = append(parts, "1")
	}
	if len(parts) != 4 || parts[1] != "c" && parts[1] != "t" {
		panic(reply{"error": "not a batch: " + word, "kind": "request"})
	}
	t := batch{find(parts[0]), parts[1], number(parts[2]), number(parts[3])}
	if t.n < 1 || t.threads < 1 || t.threads > 1 && t.c.Roaming || t.c.MaxIterations > 0 && t.n > t.c.MaxIterations {
		panic(reply{"error": "iterations or threads out of bounds: " + word, "kind": "request", "id": t.c.ID})
	}
	return t
}

// run does the batch on several threads; this one is the first. The others wait at a barrier while the statistics are
// read, which stops the program and flushes the allocator's caches.
func (t *batch) run(r reply) {
	body, clock, key := t.c.body, threadClock, "time.cpu"
	if t.c.Kind == Latency {
		body = t.c.chain[0]
	}
	if t.kind == "t" && t.c.Kind == Latency {
		body = t.c.chain[1]
	} else if t.kind == "t" {
		body = t.c.tare
	}
	t.c.fill(t.n * t.threads)
	if t.c.Roaming {
		runtime.UnlockOSThread()
		defer runtime.LockOSThread()
		clock, key = processClock, "time.cpu.process"
	}
	var here, done atomic.Int32
	meeting := barrier{size: uint64(t.threads)}
	lanes, others := make([]lane, t.threads), int32(t.threads-1)
	for i := range lanes {
		lanes[i].b = B{t.n, i}
	}
	for i := range lanes[1:] {
		go func() {
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			before := waitedSoFar()
			here.Add(1)
			meeting.stand()
			lanes[i+1].run(body, clock)
			lanes[i+1].waited = since(before)
			done.Add(1)
		}()
	}
	await(&here, others)
	runtime.ReadMemStats(&before)
	if t.threads > 1 {
		waited := waitedSoFar()
		meeting.open()
		lanes[0].run(body, clock)
		lanes[0].waited = since(waited)
	} else {
		lanes[0].run(body, clock)
	}
	await(&done, others)
	runtime.ReadMemStats(&after)
	start, end, cpu, threads := lanes[0].start, lanes[0].end, time.Duration(0), make([]reply, t.threads)
	for i, l := range lanes {
		if l.panicked != nil {
			panic(l.panicked)
		}
		start, end, cpu = min(start, l.start), max(end, l.end), cpu+l.cpu
		threads[i] = reply{"iterations": t.n, "time.wall": l.end - l.start, "time.cpu": l.cpu}
		if l.waited >= 0 {
			threads[i]["waited"] = l.waited
		}
	}
	if t.threads > 1 {
		r["threads"] = threads
	} else if !t.c.Roaming {
		r["thread"] = syscall.Gettid()
	}
	r["id"], r["kind"], r["iterations"], r["time.wall"], r[key] = t.c.ID, t.kind, t.n*t.threads, end-start, cpu
	r["alloc.bytes"], r["alloc.count"] = after.TotalAlloc-before.TotalAlloc, after.Mallocs-before.Mallocs
	r["gc.count"], r["go.gc.pause"] = after.NumGC-before.NumGC, after.PauseTotalNs-before.PauseTotalNs
}

var before, after runtime.MemStats

// lane is one thread's part of a batch.
type lane struct {
	b               B
	start, end, cpu time.Duration
	waited          int64 // in ns, or -1 if the kernel does not tell
	panicked        any
}

var epoch = time.Now()

func (l *lane) run(body func(*B), clock uintptr) {
	defer func() { l.panicked = recover() }()
	l.cpu = -cpuTime(clock)
	l.start = time.Since(epoch)
	body(&l.b)
	l.end = time.Since(epoch)
	l.cpu += cpuTime(clock)
}

// await spins until n threads have arrived, and yields to other goroutines if that takes long.
func await(counter *atomic.Int32, n int32) {
	for spins := 1; counter.Load() < n; spins++ {
		if spins%(1<<18) == 0 {
			runtime.Gosched()
		}
	}
}

const processClock, threadClock uintptr = 2, 3

func cpuTime(clock uintptr) time.Duration {
	var t syscall.Timespec
	syscall.RawSyscall(syscall.SYS_CLOCK_GETTIME, clock, uintptr(unsafe.Pointer(&t)), 0)
	return time.Duration(t.Nano())
}
