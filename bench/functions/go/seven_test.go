// The seven functions under the package testing.
package seven

import "testing"

var result uint32

func step(h, octet uint32) uint32 { return (h ^ octet) * 16777619 }

func four(h uint32) uint32 { return step(step(step(step(h, 1), 2), 3), 4) }

func steps(n uint32) func(uint32) uint32 {
	return func(h uint32) uint32 {
		for i := uint32(0); i < n; i++ {
			h = step(h, i&255)
		}
		return h
	}
}

func BenchmarkSeven(b *testing.B) {
	cases := []struct {
		name string
		body func(uint32) uint32
	}{
		{"loop", func(uint32) uint32 { return 7 }},
		{"id", func(h uint32) uint32 { return h }},
		{"fnv1", func(h uint32) uint32 { return step(h, 1) }},
		{"fnv4", four},
		{"fnv8", func(h uint32) uint32 { return four(four(h)) }},
		{"us", steps(1000)},
		{"ms", steps(1000000)},
	}
	for _, c := range cases {
		b.Run(c.name, func(b *testing.B) {
			for i := 0; i < b.N; i++ {
				result = c.body(2166136261)
			}
		})
	}
}
