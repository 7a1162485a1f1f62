// The example cases that every SDK declares for sdk/conformance.
package main

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"time"

	"scruple"
)

type input struct{ used bool }

func main() {
	if len(os.Args) == 2 && os.Args[1] == "many" {
		for i := 0; i < 10000; i++ {
			scruple.Call(fmt.Sprintf("many/%05d", i), uint32(i), identity).With(
				scruple.Options{Params: map[string]any{"index": i}})
		}
		scruple.Main()
	}
	scruple.Call("identity", uint32(7), identity)
	scruple.Call("linear", uint32(7), linear)
	const size = 4096
	scruple.Call("alloc/known", size, func(n int) []byte { return make([]byte, n) }).With(
		scruple.Options{Params: map[string]any{"bytes": size}})
	scruple.Call("throws", 1, func(int) int { panic("a deliberate panic") })
	scruple.Call("skips", 1, func(n int) int { scruple.Skip("no such device"); return n })
	scruple.Call("hangs/idle", 1, func(int) int { time.Sleep(time.Hour); return 0 })
	scruple.Call("hangs/busy", 1, func(n int) int {
		for n > 0 {
		}
		return 0
	})
	scruple.Call("threads/two", uint32(7), linear).With(scruple.Options{Threads: []int{1, 2}})
	scruple.Each("input/per-iteration", func() *input { return new(input) }, func(i *input) bool {
		if i.used {
			panic("the input was used already")
		}
		i.used = true
		return true
	}).With(scruple.Options{MaxIterations: 100})
	setups := 0
	scruple.CallWith("setup/counted", func() int { setups++; return setups }, func(n int) int { return n }).With(
		scruple.Options{Check: passes, Digest: func(got any) string { return strconv.Itoa(got.(int)) }})
	scruple.Call("setup/throws", 1, func(n int) int { return n }).With(
		scruple.Options{Setup: func() { panic(errors.New("a deliberate failure of setup")) }})
	scruple.Call("check/passes", uint32(7), identity).With(
		scruple.Options{Check: passes, Digest: func(any) string { return "cafe" }})
	scruple.Call("check/fails", uint32(7), identity).With(
		scruple.Options{Check: func(any) error { return errors.New("deliberate") }})
	scruple.Case("prints", func(b *scruple.B) {
		for i := 0; i < b.N; i++ {
			fmt.Println("printed by a case")
		}
	})
	for _, n := range []int{0, 1, 2, 3, 10, 100} {
		scruple.Call("growth", n, func(n int) int {
			h := 0
			for i := 0; i < n; i++ {
				h = (h ^ i) * 16777619
			}
			return h
		}).With(scruple.Options{Params: map[string]any{"n": n}})
	}
	scruple.Call("budgets", uint32(7), identity).With(scruple.Options{Budgets: map[string]scruple.Limit{
		"time.wall": {"max": 1000000}, "alloc.bytes": {"max": "+5%", "against": "baseline"}}})
	scruple.Call("fields", uint32(7), identity).With(scruple.Options{Group: "another group", Bytes: 4096,
		Tags: []string{"slow", "two words"}, Fresh: true, TimeLimit: 5 * time.Second})
	for _, name := range []string{`names/"quoted" and \backslash`, "names/tab\ttab", "names/grün λ 東京 🐎", "names/a//b/c"} {
		scruple.Call(name, uint32(7), identity)
	}
	scruple.Main()
}

func passes(any) error { return nil }

func identity(x uint32) uint32 { return x }

func linear(h uint32) uint32 {
	for i := uint32(0); i < 1000; i++ {
		h = (h ^ i) * 16777619
	}
	return h
}
