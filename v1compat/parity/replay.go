package parity

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"golang.org/x/sync/errgroup"

	"partnerapi/domain"
	"partnerapi/v1compat"
)

// maxRecorded bounds a recorded request, in bytes.
const maxRecorded = 64 << 10

// Recorded is a request of v1, a line of JSON of what Record makes.
type Recorded struct {
	Method string `json:"method"`
	// Path has the query. Body is that of POST /v1/sentemails.
	Path string         `json:"path"`
	Body jsontext.Value `json:"body,omitzero"`
	// Count is how often the request was made.
	Count int `json:"count,omitzero"`
}

// Replay makes recorded requests of v1 and those of v2 that follow them, and compares
// the answers. unreadable is told of each line that is no request of a route that
// reads, by its number.
func Replay(ctx context.Context, c Config, lines io.Reader, unreadable func(line int, reason string)) (*Report, error) {
	r, err := newRun(c)
	if err != nil {
		return &Report{}, err
	}
	defer r.close()
	r.Sample = 0
	if err := r.begin(ctx); err != nil {
		return r.report, err
	}

	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(maxInFlight)
	lists := &inTurn{busy: map[string]chan struct{}{}}
	err = eachLine(lines, maxRecorded, func(n int, line []byte, long bool) error {
		var recorded Recorded
		var m matched
		err := errors.New("the line is over 64 KiB")
		if !long {
			err = json.Unmarshal(line, &recorded)
		}
		if err == nil {
			m, err = r.match(recorded)
		}
		if err != nil {
			unreadable(n, err.Error())
			return nil
		}
		group.Go(func() error {
			// Two walks over one list at a time would disturb each other.
			defer lists.take(m.reading.ID + strings.Join(m.parents, "/"))()
			return r.replay(ctx, m)
		})
		return ctx.Err()
	})
	return r.report, errors.Join(group.Wait(), err)
}

// eachLine calls fn with each line that is not blank, and its number from 1. Of a line
// over the limit it says so.
func eachLine(from io.Reader, most int, fn func(n int, line []byte, long bool) error) error {
	lines := bufio.NewReaderSize(from, most)
	for n := 1; ; n++ {
		line, err := lines.ReadSlice('\n')
		long := errors.Is(err, bufio.ErrBufferFull)
		for errors.Is(err, bufio.ErrBufferFull) {
			_, err = lines.ReadSlice('\n')
		}
		if text := strings.TrimSpace(string(line)); text != "" || long {
			if err := fn(n, []byte(text), long); err != nil {
				return err
			}
		}
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		}
	}
}

// matched is a request of v1 with its route.
type matched struct {
	Recorded
	reading *v1compat.Reading
	parents []string // in the path, as v1 has them
	query   url.Values
	body    mailBody
}

// mailBody is what POST /v1/sentemails takes.
type mailBody struct {
	User  string   `json:"user_infima_id,omitzero"`
	Email string   `json:"email_address,omitzero"`
	Types []string `json:"message_types,omitzero"`
	Start string   `json:"start_time,omitzero"`
}

// match finds the route of a request.
func (r *run) match(recorded Recorded) (matched, error) {
	m := matched{Recorded: recorded}
	path, rawQuery, _ := strings.Cut(recorded.Path, "?")
	path, ok := strings.CutPrefix(path, "/v1/")
	if !ok || strings.ContainsAny(recorded.Path, " #\\") {
		return m, errors.New("no path of v1")
	}
	var err error
	if m.query, err = url.ParseQuery(rawQuery); err != nil {
		return m, errors.New("its query is malformed")
	}
	for _, reading := range r.readings {
		if reading.Method != recorded.Method {
			continue
		}
		if m.parents, ok = parentsIn(reading.Path, "/"+path); ok {
			m.reading = reading
			break
		}
	}
	if m.reading == nil {
		return m, errors.New("no request of v1 that only reads")
	}
	if m.reading.ID != "sentemails" {
		m.Body = nil
		return m, nil
	}
	if err := json.Unmarshal(recorded.Body, &m.body); err != nil {
		return m, errors.New("its body cannot be read")
	}
	return m, nil
}

