package main

import (
	"bytes"
	"encoding/json"
	"io"
	"time"

	"partnerapi/domain"
	"partnerapi/v1compat"
	"partnerapi/v1compat/retire"
	"partnerapi/v1compat/usage"
	"partnerapi/v2/op"
	"partnerapi/v2/op/ginop"
)

// statusJSON is the status as programs read it.
type statusJSON struct {
	Now  op.Time `json:"now"`
	Days int     `json:"days"`
	// Announcement is null while nothing is announced.
	Announcement *announcementJSON `json:"announcement"`
	// EndedAt is null while v1 was not ended; DeletableAt is when it can be deleted.
	EndedAt     *op.Time  `json:"ended_at"`
	DeletableAt *op.Time  `json:"deletable_at"`
	Keys        []keyJSON `json:"keys"`
	ByDay       []dayJSON `json:"by_day"`
}

type announcementJSON struct {
	AnnouncedAt op.Time `json:"announced_at"`
	SunsetAt    op.Time `json:"sunset_at"`
	// DaysLeft is below 0 when the sunset has passed.
	DaysLeft int `json:"days_left"`
}

type keyJSON struct {
	Key        string               `json:"key"`
	Name       string               `json:"name"`
	Partner    string               `json:"partner"`
	Live       bool                 `json:"live"`
	Phase      retire.Phase         `json:"phase"`
	PhaseUntil *op.Time             `json:"phase_until"`
	LastAt     op.Time              `json:"last_at"`
	Calls      int64                `json:"calls"`
	Failures   int64                `json:"failures"`
	Verdict    usage.Verdict        `json:"verdict"`
	Operations []operationJSON      `json:"operations"`
	Items      []v1compat.UsageItem `json:"items"`
}

type operationJSON struct {
	Operation       string        `json:"operation"`
	Successor       string        `json:"successor"`
	Verdict         usage.Verdict `json:"verdict"`
	Calls           int64         `json:"calls"`
	Failures        int64         `json:"failures"`
	FirstAt         op.Time       `json:"first_at"`
	LastAt          op.Time       `json:"last_at"`
	SuccessorCalls  int64         `json:"successor_calls"`
	SuccessorLastAt *op.Time      `json:"successor_last_at"`
	UserAgents      []string      `json:"user_agents"`
}

type dayJSON struct {
	Day            domain.Date `json:"day"`
	Calls          int64       `json:"calls"`
	SuccessorCalls int64       `json:"successor_calls"`
}

// writeJSON writes the status as JSON. Items are encoded as the API does it.
func (st *status) writeJSON(out io.Writer) error {
	text, err := ginop.Encode(st.json())
	if err != nil {
		return err
	}
	var indented bytes.Buffer
	if err := json.Indent(&indented, text, "", "  "); err != nil {
		return err
	}
	indented.WriteByte('\n')
	_, err = out.Write(indented.Bytes())
	return err
}

func (st *status) json() statusJSON {
	out := statusJSON{Now: op.At(st.now), Days: st.days, Keys: []keyJSON{}, ByDay: []dayJSON{}}
	if a, ok := st.state.Announcement(); ok {
		out.Announcement = &announcementJSON{op.At(a.Announced), op.At(a.Sunset), st.daysLeft()}
	}
	if ended, ok := st.state.Ended(); ok {
		at, _ := st.deletable()
		out.EndedAt, out.DeletableAt = given(ended), given(at)
	}
	for _, k := range st.use.Keys {
		out.Keys = append(out.Keys, st.keyJSON(k))
	}
	for _, d := range st.use.Days {
		out.ByDay = append(out.ByDay, dayJSON{d.Day, d.Calls, d.Successors})
	}
	return out
}

func (st *status) keyJSON(k usage.Key) keyJSON {
	phase, until := st.phase(k)
	out := keyJSON{
		Key: k.Prefix, Name: k.Name, Partner: k.PartnerName, Live: k.Live, Phase: phase, PhaseUntil: given(until),
		LastAt: op.At(k.LastAt), Calls: k.Calls, Failures: k.Failures, Verdict: k.Verdict,
		Operations: []operationJSON{}, Items: []v1compat.UsageItem{},
	}
	next := map[string]string{}
	for _, o := range k.Operations {
		next[o.Operation] = o.Successor
		out.Operations = append(out.Operations, operationJSON{
			Operation: o.Operation, Successor: o.Successor, Verdict: o.Verdict, Calls: o.Calls, Failures: o.Failures,
			FirstAt: op.At(o.FirstAt), LastAt: op.At(o.LastAt), SuccessorCalls: o.SuccessorCalls,
			SuccessorLastAt: given(o.SuccessorAt), UserAgents: append([]string{}, o.UserAgents...),
		})
	}
	for _, r := range k.Rows {
		out.Items = append(out.Items, v1compat.UsageItemOf(r, next[r.Operation]))
	}
	return out
}

// given is a time, or nil for the zero one.
func given(t time.Time) *op.Time {
	if t.IsZero() {
		return nil
	}
	return &op.Time{Time: t}
}
