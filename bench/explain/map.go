package main

import (
	"fmt"
	"os"
	"strconv"
)

type pair struct{ key, value int }

func fill(m map[int]int, n int) {
	for i := 0; i < n; i++ {
		m[(i*7919)%100003] += i
	}
}

func sum(m map[int]int) (s int) {
	for i := 0; i < 100003; i++ {
		s += m[i]
	}
	return
}

func main() {
	m := map[int]int{}
	rounds, _ := strconv.Atoi(os.Args[1])
	for r := 0; r < rounds; r++ {
		fill(m, 400000)
	}
	var list []*pair
	for i := 0; i < 300000; i++ {
		list = append(list, &pair{i, i * 2})
	}
	fmt.Println(sum(m), len(list))
}