// parentsIn are the values of a route's parameters in a path.
func parentsIn(route, path string) ([]string, bool) {
	named, given := strings.Split(route, "/"), strings.Split(path, "/")
	if len(named) != len(given) {
		return nil, false
	}
	var parents []string
	for i, name := range named {
		if !strings.HasPrefix(name, ":") {
			if name != given[i] {
				return nil, false
			}
			continue
		}
		text, err := url.PathUnescape(given[i])
		if err != nil || text == "" {
			return nil, false
		}
		parents = append(parents, text)
	}
	return parents, true
}

// replay makes a request, and compares.
func (r *run) replay(ctx context.Context, m matched) error {
	operation := operationOf(m.reading)
	asked := request{method: m.Method, path: m.Path, body: string(m.Body)}
	if r.old != nil {
		return r.replayOld(ctx, operation, asked)
	}
	a, err := r.service.do(ctx, asked)
	if err != nil {
		return err
	}
	if m.reading.ID == "sentemails" && m.body.User == "" && a.status == m.reading.Status {
		r.report.count(operation, verdict{explained: 1}) // v2 has the mails of a user, not of an address
		return nil
	}
	l, err := r.listOf(ctx, m)
	if err != nil {
		return err
	}
	if a.status != m.reading.Status {
		return r.replayRefused(ctx, l, a)
	}
	if !l.reading.Paged {
		return r.compareList(ctx, l, nil)
	}
	return r.comparePage(ctx, l)
}

// replayRefused compares how v2 answers what v1 refused.
func (r *run) replayRefused(ctx context.Context, l *list, a answer) error {
	b, err := r.service.do(ctx, get(l.v2))
	if err != nil {
		return err
	}
	operation := l.operation()
	// What v1 takes for a malformed id is for v2 the id of nothing (decisions 1.2).
	if r.agree(a, b) || a.status == http.StatusBadRequest && (b.status == http.StatusNotFound || b.status == http.StatusOK) {
		r.report.count(operation, verdict{equal: 1})
		return nil
	}
	r.report.count(operation, verdict{faults: []fault{{"status", number(a.status), number(b.status)}}}, a, b)
	return nil
}

// comparePage compares one page of v1 with the rows of v2 that are to be on it.
func (r *run) comparePage(ctx context.Context, l *list) error {
	p := newPairing(r, l, nil)
	p.sampled = true
	rows, err := p.next(ctx, 0)
	if err != nil {
		return err
	}
	if !p.status {
		wanted := map[string]bool{}
		for _, row := range rows {
			wanted[row.key] = true
		}
		if err := p.add(ctx, 0, rows); err != nil {
			return err
		}
		if err := p.find(ctx, wanted); err != nil {
			return err
		}
	}
	return p.settle(ctx)
}

// replayOld compares the answers of two services' v1. What differs is asked for again.
func (r *run) replayOld(ctx context.Context, operation string, asked request) error {
	pause := firstPause
	for try := 1; ; try++ {
		old, err := r.old.do(ctx, asked)
		if err != nil {
			return err
		}
		now, err := r.service.do(ctx, asked)
		if err != nil {
			return err
		}
		if old.status >= 400 || now.status >= 400 {
			r.compareErrors(operation, old, now)
			return nil
		}
		v := rules{links: []string{"download_link"}, tolerated: r.Tolerate}.compare(old.body, now.body)
		if old.status != now.status {
			v.faults = append(v.faults, fault{"status", number(old.status), number(now.status)})
		}
		if len(v.faults) == 0 || try > agreeing {
			r.report.count(operation, v, old, now)
			r.compareHeaders(operation, old, now)
			return nil
		}
		if err := r.Wait(ctx, pause); err != nil {
			return err
		}
		pause *= 2
	}
}

