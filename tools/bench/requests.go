package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"partnerapi/client"
)

// object is one of JSON.
type object = map[string]any

// connection is a keep-alive connection to a server. It is as thin as can be,
// for it shares the processors with what it measures.
type connection struct {
	net.Conn
	r *bufio.Reader
}

func dial(address string) *connection {
	c := must(net.Dial("tcp", address))
	return &connection{c, bufio.NewReaderSize(c, 64<<10)}
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
func (c *connection) timed(request []byte) time.Duration {
	begin := time.Now()
	check(c.send(request, io.Discard))
	return time.Since(begin)
}

// ask sends a request to a server and reads the answer.
func ask[T any](address string, request []byte) (answer T) {
	c := dial(address)
	defer c.Close()
	var body bytes.Buffer
	check(c.send(request, &body))
	check(json.Unmarshal(body.Bytes(), &answer))
	return answer
}

// caller calls the service with the first key, where nothing is measured.
func (b *bench) caller() *client.Client {
	return must(client.New(client.Config{URL: "http://" + b.service.address, Key: b.keys[0]}))
}

// lane is what is timed: requests to a server, one after another.
type lane struct {
	to   string // the server's address
	next func(i int) []byte
	// before is done before each request and not timed; nil for nothing.
	before func(ctx context.Context, i int)
}

// always is the same request each time.
func always(request []byte) func(int) []byte { return func(int) []byte { return request } }

// timed times the requests of some lanes in turns, each over a connection of its own,
// after warm-up rounds that do not count.
func timed(ctx context.Context, warm, times int, lanes ...lane) [][]time.Duration {
	runs := make([]func(i int) time.Duration, len(lanes))
	for n, l := range lanes {
		c := dial(l.to)
		defer c.Close()
		runs[n] = func(i int) time.Duration {
			if l.before != nil {
				l.before(ctx, i)
			}
			return c.timed(l.next(i))
		}
	}
	return inTurns(ctx, warm, times, runs...)
}

// inTurns times some things in turns. Which is first changes.
func inTurns(ctx context.Context, warm, times int, runs ...func(i int) time.Duration) [][]time.Duration {
	took := make([][]time.Duration, len(runs))
	for i := range warm + times {
		for turn := range runs {
			of := (i + turn) % len(runs)
			t := runs[of](i)
			check(ctx.Err())
			if i >= warm {
				took[of] = append(took[of], t)
			}
		}
	}
	return took
}

// warm is how many rounds are added that do not count.
func warm(times int) int { return times / 10 }

// compared compares the typical times of two lanes.
func compared(ctx context.Context, times int, ours, theirs lane) figure {
	took := timed(ctx, warm(times), times, ours, theirs)
	return ratio(median(took[0]), median(took[1]))
}

// versus compares the typical times of two requests to the service.
func (b *bench) versus(ctx context.Context, times int, one, other func(i int) []byte) figure {
	to := b.service.address
	return compared(ctx, b.times(times), lane{to: to, next: one}, lane{to: to, next: other})
}

// each measures requests to the service, one at a time. What is to be done before each
// is not timed; nil for nothing.
func (b *bench) each(times int, next func(i int) []byte, before func(context.Context, int)) finder {
	return func(ctx context.Context) figure {
		times := b.times(times)
		return took(median(timed(ctx, warm(times), times, lane{b.service.address, next, before})[0]))
	}
}

// page is each, of pages of v2 that must have the given number of rows.
func (b *bench) page(rows, times int, next func(i int) []byte, before func(context.Context, int)) finder {
	return func(ctx context.Context) figure {
		page := ask[struct{ Data []json.RawMessage }](b.service.address, next(0))
		if len(page.Data) != rows {
			fail("the page has %d rows and not %d", len(page.Data), rows)
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
	go func() { done <- try(func() { b.profile(name, b.tenth(100)/10) }) }()
	return func() error { return <-done }
}

// notInNames is what the names of profiles have not.
var notInNames = regexp.MustCompile("[^A-Za-z0-9]+")

func (b *bench) profile(name string, seconds int) {
	response := must(http.Get(fmt.Sprintf("http://%s/debug/pprof/profile?seconds=%d", b.service.address, seconds)))
	defer response.Body.Close()
	profile := must(io.ReadAll(response.Body))
	file := strings.Trim(notInNames.ReplaceAllString(name, "-"), "-") + ".pprof"
	check(os.WriteFile(filepath.Join(b.profiles, file), profile, 0o644))
}
