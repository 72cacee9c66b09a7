//go:build linux

package main

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// offset is a file of the package time that reads how far its clock is moved.
const offset = `package time

import "syscall"

var clockOffset = readClockOffset()

// readClockOffset reads a number with a sign.
func readClockOffset() (seconds int64) {
	text, _ := syscall.Getenv("` + variable + `")
	for i := 1; i < len(text); i++ {
		seconds = 10*seconds + int64(text[i]-'0')
	}
	if text != "" && text[0] == '-' {
		return -seconds
	}
	return seconds
}
`

// library is the source of what moves the clock of PostgreSQL's programs.
//
//go:embed clock/clock.c
var library []byte

// movedClock writes into a folder an overlay.json that moves Go's clock, and a clock.so
// that moves that of others. The one of a bubble of testing/synctest stays.
func movedClock(dir string) error {
	if err := goClock(dir); err != nil {
		return fmt.Errorf("move Go's clock: %w", err)
	}
	cc := exec.Command("cc", "-O1", "-Wall", "-shared", "-fPIC", "-o", filepath.Join(dir, "clock.so"), "-x", "c", "-")
	cc.Stdin, cc.Stderr = bytes.NewReader(library), os.Stderr
	if err := cc.Run(); err != nil {
		return fmt.Errorf("make a library that moves PostgreSQL's clock, with the C compiler cc: %w", err)
	}
	return nil
}

func goClock(dir string) error {
	root, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		return fmt.Errorf("find Go: %w", err)
	}
	folder := filepath.Join(strings.TrimSpace(string(root)), "src", "time")
	source, err := os.ReadFile(filepath.Join(folder, "time.go"))
	if err != nil {
		return err
	}
	const begin = "\n\tsec, nsec, mono := runtimeNow()\n"
	if strings.Count(string(source), begin) != 1 {
		return errors.New("this Go's time.Now reads the clock in another way than its clock can be moved")
	}
	moved := strings.Replace(string(source), begin, begin+"\tif !runtimeIsBubbled() {\n\t\tsec += clockOffset\n\t}\n", 1)

	replaced := map[string]string{}
	for name, text := range map[string]string{"time.go": moved, "offset.go": offset} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			return err
		}
		replaced[filepath.Join(folder, name)] = filepath.Join(dir, name)
	}
	overlay, err := json.Marshal(map[string]any{"Replace": replaced})
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, "overlay.json"), overlay, 0o644)
}
