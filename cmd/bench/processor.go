package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"
)

// Requests a second depend on what else the machine does; the processor time
// that a request takes hardly does. It is shown beside them where the system
// tells, as Linux does in hundredths of a second.

// processor is the processor time that a process took so far.
func processor(pid int) time.Duration {
	_, took := statOf("/proc/" + strconv.Itoa(pid) + "/stat")
	return took
}

// childProcessors is that of a process's living children together.
func childProcessors(pid int) (sum time.Duration) {
	files, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, file := range files {
		if parent, took := statOf(file); parent == pid {
			sum += took
		}
	}
	return sum
}

// spent tells the processor time that each of so many things took, of a child
// since its start, and of the database since it had taken so much.
func (b *bench) spent(what string, c *child, database time.Duration, n int) {
	took, each := childProcessors(b.data.server)-database, time.Duration(max(n, 1))
	fmt.Fprintf(b.progress, "  processor time per %s: child %s and database %s\n", what,
		processor(c.command.Process.Pid)/each, took/each)
}

// statOf reads the parent and the processor time out of a process's stat; a
// process that has ended has neither.
func statOf(file string) (parent int, took time.Duration) {
	stat, _ := os.ReadFile(file)
	_, rest, _ := bytes.Cut(stat, []byte(") ")) // behind the name, which may hold anything
	fields := bytes.Fields(rest)
	if len(fields) < 13 {
		return 0, 0
	}
	parent, _ = strconv.Atoi(string(fields[1]))
	user, _ := strconv.Atoi(string(fields[11]))
	system, _ := strconv.Atoi(string(fields[12]))
	return parent, time.Duration(user+system) * 10 * time.Millisecond
}
