// Goroutines with known calls: they wait for each other, grow, panic, end early, and start others.
package main

import (
	"fmt"
	"iter"
	"runtime"
	"sync"
	"sync/atomic"
	"time"
)

//go:noinline
func score(n int) int { return n * 3 }

//go:noinline
func leaf(n int) int { return n + 1 }

//go:noinline
func after(n int) int { return n - 1 }

var jobs, results, done = make(chan int), make(chan int, 2), make(chan bool)

//go:noinline
func worker() {
	for job := range jobs {
		results <- score(job)
	}
	done <- true
}

//go:noinline
func collect() {
	for range 300 {
		after(<-results)
	}
	done <- true
}

//go:noinline
func pool() {
	for range 3 {
		go worker()
	}
	go collect()
	for job := range 300 {
		jobs <- job
	}
	close(jobs)
	for range 4 {
		<-done
	}
}

// The stack grows on the way down, and the calls of leaf are made on the way up.
//
//go:noinline
func descend(n int) int {
	var room [400]byte
	room[n%400] = byte(n)
	if n == 0 {
		return 0
	}
	return descend(n-1) + leaf(n) + int(room[(n+1)%400])
}

//go:noinline
func deep() { descend(200); done <- true }

//go:noinline
func grow() {
	for range 5 {
		go deep()
	}
	for range 5 {
		<-done
	}
}

//go:noinline
func fail(n int) int {
	if n > 0 {
		return fail(n - 1)
	}
	panic("as planned")
}

//go:noinline
func attempt(n int) {
	defer func() { recover() }()
	fail(n % 7)
}

//go:noinline
func attempts() {
	for n := range 50 {
		attempt(n)
		after(n)
	}
	done <- true
}

//go:noinline
func panics() {
	go attempts()
	<-done
}

//go:noinline
func leave(n int) {
	if n > 0 {
		leave(n - 1)
	}
	runtime.Goexit()
}

//go:noinline
func quits() {
	defer func() { done <- true }()
	leave(3)
}

//go:noinline
func ends() {
	for range 20 {
		go quits()
		<-done
	}
}

var lock sync.Mutex
var waiting sync.WaitGroup
var sum int

//go:noinline
func add(n int) {
	lock.Lock()
	runtime.Gosched()
	sum += leaf(n)
	lock.Unlock()
}

//go:noinline
func one() {
	add(1)
	waiting.Done()
}

//go:noinline
func many() {
	for range 1000 {
		waiting.Add(1)
		go one()
	}
	waiting.Wait()
}

//go:noinline
func sequence(yield func(int) bool) {
	for n := range 40 {
		if !yield(leaf(n)) {
			return
		}
	}
}

//go:noinline
func pulls() {
	next, stop := iter.Pull(sequence)
	for range 40 {
		n, _ := next()
		after(n)
	}
	stop()
}

//go:noinline
func timed() { done <- true }

//go:noinline
func waits() {
	time.AfterFunc(time.Millisecond, timed)
	<-done
}

var has_fired atomic.Bool

//go:noinline
func fired() { has_fired.Store(true) }

// It has a large frame, so that it looks whether another goroutine shall run.
//
//go:noinline
func turn(n int) byte {
	var room [4000]byte
	room[n%4000] = 1
	return room[(n+1)%4000]
}

// It never waits: the timer's function is started only when the runtime makes it give way.
//
//go:noinline
func spins() {
	time.AfterFunc(time.Millisecond, fired)
	for n := 0; !has_fired.Load(); n++ {
		turn(n)
	}
}

func main() {
	pool()
	grow()
	panics()
	ends()
	many()
	pulls()
	waits()
	spins()
	fmt.Println(sum)
}
