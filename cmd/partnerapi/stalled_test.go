//go:build slow

package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"
)

// A connection stalls in the body or in the headers of a request, or is left alone after
// a whole one.
const inBody, inHeaders, whole = "in the body", "in the headers", "after a request"

// ways are what a connection sends, with a key, and how long the server waits then.
var ways = map[string]struct {
	sends string
	wait  time.Duration
}{
	inBody:    {"POST /v2/clients HTTP/1.1\r\nHost: x\r\nX-API-Key: %s\r\nContent-Length: 20\r\n\r\n{", short.request},
	inHeaders: {"GET /v2/clients?limit=1 HTTP/1.1\r\nHost: x\r\nX-API-Key: %s\r\n", short.headers},
	whole:     {"GET /v2/clients?limit=1 HTTP/1.1\r\nHost: x\r\nX-API-Key: %s\r\n\r\n", short.idle},
}

// connections are how many are open at once.
const connections = 2000

// TestStalledConnections holds connections of which half stall: each ends as documented,
// not before its time, and others are answered meanwhile.
func TestStalledConnections(t *testing.T) {
	t.Setenv(shortWaits, "yes") // so that no other test of the package runs beside this one
	x := newTarget(t, 40)
	next := make(chan int)
	var opening, ending sync.WaitGroup
	for range 16 { // at a time: as many requests as a key may have in progress
		opening.Go(func() {
			for n := range next {
				c := &slowConnection{key: x.keys[n%2][n/2%len(x.keys[0])], way: []string{inBody, whole, inHeaders, whole}[n/2%4]}
				if err := c.open(x.address); err != nil {
					t.Errorf("connection %d: %v", n, err)
					continue
				}
				ending.Go(func() {
					if err := c.end(); err != nil {
						t.Errorf("connection %d: %v", n, err)
					}
				})
			}
		})
	}

	for n := range connections {
		next <- n
		if n%200 == 0 {
			x.get()
		}
	}
	close(next)
	opening.Wait()
	for range 100 {
		x.get()
	}
	ending.Wait()
	x.get()
	x.finish()
}

// slowConnection is one that stalls, or is left alone after a request.
type slowConnection struct {
	net.Conn
	key, way string
	begun    time.Time
}

// open connects, sends what the connection's way has, and wants a whole request answered.
func (c *slowConnection) open(address string) (err error) {
	c.begun = time.Now()
	if c.Conn, err = net.Dial("tcp", strings.TrimPrefix(address, "http://")); err != nil {
		return err
	}
	if err := c.SetReadDeadline(time.Now().Add(2 * patience)); err != nil {
		return err
	}

	if _, err = fmt.Fprintf(c, ways[c.way].sends, c.key); err == nil && c.way == whole {
		err = c.answered(http.StatusOK)
	}
	return err
}

// answered wants one answer, and nothing behind it that has arrived.
func (c *slowConnection) answered(status int) error {
	r := bufio.NewReaderSize(c, 1024)
	answer, err := http.ReadResponse(r, nil)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err == nil && (answer.StatusCode != status || r.Buffered() > 0) {
		err = fmt.Errorf("%s %s, and %d bytes", answer.Status, text, r.Buffered())
	}
	return err
}

// end waits for the end of the connection, which is that of its way and not before its
// time.
func (c *slowConnection) end() error {
	defer c.Close()
	if c.way == inBody {
		if err := c.answered(http.StatusRequestTimeout); err != nil {
			return err
		}
	}
	var more [1]byte
	if n, err := c.Read(more[:]); n > 0 || !errors.Is(err, io.EOF) {
		return fmt.Errorf("%d bytes and %w in place of the end", n, err)
	}
	if after := time.Since(c.begun); after < ways[c.way].wait {
		return fmt.Errorf("%s, ended after %v, before %v had passed", c.way, after, ways[c.way].wait)
	}
	return nil
}
