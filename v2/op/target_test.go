package op_test

import (
	"strings"
	"testing"
	"time"

	"partnerapi/domain"
	"partnerapi/v2/op"
)

// TestTarget: what is given of an input, and how it is escaped.
func TestTarget(t *testing.T) {
	t.Parallel()
	o := newOp(t)
	client, err := domain.ParseID[domain.ClientKind](clientID)
	if err != nil {
		t.Fatal(err)
	}
	at := time.Date(2026, 1, 31, 9, 0, 0, 123456789, time.FixedZone("", 3600))
	for want, change := range map[string]func(*sample){
		"": func(*sample) {},
		// what no surface binds
		"?": func(in *sample) { in.Query.Rows, in.Query.Secret, in.Body.Name = 7, "x", "n" },
		"?limit=20&cursor=a%2Bb": func(in *sample) {
			in.Query.Limit, in.Query.Cursor = 20, "a+b"
		},
		"?since=2026-01-31T08:00:00.123456789Z": func(in *sample) { in.Query.Since = &domain.Time{Time: at} },
		"?ids=":                                 func(in *sample) { in.Query.IDs = &op.IDList[domain.ClientKind]{} },
		"?ids=" + clientID + "," + clientID: func(in *sample) {
			in.Query.IDs = &op.IDList[domain.ClientKind]{IDs: []domain.ClientID{client, client}, Given: 3}
		},
		"?tint=red&draft=false&note=%C3%A9%20%26%3E%22": func(in *sample) {
			in.Query.Tint, in.Query.Draft, in.Query.Note = "red", false, new("é &>\"")
		},
	} {
		in := o.New().(*sample)
		in.Path.ID = client
		change(in)
		got, err := op.Target(o, in)
		if want := strings.TrimSuffix("/samples/"+clientID+want, "?"); err != nil || got != want {
			t.Errorf("%s, %v\nbut expected %s", got, err, want)
		}
	}
}

// TestNoTarget: an input that no request binds to has no target.
func TestNoTarget(t *testing.T) {
	t.Parallel()
	o := newOp(t)
	nowhere := o.New()
	empty := o.New().(*sample)
	empty.Path.ID, empty.Query.Note = domain.ClientID{1}, new("")
	for name, in := range map[string]any{"no object": nowhere, "an empty text": empty, "another input": &numbers{}, "a value": sample{}} {
		if b, err := op.AppendTarget([]byte("kept"), o, in); err == nil || string(b) != "kept" {
			t.Errorf("%s: %q, %v", name, b, err)
		}
	}
}
