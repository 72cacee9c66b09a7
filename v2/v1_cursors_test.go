package v2_test

import (
	"slices"
	"testing"

	v2 "partnerapi/v2"
)

// TestCursorBindingsOfV1: so it is with the lists that only version 1 has. Its checkpoints
// are named by the same text.
func TestCursorBindingsOfV1(t *testing.T) {
	t.Parallel()
	own := v2.ForV1(v2.New(nil, nil))
	mails := cursorRequests(t, own.SentEmails)[0]
	requests := []string{mails}
	for _, body := range []string{
		`{"user_id":"` + strangers()["user_id"] + `"}`, `{"email":"ada@example.com"}`,
		`{"email":"ada@example.com","message_types":["phishing"]}`, `{"email":"ada@example.com","start":"2026-01-02T03:04:05Z"}`,
	} {
		requests = append(requests, mails+" "+body)
	}
	keepBindings(t, "testdata/v1_cursor_bindings.txt", slices.Concat(
		bindingLines(t, own.SentEmails, requests),
		bindingLines(t, own.SentResults, cursorRequests(t, own.SentResults)),
		bindingLines(t, own.OldReports, cursorRequests(t, own.OldReports)),
	))
}
