// Package directory keeps a client's users in sync with the client's directory: connectors read Microsoft Entra ID and
// Google Workspace, and runs write what they read.
package directory

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"

	"partnerapi/domain"
)

// Source reads a client's directory.
type Source interface {
	// Read reads the accounts after a position, or all accounts if it is empty, in pages up to the last page. A page may
	// contain an account of an earlier page again, then with only some of its properties. Read waits while it is
	// throttled, and ends at the first error, which is ErrStartOver if the position has expired, and errForeign if it is
	// of another release or of other settings.
	//
	// What Read returns depends only on the position and the directory, so that another process may continue.
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

// errForeign is the ErrStartOver of a position that this source did not store: an earlier release did, which read other
// properties, or the settings were other ones. Unlike an expired one, such a position is met at most once in a run.
var errForeign = fmt.Errorf("%w: it was stored under other settings, or by another release", ErrStartOver)

// positionVersion is the version of the positions, in front of each. It changes with the properties that are read: a
// position reports only the changes of the properties that its first request selected, and the pages before it lack the
// others. Positions of release 1.0 have none.
const positionVersion = "2 "

// positionOf returns the position of a place in a directory.
func positionOf(place string) string { return positionVersion + place }

// placeOf returns the place of a position; empty for the empty position, which is the start. It returns errForeign for
// a position of another version.
func placeOf(position string) (string, error) {
	place, ok := strings.CutPrefix(position, positionVersion)
	if !ok && position != "" {
		return "", errForeign
	}
	return place, nil
}

// Temporary is an error of a Source that may pass, such as an outage or a lost connection. A run then reads again from
// its position, until it has made no progress for half an hour. Any other error ends the run as failed, and the client
// sees its text, which says what to do.
type Temporary struct{ Cause error }

func (t *Temporary) Error() string { return t.Cause.Error() }

func (t *Temporary) Unwrap() error { return t.Cause }
