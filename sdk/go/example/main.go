// The FNV-1a suite: steps that cost about as much as the tare, and loops of a microsecond and a millisecond.
package main

import (
	"fmt"

	"scruple"
)

func step(h, octet uint32) uint32 { return (h ^ octet) * 16777619 }

func fnv(octets int) func(uint32) uint32 {
	return func(x uint32) uint32 {
		h := uint32(2166136261)
		for i := 0; i < octets; i++ {
			h = step(h, x>>(8*(i&3))&255)
		}
		return h
	}
}

func identity(x uint32) uint32 { return x }

func one(x uint32) uint32 { return step(2166136261, x&255) }

func four(x uint32) uint32 {
	return step(step(step(step(2166136261, x&255), x>>8&255), x>>16&255), x>>24)
}

func eight(x uint32) uint32 {
	h := four(x)
	return step(step(step(step(h, x&255), x>>8&255), x>>16&255), x>>24)
}

func main() {
	const x = uint32(0xdeadbeef)
	scruple.Call("fnv/identity", x, identity)
	scruple.Call("fnv/1 step", x, one).With(scruple.Options{Bytes: 1})
	scruple.Call("fnv/4 steps", x, four).With(scruple.Options{Bytes: 4, Check: func(got any) error {
		if got != uint32(0x90879fcb) {
			return fmt.Errorf("the hash is %#x", got)
		}
		return nil
	}})
	scruple.Call("fnv/8 steps", x, eight).With(scruple.Options{Bytes: 8, Threads: []int{1, 2}})
	scruple.Call("fnv/us", x, fnv(1000)).With(scruple.Options{Bytes: 1000})
	scruple.Call("fnv/ms", x, fnv(1000000)).With(scruple.Options{Bytes: 1000000, Tags: []string{"slow"}})

	numbers := func() []int { return []int{5, 2, 9, 1, 7, 3, 8, 4, 6} }
	scruple.Each("sort/nine numbers", numbers, insertionSort).With(scruple.Options{
		Items: 9, Budgets: map[string]scruple.Limit{"alloc.bytes": {"max": 0}}})
	scruple.Case("sum/by hand", func(b *scruple.B) {
		total := 0
		for i := 0; i < b.N; i++ {
			total += i
		}
		scruple.Keep(total)
	})
	scruple.Main()
}

func insertionSort(list []int) int {
	for i := range list {
		for j := i; j > 0 && list[j] < list[j-1]; j-- {
			list[j], list[j-1] = list[j-1], list[j]
		}
	}
	return list[0]
}
