// Package directory keeps a client's users in sync with the client's directory: connectors read Microsoft Entra ID and
// Google Workspace, and runs write what they read.
package directory

import (
	"context"
	"errors"
	"iter"

	"partnerapi/domain"
)

// Source reads a client's directory.
type Source interface {
	// Read reads the accounts after a position, or all accounts if it is empty, in pages up to the last page. It waits
	// while it is throttled, and ends at the first error, which is ErrStartOver if the position has expired.
	Read(ctx context.Context, position string) iter.Seq2[Page, error]
}

// Page is a batch of a directory's accounts.
type Page struct {
	Accounts []domain.DirectoryAccount
	// Next is the position after the page: of the next page, or on the last page the
	// position from which the next run reads.
	Next string
	Last bool // no page follows
	// Whole means that the pages since the empty position contain every account: an
	// account in none of these pages has been removed.
	Whole bool
}

// pages yields the pages that next reads, up to the last one or an error.
func pages(next func() (Page, error)) iter.Seq2[Page, error] {
	return func(yield func(Page, error) bool) {
		for {
			page, err := next()
			if !yield(page, err) || err != nil || page.Last {
				return
			}
		}
	}
}

// ErrStartOver means that a position has expired, so that the directory must be read from the start.
var ErrStartOver = errors.New("the position has expired")

// Temporary is an error of a Source that may pass, such as an outage or a lost connection. A run then reads again from
// its position, until it has made no progress for half an hour. Any other error ends the run as failed, and the client
// sees its text, which says what to do.
type Temporary struct{ Cause error }

func (t *Temporary) Error() string { return t.Cause.Error() }

func (t *Temporary) Unwrap() error { return t.Cause }
