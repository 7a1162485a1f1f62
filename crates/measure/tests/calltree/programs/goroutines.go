// Goroutines that allocate at the same time, so that timing decides what is alive when a collection begins.
package main

import "fmt"

type node struct{ left, right *node }

func tree(depth int) *node {
	if depth == 0 {
		return &node{}
	}
	return &node{tree(depth - 1), tree(depth - 1)}
}

func (tree *node) size() int {
	if tree == nil {
		return 0
	}
	return 1 + tree.left.size() + tree.right.size()
}

func main() {
	sizes := make(chan int)
	for worker := 0; worker < 4; worker++ {
		go func() {
			all := 0
			for round := 0; round < 10; round++ {
				all += tree(12).size()
			}
			sizes <- all
		}()
	}
	fmt.Println(<-sizes + <-sizes + <-sizes + <-sizes)
}
