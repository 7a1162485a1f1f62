// A case for every type of number, with the identity as its body; for disassembly.py.
package main

import "scruple"

func same[T any](name string, arg T, f func(T) T) { scruple.Call(name, arg, f) }

func main() {
	same("int", 1, func(x int) int { return x })
	same("int8", 1, func(x int8) int8 { return x })
	same("int16", 1, func(x int16) int16 { return x })
	same("int32", 1, func(x int32) int32 { return x })
	same("int64", 1, func(x int64) int64 { return x })
	same("uint", 1, func(x uint) uint { return x })
	same("uint8", 1, func(x uint8) uint8 { return x })
	same("uint16", 1, func(x uint16) uint16 { return x })
	same("uint32", 1, func(x uint32) uint32 { return x })
	same("uint64", 1, func(x uint64) uint64 { return x })
	same("uintptr", 1, func(x uintptr) uintptr { return x })
	same("float32", 1, func(x float32) float32 { return x })
	same("float64", 1, func(x float64) float64 { return x })
	scruple.Main()
}
