//go:build linux

package scruple

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
)

// connect opens the two pipes. Programs that a case starts do not inherit them.
func connect() (in, out *os.File) {
	from, to := os.Getenv("SCRUPLE_BENCH_IN"), os.Getenv("SCRUPLE_BENCH_OUT")
	if from == "" && to == "" {
		byHand()
	}
	if from == "" || to == "" {
		leave("only one of SCRUPLE_BENCH_IN and SCRUPLE_BENCH_OUT is set")
	}
	in, err := os.Open(from)
	if err == nil {
		out, err = os.OpenFile(to, os.O_WRONLY, 0)
	}
	if err != nil {
		leave(err.Error())
	}
	os.Unsetenv("SCRUPLE_BENCH_IN")
	os.Unsetenv("SCRUPLE_BENCH_OUT")
	return in, out
}

// byHand replaces a program that was started without a host by scruple, which starts it again.
func byHand() {
	self, _ := os.Executable()
	if path, err := exec.LookPath("scruple"); err == nil && os.Getenv("SCRUPLE_BENCH_HAND") == "" {
		os.Setenv("SCRUPLE_BENCH_HAND", "1")
		syscall.Exec(path, append([]string{"scruple", "bench", "--", self}, os.Args[1:]...), os.Environ())
	}
	leave("this is a bench program; run it with: scruple bench -- " + strings.Join(os.Args, " "))
}

func refuseDuplicates() {
	seen := make(map[string]bool, len(cases))
	for _, c := range cases {
		key := fmt.Sprintf("%q %#v", c.Name, c.Params)
		if seen[key] {
			leave(fmt.Sprintf("two cases are called %q with the same params", c.Name))
		}
		seen[key] = true
	}
}

func leave(why string) {
	fmt.Fprintf(os.Stderr, "%s: %s\n", filepath.Base(os.Args[0]), why)
	os.Exit(2)
}
