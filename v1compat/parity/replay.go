package parity

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"golang.org/x/sync/errgroup"
)

// Replay compares the responses of v1 to the requests of a file with those of v2, or of another service's v1 (OldURL).
// The file is HAR, or has lines of [GET] /v1/path?query; all of it is read first. unreadable is called with the number
// of each line, or entry of HAR, that cannot be read, and of each line with a request other than a read of v1. Such
// requests in HAR are ignored. Replay returns an error if unreadable was called, or if no request succeeded.
func Replay(ctx context.Context, c Config, file io.Reader, unreadable func(n int, reason string)) (*Report, error) {
	return withRun(ctx, c, func(r *run) error {
		lists, bad, err := r.readTraffic(file, unreadable)
		if err != nil {
			return err
		}
		group, ctx := errgroup.WithContext(ctx)
		group.SetLimit(maxInFlight)
		for _, path := range slices.Sorted(maps.Keys(lists)) {
			group.Go(func() error { return r.compareRequests(ctx, lists[path], 0 /* v2's status */) })
		}
		switch err := group.Wait(); {
		case err != nil:
			return err
		case bad > 0:
			return fmt.Errorf("unreadable requests: %d", bad)
		case len(lists) == 0:
			return errors.New("nothing was compared, as the file has no read requests to v1")
		case !r.succeeded.Load():
			return errors.New("only error responses were compared, as v1 returns an error for every request in the file; " +
				"use the key of the recorded requests")
		}
		return nil
	})
}

// isRead reports whether v1 has a route for the request that only reads. path is the request's without its query.
func (r *run) isRead(v1 request, path string) bool {
	for _, route := range r.routes {
		if route.Method == v1.method && route.Matches(path) {
			return true
		}
	}
	return false
}

// readTraffic returns the requests of a file by their paths without queries, each request once. Those of one path must
// not be compared at the same time: two walks of one list would delete each other's checkpoints (decisions 5.7). bad is
// the number of calls of unreadable.
func (r *run) readTraffic(
	file io.Reader, unreadable func(n int, reason string),
) (lists map[string][]request, bad int, err error) {
	in := bufio.NewReader(file)
	if mark, _ := in.Peek(3); string(mark) == "\xef\xbb\xbf" { // skip a byte order mark
		_, _ = in.Discard(len(mark))
	}
	beginning, _ := in.Peek(512) // the whole of a shorter file
	isHAR := bytes.HasPrefix(bytes.TrimSpace(beginning), []byte("{"))

	lists = map[string][]request{}
	seen := map[request]bool{}
	add := func(n int, found request, reason string) {
		path, _, _ := strings.Cut(found.path, "?")
		switch {
		case reason != "": // reported below
		case seen[found]:
			return
		case r.isRead(found, path):
			lists[path] = append(lists[path], found)
		case !isHAR: // HAR may have other requests
			reason = "not a read request to v1"
		}
		seen[found] = true
		if reason != "" {
			bad++
			unreadable(n, reason)
		}
	}
	read := readLines
	if isHAR {
		read = readHAR
	}
	err = read(in, add)
	return lists, bad, err
}

// maxLine bounds a line of traffic, in bytes.
const maxLine = 64 << 10

// line is a line of traffic.
var line = regexp.MustCompile(`^(?:GET )?(/v1/[^ #\\]+)$`)

// readLines calls add with the request of each line that is not empty, or with the reason why it has none.
func readLines(from io.Reader, add func(n int, r request, reason string)) error {
	lines := bufio.NewScanner(from)
	lines.Buffer(nil, maxLine)
	for n := 1; lines.Scan(); n++ {
		text := strings.TrimSpace(lines.Text())
		if found := line.FindStringSubmatch(text); found != nil {
			add(n, get(found[1]), "")
		} else if text != "" {
			add(n, request{}, "not of the form [GET] /v1/path?query")
		}
	}
	return lines.Err()
}

// readHAR calls add with the request of each entry of a HAR file, or the reason why it has none.
func readHAR(from io.Reader, add func(n int, r request, reason string)) error {
	var file struct {
		Log struct {
			Entries []struct {
				Request struct {
					Method   string `json:"method"`
					URL      string `json:"url"`
					PostData struct {
						Text string `json:"text"`
					} `json:"postData"`
				} `json:"request"`
			} `json:"entries"`
		} `json:"log"`
	}
	err := json.UnmarshalRead(from, &file, jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	if err != nil {
		return fmt.Errorf("neither a HAR file nor lines of the form [GET] /v1/path?query: %w", err)
	}
	for i, entry := range file.Log.Entries {
		address, err := url.Parse(entry.Request.URL)
		if err != nil || entry.Request.Method == "" {
			add(i+1, request{}, "the entry has no request")
			continue
		}
		path := address.RequestURI()
		if i := strings.Index(path, "/v1/"); i > 0 { // a proxy may serve the API below its own path
			path = path[i:]
		}
		found := request{method: entry.Request.Method, path: path}
		if found.method == http.MethodPost {
			found.body = entry.Request.PostData.Text
		}
		add(i+1, found, "")
	}
	return nil
}