// listOf is the list that a request is of, its ids exchanged for v2's. An id of nothing
// stays as it is.
func (r *run) listOf(ctx context.Context, m matched) (*list, error) {
	var parents []object
	for i, name := range parameters(m.reading.Path) {
		o, err := r.inBoth(ctx, strings.TrimSuffix(name, "_id"), m.parents[i])
		if err != nil {
			return nil, err
		}
		parents = append(parents, o)
	}
	filters, err := r.filters(ctx, m)
	if err != nil {
		return nil, err
	}

	var l *list
	switch m.reading.ID {
	case "phishing":
		c, err := r.clientOf(ctx, parents[0])
		if err != nil {
			return nil, err
		}
		l = r.phishing("", c, parents[0])
	case "sentemails":
		u, err := r.inBoth(ctx, "user", m.body.User)
		if err != nil {
			return nil, err
		}
		start, err := time.Parse(time.RFC3339, m.body.Start)
		if err != nil {
			start = r.Now().UTC().AddDate(0, 0, -emailDays)
		}
		l = r.emails(u, start.UTC(), m.body.Types)
		l.body = string(m.Body)
	default:
		l = r.list(m.reading.ID, object{v2: filters}, parents...)
	}
	l.exact = &exactPage{path: m.Path, limit: numberIn(m.query, "limit", defaultLimit(l)), offset: numberIn(m.query, "offset", 0)}
	return l, nil
}

// defaultLimit is how many items v1 shows where no limit is given.
func defaultLimit(l *list) int {
	switch {
	case l.reading.ID == "sentemails":
		return 100
	case l.most == 50:
		return 20
	}
	return 200
}

func numberIn(query url.Values, name string, otherwise int) int {
	if n, err := strconv.Atoi(query.Get(name)); err == nil {
		return n
	}
	return otherwise
}

// parameters are the names of the parameters of a path.
func parameters(path string) (names []string) {
	for s := range strings.SplitSeq(path, "/") {
		if name, ok := strings.CutPrefix(s, ":"); ok {
			names = append(names, name)
		}
	}
	return names
}

// inBoth is an object of v1 in both versions. The id of nothing is the same in both.
func (r *run) inBoth(ctx context.Context, kind, id string) (object, error) {
	if strings.ContainsFunc(id, unicode.IsControl) {
		return object{id, id}, nil
	}
	asked := text(id)
	if n, err := strconv.ParseInt(id, 10, 64); err == nil && kind != "report" && strconv.FormatInt(n, 10) == id {
		asked = jsontext.Value(id)
	}
	pairs, err := r.exchange(ctx, kind, []jsontext.Value{asked})
	if err != nil || len(pairs) == 0 {
		return object{id, id}, err
	}
	return object{id, pairs[0].V2}, nil
}

// clientOf is the client of a user.
func (r *run) clientOf(ctx context.Context, u object) (object, error) {
	a, err := r.service.do(ctx, get("/v2/users/"+url.PathEscape(u.v2)))
	if err != nil || a.status != http.StatusOK {
		return object{v2: domain.ClientID(nobody).String()}, err
	}
	return object{v2: memberOf(a.body, "client_id")}, nil
}

// filters are v2's in the place of v1's.
func (r *run) filters(ctx context.Context, m matched) (string, error) {
	out := url.Values{}
	switch m.reading.ID {
	case "clients":
		if !m.query.Has("ids") {
			break
		}
		var ids []string
		for number := range strings.SplitSeq(strings.Join(m.query["ids"], ","), ",") {
			if number == "" {
				continue
			}
			o, err := r.inBoth(ctx, "client", number)
			if err != nil {
				return "", err
			}
			ids = append(ids, o.v2)
		}
		out.Set("ids", strings.Join(ids, ","))
	case "users":
		out.Set("status", "active")
		fallthrough
	case "policy-users":
		if status := m.query.Get("status"); status != "" {
			out.Set("status", status)
		}
	case "exposures":
		setTime(out, "since", m.query.Get("start"), 0)
		setTime(out, "until", m.query.Get("end"), 1)
	}
	return out.Encode(), nil
}

// setTime sets a bound of a period: v1's end is the last moment, or the last day, of
// it, and v2's is the first after it.
func setTime(query url.Values, name, value string, after int) {
	if day, err := time.Parse(time.DateOnly, value); err == nil {
		query.Set(name, day.AddDate(0, 0, after).Format(time.RFC3339))
		return
	}
	if at, err := domain.ParseTime(value); err == nil {
		at = at.Add(time.Duration(after) * time.Microsecond)
		query.Set(name, at.Format(time.RFC3339Nano))
		return
	}
	if value != "" {
		query.Set(name, value)
	}
}
