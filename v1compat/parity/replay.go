package parity

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"
)

// Replay makes the requests of a file and those of v2 that follow them, and compares the
// answers. The file is HAR, or has lines of [GET] /v1/path?query; it is read to its end
// first. unreadable is called for each line, or entry of HAR, that is no request of v1 that
// only reads, by its number; in HAR these are passed over. That there was one is an error,
// as is that nothing was compared, or nothing but refusals.
func Replay(ctx context.Context, c Config, file io.Reader, unreadable func(n int, reason string)) (*Report, error) {
	r, err := newRun(c)
	if err != nil {
		return &Report{}, err
	}
	defer r.close()

	// Two walks over one list at a time would disturb each other (decisions 5.7).
	lists, bad := map[string][]request{}, 0
	err = readTraffic(file, r.reads, func(asked request) {
		path, _, _ := strings.Cut(asked.path, "?")
		lists[path] = append(lists[path], asked)
	}, func(n int, reason string) {
		bad++
		unreadable(n, reason)
	})
	if err != nil {
		return r.report, Unable{err}
	}
	if err := r.begin(ctx); err != nil {
		return r.report, err
	}
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(maxInFlight)
	for _, of := range slices.Sorted(maps.Keys(lists)) {
		group.Go(func() error { return r.replay(ctx, lists[of]) })
	}
	switch err := group.Wait(); {
	case err != nil:
		return r.report, err
	case bad > 0:
		return r.report, fmt.Errorf("requests that could not be read: %d", bad)
	case r.report.Compared() == 0:
		return r.report, errors.New("nothing was compared: the file has no request of v1 that only reads")
	case !r.answered.Load():
		return r.report, errors.New("nothing but refusals was compared: v1 answers every request of the file with an error; " +
			"is the key that of the traffic?")
	}
	return r.report, nil
}

// reads reports whether v1 has a route for the request that only reads.
func (r *run) reads(asked request) bool {
	path, _, _ := strings.Cut(asked.path, "?")
	for _, reading := range r.readings {
		if reading.Method == asked.method && reading.Matches(path) {
			return true
		}
	}
	return false
}

// replay makes requests one after the other, and compares.
func (r *run) replay(ctx context.Context, requests []request) error {
	for _, asked := range requests {
		l, err := r.list(ctx, asked)
		if err != nil {
			return err
		}
		l.exact = true
		if _, err := r.compareList(ctx, l); err != nil {
			return err
		}
	}
	return nil
}
