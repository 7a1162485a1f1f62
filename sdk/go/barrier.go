//go:build linux

package scruple

import (
	"runtime"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"
)

// barrier opens when all threads of a batch have a core at the same time, so that none starts late.
type barrier struct {
	size  uint64
	call  atomic.Uint64           // the number of a call, and in its last bits how many have answered it; or opened
	cores [64 * words]atomic.Bool // whether a thread of the batch is on that core
}

const (
	words    = 16
	answers  = 16 // the number of bits that count answers
	opened   = ^uint64(0)
	spell    = 100 * time.Microsecond // how long a thread spins before it naps, to be let run when it is awake
	nap      = 50 * time.Microsecond
	prompt   = 2 * time.Microsecond // threads that answer within this time have a core
	patience = 5 * time.Millisecond // after which the barrier opens in any case
)

// open waits until all other threads answer a call promptly, and opens the barrier.
func (b *barrier) open() {
	w := b.wait()
	for number := uint64(1); !b.answered(number) && w.since < w.began+patience; number++ {
		w.napIfDue()
	}
	b.call.Store(opened)
}

func (b *barrier) answered(number uint64) bool {
	b.call.Store(number << answers)
	asked := time.Since(epoch)
	for {
		all := b.call.Load() == number<<answers|(b.size-1)
		// The clock is read after the answers: this thread may have lost its core in between.
		late := time.Since(epoch)-asked >= prompt
		if all || late {
			return all && !late
		}
	}
}

// stand answers calls until the barrier is open.
func (b *barrier) stand() {
	w, last := b.wait(), uint64(0)
	for {
		call := b.call.Load()
		if call == opened {
			return
		}
		if call>>answers == last {
			w.napIfDue()
		} else if b.call.CompareAndSwap(call, call+1) {
			last = call >> answers
		}
	}
}

type waiting struct {
	b            *barrier
	core         int
	began, since time.Duration
}

func (b *barrier) wait() *waiting {
	now := time.Since(epoch)
	return &waiting{b, b.own(-1), now, now}
}

func (w *waiting) napIfDue() {
	if time.Since(epoch)-w.since < spell {
		return
	}
	syscall.Nanosleep(&syscall.Timespec{Nsec: int64(nap)}, nil)
	w.core = w.b.own(w.core)
	w.since = time.Since(epoch)
}

// own makes this thread leave its core if another thread of the batch is there: the kernel chooses one of the others. It
// returns the core that is now this thread's, or -1. The argument is the result of the previous call.
func (b *barrier) own(mine int) int {
	var core uint32
	if getcpu, known := getcpu[runtime.GOARCH]; known {
		syscall.RawSyscall(getcpu, uintptr(unsafe.Pointer(&core)), 0, 0)
	} else {
		return -1
	}
	if int(core) == mine || core >= 64*words {
		return mine
	}
	if mine >= 0 {
		b.cores[mine].Store(false)
	}
	if b.cores[core].CompareAndSwap(false, true) {
		return int(core)
	}
	var all, other [words]uint64
	if !affinity(syscall.SYS_SCHED_GETAFFINITY, &all) {
		return -1
	}
	left := uint64(0)
	for i := range b.cores {
		if !b.cores[i].Load() {
			other[i/64] |= all[i/64] & (1 << (i % 64))
		}
		left |= other[i/64]
	}
	if left != 0 && affinity(syscall.SYS_SCHED_SETAFFINITY, &other) {
		affinity(syscall.SYS_SCHED_SETAFFINITY, &all)
	}
	return -1
}

// The number of the system call, which the package syscall does not name.
var getcpu = map[string]uintptr{"amd64": 309, "arm64": 168, "riscv64": 168}

func affinity(call uintptr, mask *[words]uint64) bool {
	_, _, fault := syscall.RawSyscall(call, 0, unsafe.Sizeof(*mask), uintptr(unsafe.Pointer(mask)))
	return fault == 0
}

// waitedSoFar is how long this thread was ready but waited for a core so far, in ns; -1 if the kernel does not tell. It
// allocates nothing, since allocations of the batch are counted meanwhile.
func waitedSoFar() int64 {
	const here = ^uintptr(99) // AT_FDCWD, which an absolute path makes meaningless
	file, _, fault := syscall.RawSyscall6(syscall.SYS_OPENAT, here, uintptr(unsafe.Pointer(&schedstat[0])), syscall.O_RDONLY|syscall.O_CLOEXEC, 0, 0, 0)
	if fault != 0 {
		return -1
	}
	var text [64]byte
	length, _, fault := syscall.RawSyscall(syscall.SYS_READ, file, uintptr(unsafe.Pointer(&text)), unsafe.Sizeof(text))
	syscall.RawSyscall(syscall.SYS_CLOSE, file, 0, 0)
	if fault != 0 || length > unsafe.Sizeof(text) {
		return -1
	}
	// The second of three numbers.
	field, number := 0, int64(-1)
	for _, c := range text[:length] {
		if c == ' ' {
			field++
		} else if field == 1 && c >= '0' && c <= '9' {
			number = 10*max(number, 0) + int64(c-'0')
		}
	}
	return number
}

var schedstat = append([]byte("/proc/thread-self/schedstat"), 0)

// since is what has been added to an earlier result of waitedSoFar.
func since(before int64) int64 {
	if now := waitedSoFar(); before >= 0 && now >= before {
		return now - before
	}
	return -1
}
