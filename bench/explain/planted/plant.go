// Hashes words in Go. planted.py replaces the text between @.
package main

import (
	"os"
	"strconv"
)

var sink []byte

@INLINE@
func @HASH@(word string) uint32 {
	hash := uint32(0)
	for round := 0; round < @ROUNDS@; round++ {
		for i := 0; i < len(word); i++ {
			hash = hash*31 + uint32(word[i])
		}
	}
	return hash
}

//go:noinline
func parse(word string) uint32 {
	@EXTRA@
	all := uint32(0)
	for time := 0; time < @TIMES@; time++ {
		all ^= @HASH@(word)
	}
	return all
}

func main() {
	count := 20000
	if len(os.Args) > 1 {
		count, _ = strconv.Atoi(os.Args[1])
	}
	all := uint32(0)
	for i := 0; i < count; i++ {
		all ^= parse("hello world")
	}
	if all == 1 {
		os.Exit(1)
	}
}
