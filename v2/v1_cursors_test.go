package v2_test

import (
	"slices"
	"testing"

	"partnerapi/v2/api"
)

// TestCursorBindingsOfV1: so it is with the lists that only version 1 has. Its checkpoints
// are named by the same text.
func TestCursorBindingsOfV1(t *testing.T) {
	t.Parallel()
	mails := cursorRequests(t, api.SentEmails)[0]
	requests := []string{mails}
	for _, body := range []string{
		`{"user_id":"` + strangers()["user_id"] + `"}`, `{"email":"ada@example.com"}`,
		`{"email":"ada@example.com","message_types":["phishing"]}`, `{"email":"ada@example.com","start":"2026-01-02T03:04:05Z"}`,
	} {
		requests = append(requests, mails+" "+body)
	}
	keepBindings(t, "testdata/v1_cursor_bindings.txt", slices.Concat(
		bindingLines(t, api.SentEmails, requests),
		bindingLines(t, api.SentResults, cursorRequests(t, api.SentResults)),
		bindingLines(t, api.OldReports, cursorRequests(t, api.OldReports)),
	))
}
