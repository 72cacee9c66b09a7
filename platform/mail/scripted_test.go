package mail_test

import (
	"bufio"
	"fmt"
	"net"
	"strings"
	"sync"
	"testing"
)

// What a script does besides answering.
const (
	silence = ""
	hangUp  = "hang up"
)

// scripted is a mail server that does what a test says.
type scripted struct {
	address string
	// heard gets each command that arrives, by its first word; the end of a
	// message is ".".
	heard chan string
	ended chan struct{} // gets one thing for each connection that ends
}

// script starts a server. The answer to a command ("" for the greeting) may be
// more than one line; the connections are counted from 1.
func script(t testing.TB, answer func(connection int, command string) string) *scripted {
	t.Helper()
	listener := must(net.Listen("tcp", "127.0.0.1:0"))
	s := &scripted{address: listener.Addr().String(), heard: make(chan string, 1000), ended: make(chan struct{}, 100)}
	var all sync.WaitGroup
	all.Go(func() {
		for n := 1; ; n++ {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			all.Go(func() { s.serve(conn, func(command string) string { return answer(n, command) }) })
		}
	})
	t.Cleanup(func() {
		_ = listener.Close()
		all.Wait() // for the sender to be closed, which was opened later
	})
	return s
}

func (s *scripted) url() string { return "smtp://" + s.address }

func (s *scripted) serve(conn net.Conn, answer func(string) string) {
	defer func() {
		_ = conn.Close()
		s.ended <- struct{}{}
	}()
	lines := bufio.NewScanner(conn)
	content := false
	for say := answer(""); ; {
		if say == hangUp {
			return
		}
		if say != silence {
			fmt.Fprintf(conn, "%s\r\n", say)
		}
		content = strings.HasPrefix(say, "354")
		var command string
		for command = ""; command == "" || content && command != "."; {
			if !lines.Scan() {
				return
			}
			command, _, _ = strings.Cut(lines.Text(), " ")
		}
		s.heard <- command
		say = answer(command)
	}
}

// usual is what a server says that takes everything.
func usual(command string) string {
	switch command {
	case "":
		return "220 ready"
	case "EHLO":
		return "250-here\r\n250 8BITMIME"
	case "DATA":
		return "354 go on"
	}
	return "250 2.0.0 well"
}

// commands are those that were heard until now.
func (s *scripted) commands() (all []string) {
	for {
		select {
		case command := <-s.heard:
			all = append(all, command)
		default:
			return all
		}
	}
}
