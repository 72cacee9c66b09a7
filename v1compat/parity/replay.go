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
		if _, err := l.compare(ctx); err != nil {
			return err
		}
	}
	return nil
}

// maxLine bounds a line of traffic, in bytes.
const maxLine = 64 << 10

// lineOf is a line of traffic.
var lineOf = regexp.MustCompile(`^(?:GET )?(/v1/[^ #\\]+)$`)

// readTraffic calls take with the requests of a HAR file, or of lines, that read says
// only read, each once, and unreadable with the number of each other line and the reason.
// Of a HAR file other requests are passed over; of its entries those that have none are
// unreadable.
func readTraffic(
	from io.Reader, read func(request) bool, take func(request), unreadable func(n int, reason string),
) error {
	in := bufio.NewReader(from)
	if mark, _ := in.Peek(3); string(mark) == "\xef\xbb\xbf" {
		_, _ = in.Discard(len(mark))
	}
	taken := map[request]bool{}
	once := func(n int, r request, har bool) {
		switch known := taken[r]; {
		case known:
		case read(r):
			take(r)
		case !har:
			unreadable(n, "no request of v1 that only reads")
		}
		taken[r] = true
	}
	if start, _ := in.Peek(512); bytes.HasPrefix(bytes.TrimSpace(start), []byte("{")) {
		return readHAR(in, once, unreadable)
	}

	lines := bufio.NewScanner(in)
	lines.Buffer(nil, maxLine)
	for n := 1; lines.Scan(); n++ {
		text := strings.TrimSpace(lines.Text())
		found := lineOf.FindStringSubmatch(text)
		switch {
		case text == "":
		case found == nil:
			unreadable(n, "not of the form [GET] /v1/path?query")
		default:
			once(n, get(found[1]), false)
		}
	}
	return lines.Err()
}

// readHAR reads the entries of a HAR file.
func readHAR(from io.Reader, once func(n int, r request, har bool), unreadable func(n int, reason string)) error {
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
		return errors.New("neither a HAR file nor lines of the form [GET] /v1/path?query: " + err.Error())
	}
	for i, entry := range file.Log.Entries {
		at, err := url.Parse(entry.Request.URL)
		if err != nil || entry.Request.Method == "" {
			unreadable(i+1, "the entry has no request")
			continue
		}
		path := at.RequestURI()
		if i := strings.Index(path, "/v1/"); i > 0 { // a proxy may serve the interface below a path of its own
			path = path[i:]
		}
		r := request{method: entry.Request.Method, path: path}
		if r.method == http.MethodPost {
			r.body = entry.Request.PostData.Text
		}
		once(i+1, r, true)
	}
	return nil
}
