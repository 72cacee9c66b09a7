package parity

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

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
