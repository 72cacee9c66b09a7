package main

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// workers is how many requests are under way at a time where throughput is
// measured.
const workers = 8

// connection is a keep-alive connection to a server. It is as thin as can be,
// for it shares the processors with what it measures.
type connection struct {
	net.Conn
	r *bufio.Reader
}

func dial(address string) (*connection, error) {
	c, err := net.Dial("tcp", address)
	if err != nil {
		return nil, err
	}
	return &connection{c, bufio.NewReaderSize(c, 64<<10)}, nil
}

// request is the text of a request.
func request(path, key string) []byte {
	return fmt.Appendf(nil, "GET %s HTTP/1.1\r\nHost: bench\r\nX-API-Key: %s\r\n\r\n", path, key)
}

// post is the text of a POST with a body of JSON.
func post(path, key string, body []byte) []byte { return withBody("POST", path, key, body) }

// withBody is the text of a request with a body of JSON.
func withBody(method, path, key string, body []byte) []byte {
	return fmt.Appendf(nil, "%s %s HTTP/1.1\r\nHost: bench\r\nX-API-Key: %s\r\nContent-Type: application/json\r\n"+
		"Content-Length: %d\r\n\r\n%s", method, path, key, len(body), body)
}

// send sends a request and copies the response's body; any status but those of
// success is an error.
func (c *connection) send(request []byte, body io.Writer) error {
	if _, err := c.Write(request); err != nil {
		return err
	}
	response, err := http.ReadResponse(c.r, nil)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode/100 != 2 {
		text, _ := io.ReadAll(response.Body)
		return fmt.Errorf("%s answered %s: %s", bytes.SplitN(request, []byte(" HTTP"), 2)[0], response.Status, text)
	}
	_, err = io.Copy(body, response.Body)
	return err
}

// timed is how long a request takes.
func (c *connection) timed(request []byte) (time.Duration, error) {
	begin := time.Now()
	err := c.send(request, io.Discard)
	return time.Since(begin), err
}

// load is a number of connections that send the same requests, round robin.
type load struct {
	server, database int // their processes
	connections      []*connection
	requests         [][]byte
	next             atomic.Int64
	// The processor time that the runs took, of the server and the database.
	serverTime, databaseTime time.Duration
}

func newLoad(server *child, database int, requests [][]byte) (*load, error) {
	l := &load{server: server.command.Process.Pid, database: database, requests: requests}
	for range workers {
		c, err := dial(server.said)
		if err != nil {
			return nil, err
		}
		l.connections = append(l.connections, c)
	}
	return l, nil
}

func (l *load) close() {
	for _, c := range l.connections {
		_ = c.Close()
	}
}

// perRequest is the processor time that a request took.
func (l *load) perRequest() (server, database time.Duration) {
	n := time.Duration(max(l.next.Load(), 1))
	return l.serverTime / n, l.databaseTime / n
}

// run sends requests for a while and returns how many were answered a second.
func (l *load) run(ctx context.Context, long time.Duration) (float64, error) {
	var group sync.WaitGroup
	var answered atomic.Int64
	var failed atomic.Pointer[error]
	l.serverTime -= processor(l.server)
	l.databaseTime -= childProcessors(l.database)
	begin := time.Now()
	for _, c := range l.connections {
		group.Go(func() {
			for failed.Load() == nil && ctx.Err() == nil && time.Since(begin) < long {
				r := l.requests[int(l.next.Add(1))%len(l.requests)]
				if err := c.send(r, io.Discard); err != nil {
					failed.Store(&err)
					return
				}
				answered.Add(1)
			}
		})
	}
	group.Wait()
	took := time.Since(begin)
	l.serverTime += processor(l.server)
	l.databaseTime += childProcessors(l.database)
	if err := failed.Load(); err != nil {
		return 0, *err
	}
	return float64(answered.Load()) / took.Seconds(), ctx.Err()
}

// compared is what two loads gave in turns: the medians of their rates, and
// that of the rounds' ratios, which what else the machine does hardly moves.
type compared struct{ a, b, ratio float64 }

// inTurns runs two loads in alternating rounds, of which the first is not
// counted.
func inTurns(ctx context.Context, a, b *load, rounds int, long time.Duration) (compared, error) {
	var as, bs, ratios []float64
	for round := range rounds + 1 {
		first, second := a, b
		if round%2 == 1 {
			first, second = b, a
		}
		x, err := first.run(ctx, long)
		if err != nil {
			return compared{}, err
		}
		y, err := second.run(ctx, long)
		if err != nil {
			return compared{}, err
		}
		if round%2 == 1 {
			x, y = y, x
		}
		if round > 0 {
			as, bs, ratios = append(as, x), append(bs, y), append(ratios, x/y)
		}
	}
	return compared{median(as), median(bs), median(ratios)}, nil
}

func always(request []byte) func(int) []byte { return func(int) []byte { return request } }

func median[T int64 | float64 | time.Duration](values []T) T {
	sorted := slices.Sorted(slices.Values(values))
	n := len(sorted)
	return (sorted[(n-1)/2] + sorted[n/2]) / 2
}

func ratio(name string, a, b time.Duration, bar float64) result {
	return result{name: name, ours: took(a), reference: took(b), value: float64(a) / float64(b), bar: bar}
}
