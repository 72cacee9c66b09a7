package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"time"

	"github.com/google/go-cmp/cmp"
	vegeta "github.com/tsenart/vegeta/v12/lib"
)

// workers is the number of concurrent requests if throughput is measured.
const workers = 8

// caller keeps connections alive. It decompresses nothing, so that responses are compressed only if a request says so.
var caller = &http.Client{Timeout: 5 * time.Minute, Transport: &http.Transport{MaxIdleConnsPerHost: workers, DisableCompression: true}}

// object is an object of JSON.
type object = map[string]any

// request is a request with a path in place of its URL.
type request = vegeta.Target

// newRequest returns a request with a body, unless that is nil.
func newRequest(method, path, key string, body any) request {
	r := request{Method: method, URL: path, Header: http.Header{"X-Api-Key": {key}}}
	if body != nil {
		r.Header.Set("Content-Type", "application/json")
		r.Body = must(json.Marshal(body))
	}
	return r
}

// get returns a GET with the first key.
func (b *bench) get(path string) request { return newRequest(http.MethodGet, path, b.readKey, nil) }

// with returns a request with another header.
func with(r request, name, value string) request {
	r.Header = r.Header.Clone()
	r.Header.Set(name, value)
	return r
}

// response is a response with its whole body.
type response struct {
	header http.Header
	body   []byte
	took   time.Duration
}

// send sends a request, and fails for any status but 2xx.
func (c *child) send(r request) response {
	r.URL = c.url + r.URL
	sent := must(r.Request())
	began := time.Now()
	answer := must(caller.Do(sent))
	defer answer.Body.Close()
	got := response{answer.Header, must(io.ReadAll(answer.Body)), time.Since(began)}
	if answer.StatusCode/100 != 2 {
		fail("%s %s returned %s: %s", r.Method, r.URL, answer.Status, got.body)
	}
	return got
}

// ask sends a request and decodes the response.
func ask[T any](c *child, r request) (answer T) {
	check(json.Unmarshal(c.send(r).body, &answer))
	return answer
}

// targeter returns requests to the server, in turns.
func (c *child) targeter(requests []request) vegeta.Targeter {
	there := make([]request, len(requests))
	for i, r := range requests {
		r.URL = c.url + r.URL
		there[i] = r
	}
	return vegeta.NewStaticTargeter(there...)
}

// attack sends requests at a pace until over, and fails for any status but 2xx and 3xx.
func attack(next vegeta.Targeter, pace vegeta.Pacer, over <-chan time.Time, workers uint64) (m vegeta.Metrics) {
	attacker := vegeta.NewAttacker(vegeta.Client(caller), vegeta.Workers(workers), vegeta.MaxWorkers(workers), vegeta.MaxBody(0))
	go func() {
		<-over
		attacker.Stop()
	}()
	for r := range attacker.Attack(next, pace, 0, "") {
		m.Add(r)
	}
	m.Close()
	if len(m.Errors) > 0 {
		fail("%s", m.Errors[0])
	}
	return m
}

// against compares the throughput of the service and another server, if both return the same. The first round of each
// is not counted.
func (b *bench) against(ctx context.Context, other *child, requests []request) figure {
	for _, r := range requests[:min(len(requests), 20)] {
		b.same(other, with(r, "Accept-Encoding", "identity"))
	}
	next := []vegeta.Targeter{b.service.targeter(requests), other.targeter(requests)}
	var rates [2][]float64
	for round := range b.times(40) + 1 {
		for turn := range next {
			check(ctx.Err())
			of := (round + turn) % 2
			m := attack(next[of], vegeta.Rate{}, time.After(250*time.Millisecond), workers)
			if round > 0 {
				rates[of] = append(rates[of], m.Throughput)
			}
		}
	}
	return compare(rates[0], rates[1], perSecond)
}

// same fails if the servers respond differently, except for cursors, which each writes in its own way, and times.
func (b *bench) same(other *child, r request) {
	ask := func(c *child) object {
		answer := ask[object](c, r)
		if p, ok := answer["page"].(object); ok {
			p["next_cursor"], p["as_of"] = p["next_cursor"] != nil, p["as_of"] != nil
		}
		return answer
	}
	if diff := cmp.Diff(ask(b.service), ask(other)); diff != "" {
		fail("the service (-) and the reference (+) respond differently:\n%s", diff)
	}
}

// requests returns the request of the i-th round.
type requests func(i int) request

// always repeats a request.
func always(r request) requests { return func(int) request { return r } }

// timed times requests to the service in turns, in seconds, after a tenth as many rounds that are not counted. before,
// unless nil, is called before each request and not timed.
func (b *bench) timed(ctx context.Context, times int, before func(), lanes ...requests) [][]float64 {
	times = b.times(times)
	took := make([][]float64, len(lanes))
	for i := range times/10 + times {
		for turn := range lanes {
			check(ctx.Err())
			of := (i + turn) % len(lanes)
			if before != nil {
				before()
			}
			if got := b.service.send(lanes[of](i)); i >= times/10 {
				took[of] = append(took[of], got.took.Seconds())
			}
		}
	}
	return took
}

// versus compares the times of two requests to the service.
func (b *bench) versus(ctx context.Context, times int, one, other requests) figure {
	all := b.timed(ctx, times, nil, one, other)
	return compare(all[0], all[1], seconds)
}

// each times requests to the service. before may be nil.
func (b *bench) each(ctx context.Context, times int, next requests, before func()) figure {
	return typical(b.timed(ctx, times, before, next)[0])
}

// rawPage is a page of v2.
type rawPage = page[json.RawMessage]

// page is each, of pages that must have the given number of rows.
func (b *bench) page(ctx context.Context, rows, times int, next requests, before func()) figure {
	if got := len(ask[rawPage](b.service, next(0)).Data); got != rows {
		fail("the page has %d rows, want %d", got, rows)
	}
	return b.each(ctx, times, next, before)
}

// walk pages through a list, and returns the queries of all pages.
func (b *bench) walk(ctx context.Context, path string) (queries []string) {
	for query := "?limit=500"; ; {
		check(ctx.Err())
		queries = append(queries, query)
		page := ask[rawPage](b.service, b.get(path+query)).Page
		if !page.HasMore {
			return queries
		}
		query = "?limit=500&cursor=" + *page.NextCursor
	}
}

// profile writes a CPU profile of the service under the load of a measure.
func (b *bench) profile(name string) {
	profile := b.service.send(b.get(fmt.Sprint("/debug/pprof/profile?seconds=", b.tenth(10)))).body
	name = regexp.MustCompile("[^A-Za-z0-9]+").ReplaceAllString(name, "-") + ".pprof"
	check(os.WriteFile(filepath.Join(b.profiles, name), profile, 0o644))
}
