//go:build linux

// Command dates runs go test on other dates, without a working DNS resolver and on a
// busy machine, because no test may depend on when and where it runs:
//
//	dates [-busy=false] DATE,DATE… go test PACKAGE…
//
// A date is in UTC, such as 2027-12-31T23:59. A build overlay of the package time moves
// Go's clock, and a preloaded library moves PostgreSQL's clock by the same amount. The
// tests run in their own namespaces, with only a loopback device and a resolver that
// never responds.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"
)

const (
	// variable tells processes how far the clock is moved, in whole seconds.
	variable = "GO_CLOCK_OFFSET"
	// preload is the library that moves the clock of tests' programs.
	preload = "GO_CLOCK_LIBRARY"
)

// The words that this program begins itself again with: inside its namespaces, and as
// what go test runs a test's binary by.
const (
	inside = "inside"
	at     = "at"
)

func main() {
	var err error
	switch word := append(os.Args, "")[1]; word {
	case at:
		err = testAt(os.Args[2], os.Args[3:])
	case inside:
		err = runInside(os.Args[2:])
	default:
		err = isolated(os.Args[1:])
	}
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		os.Exit(1) // it has said why
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "dates:", err)
		os.Exit(1)
	}
}

// isolated begins the program again in namespaces of networks and mounts.
func isolated(args []string) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	cmd := exec.Command(self, append([]string{inside}, args...)...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET | syscall.CLONE_NEWNS}
	if uid, gid := os.Getuid(), os.Getgid(); uid != 0 {
		const netBind, netAdmin, sysAdmin = 10, 12, 21 // capabilities, over these namespaces alone
		cmd.SysProcAttr.Cloneflags |= syscall.CLONE_NEWUSER
		cmd.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{ContainerID: uid, HostID: uid, Size: 1}}
		cmd.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{ContainerID: gid, HostID: gid, Size: 1}}
		cmd.SysProcAttr.AmbientCaps = []uintptr{netBind, netAdmin, sysAdmin}
	}
	return run(cmd)
}

// run runs a command to its end, with what this one has. An interrupt reaches both:
// the command ends by it, and so this one.
func run(cmd *exec.Cmd) error {
	signal.Ignore(os.Interrupt)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	return cmd.Run()
}

func runInside(args []string) error {
	flags := flag.NewFlagSet("dates", flag.ContinueOnError)
	busy := flags.Bool("busy", true, "keep every core busy meanwhile")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() < 3 {
		return errors.New("usage: dates [-busy=false] DATE,DATE… go test PACKAGE…")
	}
	dir, err := os.MkdirTemp("", "dates")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	if err := os.Chmod(dir, 0o755); err != nil { // root's PostgreSQL runs as another user
		return err
	}
	resolver, err := cutOff(dir)
	if err != nil {
		return fmt.Errorf("keep the tests from the network: %w", err)
	}
	defer resolver.Close()
	if err := movedClock(dir); err != nil {
		return err
	}
	if *busy {
		for range runtime.NumCPU() {
			go func() {
				for {
				}
			}()
		}
	}
	var failed []error
	for _, date := range strings.Split(flags.Arg(0), ",") {
		failed = append(failed, testsAt(dir, date, flags.Args()[1:]))
	}
	return errors.Join(failed...)
}

// testsAt runs the tests with a clock that begins at a date for every package.
func testsAt(dir, date string, args []string) error {
	if _, err := time.Parse(form, date); err != nil {
		return err
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	fmt.Println("==", date)
	// One package at a time, so that each has its own PostgreSQL.
	args = slices.Insert(slices.Clone(args), 2,
		"-p=1", "-count=1", "-vet=off", "-timeout=0", "-exec="+self+" "+at+" "+date)
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Env = append(os.Environ(), "GOFLAGS="+os.Getenv("GOFLAGS")+" -overlay="+filepath.Join(dir, "overlay.json"),
		"GOPROXY=off", "TMPDIR="+dir, "TEST_DATABASE_URL=", preload+"="+filepath.Join(dir, "clock.so"))
	if err := run(cmd); err != nil {
		return fmt.Errorf("at %s: %w", date, err)
	}
	return nil
}

const form = "2006-01-02T15:04"

// testAt becomes the binary of a test, at a date.
func testAt(date string, args []string) error {
	then, err := time.Parse(form, date)
	if err != nil {
		return err
	}
	offset := fmt.Sprintf("%+d", int64(time.Until(then).Seconds()))
	return syscall.Exec(args[0], args, append(os.Environ(), variable+"="+offset, "LD_PRELOAD="+os.Getenv(preload)))
}
