// Keeps blocks of 100 bytes so that memory grows in a known shape: SHAPE N.
package main

import (
	"fmt"
	"math"
	"os"
	"strconv"
)

type node struct {
	next *node
	text [88]byte
}

var kept, latest *node
var large [][]byte
var cache [20000]*node

func main() {
	shape := os.Args[1]
	n, _ := strconv.Atoi(os.Args[2])
	if shape == "base" {
		for i := 0; i < 500000; i++ {
			kept = &node{next: kept}
		}
	}
	for i := 1; i <= n; i++ {
		block := &node{}
		latest = block
		root := int(math.Sqrt(float64(i)))
		switch {
		case shape == "leak" || shape == "base" || shape == "fifty" && i%50 == 0 || shape == "root" && root*root == i:
			block.next, kept = kept, block
		case shape == "cache":
			cache[i%len(cache)] = block
		case shape == "log" && i&(i-1) == 0:
			large = append(large, make([]byte, 65536))
		}
	}
	fmt.Println(kept != nil, len(large), latest != nil)
}
