//go:build linux

package scruple

import "math"

// If argument and result are numbers of one type, each iteration waits for the result of the previous one: the latency
// of the body is timed. The argument is computed from the input, the result, and a mask that is zero, unknown to the
// compiler. Multiplications in this chain take longer than the loop and the call, which run in parallel to it. The
// time of an iteration is thus that of the chain, and case and tare differ only by the body.

type integer interface {
	int | int8 | int16 | int32 | int64 | uint | uint8 | uint16 | uint32 | uint64 | uintptr
}

// zero is not a constant, so that the compiler does not know it.
var zero uint8

// chained makes a function's loops for latency; nil if argument and result are not numbers of one type.
func chained(f, arg any) (body, tare func(n int)) {
	switch f := f.(type) {
	case func(int) int:
		return integers(f, arg.(*int))
	case func(int8) int8:
		return integers(f, arg.(*int8))
	case func(int16) int16:
		return integers(f, arg.(*int16))
	case func(int32) int32:
		return integers(f, arg.(*int32))
	case func(int64) int64:
		return integers(f, arg.(*int64))
	case func(uint) uint:
		return integers(f, arg.(*uint))
	case func(uint8) uint8:
		return integers(f, arg.(*uint8))
	case func(uint16) uint16:
		return integers(f, arg.(*uint16))
	case func(uint32) uint32:
		return integers(f, arg.(*uint32))
	case func(uint64) uint64:
		return integers(f, arg.(*uint64))
	case func(uintptr) uintptr:
		return integers(f, arg.(*uintptr))
	case func(float64) float64:
		run := func(g func(float64) float64) func(int) {
			return func(n int) { Keep(chainDouble(n, *arg.(*float64), uint64(zero), g)) }
		}
		return run(f), run(func(x float64) float64 { return x })
	case func(float32) float32:
		run := func(g func(float32) float32) func(int) {
			return func(n int) { Keep(chainSingle(n, *arg.(*float32), uint32(zero), g)) }
		}
		return run(f), run(func(x float32) float32 { return x })
	}
	return nil, nil
}

func integers[T integer](f func(T) T, arg *T) (body, tare func(n int)) {
	run := func(g func(T) T) func(int) { return func(n int) { Keep(chainInteger(n, *arg, T(zero), g)) } }
	return run(f), run(func(x T) T { return x })
}

//go:noinline
func chainInteger[T integer](n int, arg, mask T, f func(T) T) (result T) {
	for i := 0; i < n; i++ {
		late := result*3 + 1
		late *= late
		late *= late
		result = f(arg + late&mask)
	}
	return result
}

//go:noinline
func chainDouble(n int, arg float64, mask uint64, f func(float64) float64) (result float64) {
	for i := 0; i < n; i++ {
		late := math.Float64bits(result)*3 + 1
		late *= late
		late *= late
		result = f(arg + math.Float64frombits(late&mask))
	}
	return result
}

//go:noinline
func chainSingle(n int, arg float32, mask uint32, f func(float32) float32) (result float32) {
	for i := 0; i < n; i++ {
		late := math.Float32bits(result)*3 + 1
		late *= late
		late *= late
		result = f(arg + math.Float32frombits(late&mask))
	}
	return result
}
