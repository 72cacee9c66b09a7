package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// object is one of JSON.
type object = map[string]any

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

// request is the text of a request, with a body unless that is nil.
func request(method, path, key string, body any, headers ...string) []byte {
	text := fmt.Appendf(nil, "%s %s HTTP/1.1\r\nHost: bench\r\nX-API-Key: %s\r\n", method, path, key)
	for _, header := range headers {
		text = append(text, header+"\r\n"...)
	}
	if body == nil {
		return append(text, "\r\n"...)
	}
	content, _ := json.Marshal(body) // texts, numbers and times only: cannot fail
	return fmt.Appendf(text, "Content-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", len(content), content)
}

// get is a GET with the first key.
func (b *bench) get(path string) []byte { return request("GET", path, b.keys[0], nil) }

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

// ask sends a request to a server and reads the answer.
func ask(address string, request []byte, answer any) error {
	c, err := dial(address)
	if err != nil {
		return err
	}
	defer c.Close()
	var body bytes.Buffer
	if err := c.send(request, &body); err != nil {
		return err
	}
	return json.Unmarshal(body.Bytes(), answer)
}

// lane is what is timed: requests to a server, one after another.
type lane struct {
	to   string // the server's address
	next func(i int) []byte
	// before is done before each request and not timed; nil for nothing.
	before func(ctx context.Context, i int) error
}

// always is the same request each time.
func always(request []byte) func(int) []byte { return func(int) []byte { return request } }

// timed times the requests of some lanes in turns, each over a connection of its own,
// after warm-up rounds that do not count. Which lane is first changes.
func timed(ctx context.Context, warm, times int, lanes ...lane) (took [][]time.Duration, err error) {
	took = make([][]time.Duration, len(lanes))
	connections := make([]*connection, len(lanes))
	for i, l := range lanes {
		if connections[i], err = dial(l.to); err != nil {
			return nil, err
		}
		defer connections[i].Close()
	}

	for i := range warm + times {
		for turn := range lanes {
			of := (i + turn) % len(lanes)
			if before := lanes[of].before; before != nil {
				if err := before(ctx, i); err != nil {
					return nil, err
				}
			}
			t, err := connections[of].timed(lanes[of].next(i))
			if err := errors.Join(err, ctx.Err()); err != nil {
				return nil, err
			}
			if i >= warm {
				took[of] = append(took[of], t)
			}
		}
	}
	return took, nil
}

// warm is how many rounds typical adds that do not count.
func warm(times int) int { return times / 10 }

// typical are the median times of the lanes' requests.
func typical(ctx context.Context, times int, lanes ...lane) (medians []time.Duration, err error) {
	took, err := timed(ctx, warm(times), times, lanes...)
	for _, all := range took {
		medians = append(medians, median(all))
	}
	return medians, err
}

// inTurns compares the typical times of two lanes.
func inTurns(ctx context.Context, times int, ours, theirs lane) (figure, error) {
	took, err := typical(ctx, times, ours, theirs)
	if err != nil {
		return figure{}, err
	}
	return ratio(took[0], took[1]), nil
}

// versus compares the typical times of two requests to the service.
func (b *bench) versus(ctx context.Context, times int, one, other func(i int) []byte) (figure, error) {
	to := b.service.address
	return inTurns(ctx, b.times(times), lane{to: to, next: one}, lane{to: to, next: other})
}

// each measures requests to the service, one at a time. What is to be done before each
// is not timed; nil for nothing.
func (b *bench) each(times int, next func(i int) []byte, before func(context.Context, int) error) finder {
	return func(ctx context.Context) (figure, error) {
		all, err := typical(ctx, b.times(times), lane{b.service.address, next, before})
		if err != nil {
			return figure{}, err
		}
		return took(all[0]), nil
	}
}

// page is each, of pages of v2 that must have the given number of rows.
func (b *bench) page(rows, times int, next func(i int) []byte, before func(context.Context, int) error) finder {
	return func(ctx context.Context) (figure, error) {
		var page struct{ Data []json.RawMessage }
		if err := ask(b.service.address, next(0), &page); err != nil || len(page.Data) != rows {
			return figure{}, errors.Join(err, fmt.Errorf("the page has %d rows and not %d", len(page.Data), rows))
		}
		return b.each(times, next, before)(ctx)
	}
}

func median[T int64 | float64 | time.Duration](values []T) T {
	sorted := slices.Sorted(slices.Values(values))
	n := len(sorted)
	return (sorted[(n-1)/2] + sorted[n/2]) / 2
}

// profiled profiles the service, where that is wanted, until the function it
// returns is called.
func (b *bench) profiled(name string) (end func() error) {
	if b.profiles == "" {
		return func() error { return nil }
	}
	done := make(chan error, 1)
	go func() { done <- b.profile(name, b.tenth(100)/10) }()
	return func() error { return <-done }
}

func (b *bench) profile(name string, seconds int) error {
	response, err := http.Get(fmt.Sprintf("http://%s/debug/pprof/profile?seconds=%d", b.service.address, seconds))
	if err != nil {
		return err
	}
	defer response.Body.Close()
	file, err := os.Create(filepath.Join(b.profiles, strings.Trim(fileName(name), "-")+".pprof"))
	if err != nil {
		return err
	}
	_, err = io.Copy(file, response.Body)
	return errors.Join(err, file.Close())
}
